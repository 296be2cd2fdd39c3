"""Config keys of a parallel run: its workers and what carries their messages."""

from ding.config.key import own, owns

SYSTEM = (
    own("system_config.max_restart", "Restarts of a worker before it is given up.", whole=True),
    own("system_config.learner_gpu_num", "GPUs of a learner.", whole=True),
    *owns(
        "system_config.engine",
        address="Ray's head: None for a Ray of the run's own, 'auto' or 'host:port'.",
        cfg_type="Name of the section's form; written, and not read.",
        modules="Modules that Ray's nodes are sent, in addition to those in import_names.",
        runtime_env="What else Ray sets up on its nodes.",
    ),
    own("system_config.engine.object_store_memory", "Size of a node's store.", unit="bytes"),
    own(
        "system_config.engine.head_tolerance",
        "How long the head of a Ray cluster may be unreachable before the run ends.",
        unit="seconds",
    ),
    own(
        "system_config.engine.driver_tolerance",
        "How long workers on a Ray cluster wait for another driver when theirs has died.",
        unit="seconds",
    ),
    *(
        own(f"system_config.engine.{kind}.{name}", meaning.format(kind))
        for kind in ("collector", "learner")
        for name, meaning in (
            ("num_cpus", "CPUs that a {} asks of a node."),
            ("num_gpus", "GPUs that a {} asks of a node."),
            ("resources", "Other resources that a {} asks of a node, by name."),
        )
    ),
)

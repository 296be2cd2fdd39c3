"""The config keys that several classes share, a row each; checks and the docs are made from them.

A class's own keys, with their defaults, are in its ``config``. A row adds what that cannot say:
the meaning, the range, another place or older names of the same setting, and keys that configs may
hold although no class has a default for them.
"""

from dataclasses import dataclass
from typing import Any

#: Ranges that a number may have.
POSITIVE, FRACTION, AT_LEAST_ONE = "greater than 0", "between 0 and 1", "at least 1"


@dataclass(frozen=True)
class Key:
    """One config key.

    Attributes:
        path: Its full path in the main config (``system_config.``: in that of a parallel run).
        meaning: What it sets.
        like: An example of its type; ``None`` allows any, ``{}`` any dict, and a whole number any
            number unless `whole`.
        known: Whether every config may hold it; otherwise only those of classes that have it.
        unit: What a number counts or measures.
        range: The numbers that it may be, one of the constants above.
        may_be_none: Whether ``None`` is in the range.
        whole: Whether it is a number of things, of which there is no fraction.
        twins: Other places of the same setting. What a user wrote counts; if several places were
            written, `path`.
        old: Older names.
        silent: Whether configs hold it and no policy of this package reads it, so that it is not
            reported.
    """

    path: str
    meaning: str
    like: Any = None
    known: bool = True
    unit: str = ""
    range: str = ""
    may_be_none: bool = False
    whole: bool = False
    twins: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    silent: bool = False


def _part(path: str, what: str) -> tuple[Key, ...]:
    """The keys of each component that is chosen by its type."""
    return (
        Key(f"{path}.type", f"Registered type of the {what}.", ""),
        Key(f"{path}.import_names", "Modules to import, which register the type.", []),
        Key(f"{path}.cfg_type", "Name of the section's form; written, and not read.", ""),
    )


def _own(path: str, meaning: str, **facts: Any) -> Key:
    """A key that only configs of classes with a default for it may hold."""
    return Key(path, meaning, known=False, **facts)


def _ignored(path: str, meaning: str) -> Key:
    return Key(path, meaning, known=False, silent=True)


_RUN = (
    Key("exp_name", "Folder of the run.", ""),
    Key("env", "The environments."),
    Key("policy", "The policy, and all that trains it."),
    Key("seed", "Seed of everything random; that of the call counts."),
    Key("create_config", "Types by component; in compiled configs."),
    Key("trackers", "What takes the run's figures: names, or options by name."),
    Key("callbacks", "What is called while the run goes on: classes, names, or arguments by name."),
)

_ENV = (
    *_part("env", "environments"),
    Key("env.env_id", "Id of gymnasium's registry.", ""),
    Key(
        "env.collector_env_num",
        "Environments that collect.",
        0,
        range=POSITIVE,
        may_be_none=True,
        whole=True,
        twins=("policy.collect.env_num",),
    ),
    Key(
        "env.evaluator_env_num",
        "Environments that evaluate.",
        0,
        range=POSITIVE,
        may_be_none=True,
        whole=True,
        twins=("policy.eval.env_num",),
    ),
    Key(
        "env.n_evaluator_episode",
        "Episodes of an evaluation.",
        0,
        range=POSITIVE,
        may_be_none=True,
        whole=True,
        twins=("policy.eval.evaluator.n_episode",),
    ),
    Key(
        "env.stop_value",
        "Mean return of an evaluation that ends the run as converged; of battles one per player.",
        twins=("policy.eval.evaluator.stop_value",),
    ),
    Key("env.replay_path", "Folder for videos of episodes."),
    Key("env.max_episode_steps", "Steps after which an episode is cut.", unit="steps"),
    Key(
        "env.collector_episode_num",
        "Episodes of each environment in a collector's task.",
        0,
        unit="episodes",
        range=AT_LEAST_ONE,
        whole=True,
    ),
    Key(
        "env.evaluator_episode_num",
        "Episodes of each environment in an evaluation task.",
        0,
        unit="episodes",
        whole=True,
    ),
    Key("env.player_num", "Players of a battle.", 0, whole=True),
    Key("env.env_wrapper", "Name of a preset of wrappers, or a list of wrappers."),
    # What some manager reads: configs keep these keys when they change its type.
    *_part("env.manager", "env manager"),
    Key("env.manager.shared_memory", "Whether observations come through shared memory.", False),
    Key("env.manager.copy_on_get", "Whether observations are copied from it.", False),
    Key("env.manager.context", "How processes start: 'fork', 'spawn' or 'forkserver'.", ""),
    Key("env.manager.wait_num", "Environments to wait for at each step."),
    Key("env.manager.step_wait_timeout", "Longest wait for slower environments.", unit="s"),
    Key("env.manager.connect_timeout", "Longest wait for an environment's process.", 0.0, unit="s"),
    Key("env.manager.reset_inplace", "Whether a failed environment is reset in place.", False),
    _own("env.manager.max_retry", "Tries of a reset or step before it fails.", whole=True),
)

_LEARN = (
    Key("policy.learn.multi_gpu", "Whether several learners train one policy.", False),
    Key("policy.learn.resume_training", "Whether the run continues from its last state.", False),
    Key("policy.learn.ignore_done", "Whether targets bootstrap at an episode's end.", False),
    Key("policy.learn.train_epoch", "Epochs of training from a data set."),
    Key("policy.learn.data_path", "Older place of policy.collect.data_path."),
    Key("policy.learn.dataset_path", "Older place of policy.collect.data_path."),
    *_part("policy.learn.learner", "learner"),
    Key("policy.learn.learner.load_path", "Checkpoint; read by users' scripts."),
    Key(
        "policy.learn.learner.learner_num",
        "Learners of a parallel run.",
        1,
        range=AT_LEAST_ONE,
        whole=True,
    ),
    Key(
        "policy.learn.learner.send_policy_freq",
        "Updates between two publications of the weights.",
        1,
        unit="updates",
        range=AT_LEAST_ONE,
        whole=True,
    ),
    Key("policy.learn.learner.iteration_timeout", "Longest time of an update.", 0.0, unit="s"),
    # Hooks have a short form (a value) and a full one (a dict).
    Key("policy.learn.learner.hook.load_ckpt_before_run", "Checkpoint to begin with."),
    Key(
        "policy.learn.learner.hook.log_show_after_iter",
        "Updates between two lines of the log.",
        unit="updates",
    ),
    Key(
        "policy.learn.learner.hook.save_ckpt_after_iter",
        "Updates between two checkpoints.",
        unit="updates",
    ),
    Key("policy.learn.learner.hook.save_ckpt_after_run", "Whether to save one at the end."),
    Key("policy.learn.learner.hook.log_reduce_after_iter", "Whether learners average their logs."),
    Key(
        "policy.learn.learner.hook.keep_ckpt",
        "Checkpoints of updates that are kept; 0 for all.",
        0,
        whole=True,
    ),
    _own("policy.learn.learner.train_iterations", "Updates of a learner's run.", whole=True),
    _own("policy.learn.learner.dataloader.num_workers", "Processes that load data.", whole=True),
    _own("policy.learn.batch_size", "Samples of an update.", range=POSITIVE, whole=True),
    _own("policy.learn.learning_rate", "Step size of the optimiser.", range=POSITIVE),
    _own(
        "policy.learn.learning_rate_actor",
        "Step size of the actor's optimiser.",
        old=("policy.learn.learning_rate_policy",),
    ),
    _own(
        "policy.learn.learning_rate_critic",
        "Step size of the critic's optimiser.",
        old=("policy.learn.learning_rate_q",),
    ),
    _own(
        "policy.learn.target_update_freq",
        "Updates between two copies of the network into its target.",
        unit="updates",
        range=POSITIVE,
        may_be_none=True,
        whole=True,
    ),
    _own("policy.learn.target_theta", "Share of the network in its moving target.", range=FRACTION),
    Key(
        "policy.learn.update_per_collect",
        "Updates after each collection; on-policy policies count in epochs.",
        known=False,
        unit="updates",
        range=POSITIVE,
        whole=True,
        silent=True,
    ),
    Key(
        "policy.learn.epoch_per_collect",
        "Passes over each collection; off-policy policies count in updates.",
        known=False,
        unit="epochs",
        range=POSITIVE,
        whole=True,
        silent=True,
    ),
    _ignored("policy.learn.algo", "Name of a variant that no policy here has."),
    _ignored("policy.learn.iqn", "Switch of a variant that no policy here has."),
    _ignored("policy.learn.reparameterization", "What SAC does without being asked."),
    _ignored("policy.learn.value_network", "Whether SAC has a third network; here it has none."),
)

_COLLECT = (
    Key(
        "policy.collect.n_sample",
        "Samples of a collection.",
        0,
        range=POSITIVE,
        may_be_none=True,
        whole=True,
    ),
    Key(
        "policy.collect.n_episode",
        "Episodes of a collection, in place of samples.",
        0,
        range=POSITIVE,
        may_be_none=True,
        whole=True,
    ),
    Key(
        "policy.collect.unroll_len",
        "Steps of a sample that is a sequence.",
        1,
        unit="steps",
        range=POSITIVE,
        whole=True,
    ),
    Key("policy.collect.env_num", "Copy of env.collector_env_num."),
    Key("policy.collect.collect_data", "Whether a battle collects this player's samples.", True),
    Key("policy.collect.save_path", "File that demonstrations are saved in."),
    Key("policy.collect.data_path", "The data set: a file, a run's folder or an id."),
    Key("policy.collect.data_type", "Registered type of the data set.", ""),
    Key("policy.collect.allow_pickle", "Whether to trust pickled data sets.", False),
    Key("policy.collect.normalize_states", "Whether observations are normalised.", False),
    Key(
        "policy.collect.timeout_length",
        "Steps after which episodes of the data set were cut off.",
        unit="steps",
    ),
    *_part("policy.collect.collector", "collector"),
    Key(
        "policy.collect.collector.collector_num",
        "Collectors of a parallel run.",
        1,
        range=AT_LEAST_ONE,
        whole=True,
    ),
    Key(
        "policy.collect.collector.update_policy_second",
        "Time between two looks for newer weights.",
        0.0,
        unit="s",
    ),
    Key(
        "policy.collect.collector.get_train_sample",
        "Whether an episode collector returns training samples, not whole episodes.",
        False,
    ),
    Key("policy.collect.collector.reward_shaping", "Whether environments shape rewards.", False),
    _own("policy.collect.discount_factor", "Discount γ of collected returns.", range=FRACTION),
    _own("policy.collect.gae_lambda", "λ of generalised advantage estimation.", range=FRACTION),
    _ignored("policy.collect.algo", "Name of a variant that no policy here has."),
    _ignored("policy.collect.collector_env_num", "Misplaced env.collector_env_num."),
    _ignored("policy.collect.collector_logit", "Whether samples have the logit; policies decide."),
    _ignored("policy.collect.model_path", "Expert's checkpoint, its run's folder or zoo:NAME."),
    _ignored("policy.collect.state_dict_path", "Expert's checkpoint; read by users' scripts."),
    _ignored("policy.collect.collect_count", "Samples to save; read by users' scripts."),
    _ignored("policy.collect.expert_data_path", "File to save in; read by users' scripts."),
)

_EVAL = (
    Key("policy.eval.env_num", "Copy of env.evaluator_env_num."),
    *_part("policy.eval.evaluator", "evaluator"),
    Key("policy.eval.evaluator.n_episode", "Copy of env.n_evaluator_episode.", 0, whole=True),
    Key("policy.eval.evaluator.stop_value", "Copy of env.stop_value."),
    Key("policy.eval.evaluator.opponent", "Opponent in battles: 'random' or 'self'.", ""),
    _own(
        "policy.eval.evaluator.eval_freq",
        "Updates between two evaluations; -1 for none between the first and the last.",
        unit="updates",
        whole=True,
    ),
    _ignored("policy.eval.evaluator_env_num", "Misplaced env.evaluator_env_num."),
)

_OTHER = (
    *_part("policy.other.replay_buffer", "replay buffer"),
    *_part("policy.other.commander", "commander"),
    Key(
        "policy.other.commander.collector_task_space",
        "Collection tasks at the same time.",
        1,
        unit="tasks",
        whole=True,
    ),
    Key(
        "policy.other.commander.learner_task_space",
        "Learner tasks at the same time.",
        1,
        unit="tasks",
        range=AT_LEAST_ONE,
        whole=True,
    ),
    Key("policy.other.commander.eval_interval", "Time between two evaluations.", 60.0, unit="s"),
    Key(
        "policy.other.commander.eval_share",
        "Largest share of the collectors' time that evaluations take.",
        0.1,
        range=FRACTION,
    ),
    Key(
        "policy.other.commander.greedy_share",
        "Share of the evaluation tasks that act greedily.",
        0.5,
        range=FRACTION,
    ),
    Key("policy.other.commander.league", "Settings of the league.", {}),
    Key("policy.other.commander.path_policy", "Folder of the players' weights.", ""),
    Key("policy.other.league", "Older place of the league's settings.", {}),
    Key(
        "policy.other.replay_buffer.replay_buffer_size",
        "Samples that the buffer holds.",
        known=False,
        range=POSITIVE,
        whole=True,
    ),
    _own("policy.other.eps.start", "ε at the beginning.", range=FRACTION),
    _own("policy.other.eps.end", "ε at the end.", range=FRACTION),
    _own("policy.other.eps.decay", "Length of ε's fall.", unit="environment steps", range=POSITIVE),
    _own("policy.other.eps.collect", "ε of saved demonstrations.", like=0.0),
    _ignored("policy.other.eps", "Exploration; on-policy policies have none."),
    _ignored("policy.other.replay_buffer", "The buffer; on-policy policies have none."),
    _ignored("policy.other.replay_buffer.max_reuse", "Older name of max_use; no buffer reads it."),
    _ignored("policy.other.replay_buffer.periodic_thruput_seconds", "Moved into `monitor`."),
)

_POLICY = (
    *_part("policy", "policy"),
    Key("policy.model", "Arguments of the network.", {}),
    Key("policy.cuda", "Whether to use a GPU.", False),
    Key("policy.on_policy", "Whether it learns from what it has just collected alone.", False),
    Key(
        "policy.multi_gpu",
        "Whether several learners train one policy.",
        False,
        twins=("policy.learn.multi_gpu",),
    ),
    Key("policy.bp_update_sync", "Whether learners wait for each other's gradients.", True),
    Key("policy.traj_len_inf", "Whether trajectories are whole episodes.", False),
    Key(
        "policy.priority",
        "Whether samples are drawn by priority.",
        False,
        twins=("policy.other.replay_buffer.priority",),
    ),
    Key(
        "policy.priority_IS_weight",
        "Whether their losses have importance weights.",
        False,
        twins=("policy.other.replay_buffer.priority_IS_weight",),
    ),
    Key("policy.load_path", "Checkpoint that is evaluated."),
    Key("policy.replay_path", "Folder for videos of episodes."),
    Key(
        "policy.random_collect_size",
        "Samples of random actions before training.",
        0,
        unit="samples",
        whole=True,
    ),
    Key(
        "policy.expert_random_collect_size",
        "Steps of an expert that SQIL imitates.",
        0,
        unit="steps",
        whole=True,
    ),
    Key("policy.transition_with_policy_data", "Whether samples have the policy's outputs.", False),
    Key("policy.multi_agent", "Whether it acts for a team.", False),
    *_LEARN,
    *_COLLECT,
    *_EVAL,
    *_OTHER,
    _own(
        "policy.action_space",
        "Kind of the actions.",
        twins=("policy.model.action_space",),
    ),
    _own(
        "policy.unroll_len",
        "Steps of a sample that is a sequence.",
        unit="steps",
        range=POSITIVE,
        may_be_none=True,
        whole=True,
        twins=("policy.collect.unroll_len", "policy.learn.unroll_len"),
    ),
    _own("policy.nstep", "Steps of a return.", unit="steps", range=POSITIVE, whole=True),
    _own("policy.discount_factor", "Discount γ of returns.", range=FRACTION),
    _own("policy.model.head_layer_num", "Layers of the head.", whole=True),
    _own("policy.model.actor_head_hidden_size", "Width of the actor's head.", whole=True),
    _own("policy.model.actor_head_layer_num", "Layers of the actor's head.", whole=True),
    _own("policy.model.critic_head_hidden_size", "Width of the critic's head.", whole=True),
    _own("policy.model.critic_head_layer_num", "Layers of the critic's head.", whole=True),
    _ignored("policy.command", "Settings of the command mode, which has none."),
    _ignored("policy.continuous", "Older form of action_space ('continuous' if True)."),
)

_REWARD_MODEL = (
    *_part("reward_model", "reward model"),
    _own("reward_model.batch_size", "Transitions of an update.", range=POSITIVE, whole=True),
    _own("reward_model.learning_rate", "Step size of the optimiser.", range=POSITIVE),
    _own(
        "reward_model.update_per_collect",
        "Updates after each collection.",
        unit="updates",
        whole=True,
    ),
)

_SYSTEM = (
    _own("system_config.max_restart", "Restarts of a worker before it is given up.", whole=True),
    _own("system_config.learner_gpu_num", "GPUs of a learner.", whole=True),
)

#: All rows, in the order in which messages name keys.
SCHEMA: tuple[Key, ...] = (*_RUN, *_ENV, *_POLICY, *_REWARD_MODEL, *_SYSTEM)

#: Numbers of things; other whole numbers may become fractions.
COUNTS = frozenset(key.path for key in SCHEMA if key.whole)
#: What configs hold and nothing reads.
SILENT = frozenset(key.path for key in SCHEMA if key.silent)
#: The same setting in two places.
TWINS = tuple((key.path, twin) for key in SCHEMA for twin in key.twins)
#: Older names, and the names of today.
OLD_NAMES = tuple((old, key.path) for key in SCHEMA for old in key.old)

#: Sections of ``create_config``; the last ones are those of parallel mode.
CREATE_SECTIONS = (
    *("env", "env_manager", "policy", "learner", "collector", "evaluator", "replay_buffer"),
    *("reward_model", "commander", "model", "comm_learner", "comm_collector", "league"),
)


def examples() -> dict[str, Any]:
    """The keys that every main config may hold, nested, each with an example of its value."""
    tree: dict[str, Any] = {}
    for key in SCHEMA:
        if not key.known:
            continue
        *way, last = key.path.split(".")
        section = tree
        for name in way:
            below = section.get(name)
            section[name] = section = below if isinstance(below, dict) else {}
        section[last] = dict(key.like) if isinstance(key.like, dict) else key.like
    return tree


def in_range(range_: str) -> list[Key]:
    """The keys whose numbers have this range."""
    return [key for key in SCHEMA if key.range == range_]

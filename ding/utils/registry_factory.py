"""The registries of the package, and `registries`, which maps their short names to them."""

from ding.utils.builtin_types import BUILTIN_TYPES
from ding.utils.registry import Registry

POLICY_REGISTRY = Registry.named("policy", "create_config.policy.import_names")
# The pipelines ask for the command mode of every policy.
POLICY_REGISTRY.derive("_command", "ding.policy.command_mode_policy_instance", "with_command_mode")
ENV_REGISTRY = Registry.named("env", "create_config.env.import_names", gives_way=True)
ENV_WRAPPER_REGISTRY = Registry.named("env wrapper", "create_config.env.import_names")
LEARNER_REGISTRY = Registry.named("learner", "create_config.learner.import_names")
COMM_LEARNER_REGISTRY = Registry.named("comm learner", "create_config.comm_learner.import_names")
SERIAL_COLLECTOR_REGISTRY = Registry.named(
    "serial collector", "create_config.collector.import_names"
)
PARALLEL_COLLECTOR_REGISTRY = Registry.named(
    "parallel collector", "create_config.collector.import_names"
)
COMM_COLLECTOR_REGISTRY = Registry.named(
    "comm collector", "create_config.comm_collector.import_names"
)
SERIAL_EVALUATOR_REGISTRY = Registry.named(
    "serial evaluator", "create_config.evaluator.import_names"
)
BUFFER_REGISTRY = Registry.named("buffer", "create_config.replay_buffer.import_names")
COMMANDER_REGISTRY = Registry.named("commander", "create_config.commander.import_names")
LEAGUE_REGISTRY = Registry.named("league", "create_config.league.import_names")
PLAYER_REGISTRY = Registry.named("player", "create_config.league.import_names")
MODEL_REGISTRY = Registry.named("model", "policy.model.import_names")
DATASET_REGISTRY = Registry.named("dataset", "import_names", gives_way=True)
ENGINE_REGISTRY = Registry.named("engine", "system_config.engine.import_names")
TRACKER_REGISTRY = Registry.named("tracker", "trackers.<name>.import_names")
ENV_MANAGER_REGISTRY = Registry.named("env manager", "create_config.env_manager.import_names")

registries: dict[str, Registry] = {
    "policy": POLICY_REGISTRY,
    "env": ENV_REGISTRY,
    "env_wrapper": ENV_WRAPPER_REGISTRY,
    "learner": LEARNER_REGISTRY,
    "comm_learner": COMM_LEARNER_REGISTRY,
    "serial_collector": SERIAL_COLLECTOR_REGISTRY,
    "parallel_collector": PARALLEL_COLLECTOR_REGISTRY,
    "comm_collector": COMM_COLLECTOR_REGISTRY,
    "serial_evaluator": SERIAL_EVALUATOR_REGISTRY,
    "buffer": BUFFER_REGISTRY,
    "commander": COMMANDER_REGISTRY,
    "league": LEAGUE_REGISTRY,
    "player": PLAYER_REGISTRY,
    "model": MODEL_REGISTRY,
    "dataset": DATASET_REGISTRY,
    "env_manager": ENV_MANAGER_REGISTRY,
    "engine": ENGINE_REGISTRY,
    "tracker": TRACKER_REGISTRY,
}

for _short_name, _types in BUILTIN_TYPES.items():
    for _type, _module in _types.items():
        registries[_short_name].register_lazy(_type, _module)

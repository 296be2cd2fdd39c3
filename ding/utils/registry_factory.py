"""The registries of the package; `registries` maps their short names to them."""

from collections.abc import Mapping

from easydict import EasyDict

from ding.utils.builtin_types import BUILTIN_TYPES
from ding.utils.default_helper import deep_merge_dicts
from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry import Maker, Registry
from ding.utils.types import Settings

registries: dict[str, Registry] = {}


def _registry(name: str, section: str = "", import_key: str = "") -> Registry:
    """Create a registry that knows its built-in types.

    Args:
        name: Short name; the label has blanks instead of underscores.
        section: Section of ``create_config``, if it has another name.
        import_key: Key of the config, if it is not in ``create_config``.
    """
    registry = registries[name] = Registry()
    registry.label = name.replace("_", " ")
    registry.import_key = import_key or f"create_config.{section or name}.import_names"
    # Environments and data sets of users often have the names of built-in ones.
    registry.gives_way = name in ("env", "dataset")
    for type_, module in BUILTIN_TYPES[name].items():
        registry.register_lazy(type_, module)
    return registry


POLICY_REGISTRY = _registry("policy")
# The pipelines look up the command mode of every policy.
POLICY_REGISTRY.derive("_command", "ding.policy.command_mode_policy_instance", "with_command_mode")
POLICY_REGISTRY.left_out.update(
    ngu="Never Give Up",
    dreamer="DreamerV3",
    dreamerv3="DreamerV3",
    mbsac="model-based SAC",
    stevesac="model-based SAC",
    ibc="implicit behavioural cloning",
    pd="plan diffuser",
    qgpo="Q-guided policy optimisation",
    r2d2_gtrxl="R2D2 with a GTrXL",
    dqn_stdim="DQN with an ST-DIM loss",
    ppo_stdim="PPO with an ST-DIM loss",
    td3_vae="TD3 with an action VAE",
    atoc="attentional communication",
    pc_bfs="procedure cloning",
)
ENV_REGISTRY = _registry("env")
ENV_WRAPPER_REGISTRY = _registry("env_wrapper", "env")
LEARNER_REGISTRY = _registry("learner")
COMM_LEARNER_REGISTRY = _registry("comm_learner")
SERIAL_COLLECTOR_REGISTRY = _registry("serial_collector", "collector")
PARALLEL_COLLECTOR_REGISTRY = _registry("parallel_collector", "collector")
COMM_COLLECTOR_REGISTRY = _registry("comm_collector")
SERIAL_EVALUATOR_REGISTRY = _registry("serial_evaluator", "evaluator")
BUFFER_REGISTRY = _registry("buffer", "replay_buffer")
BUFFER_REGISTRY.hints["prioritized"] = "'advanced' with policy.priority=True"
COMMANDER_REGISTRY = _registry("commander")
REWARD_MODEL_REGISTRY = _registry("reward_model", import_key="reward_model.import_names")
REWARD_MODEL_REGISTRY.left_out.update({"rnd-ngu": "Never Give Up", "episodic": "Never Give Up"})
LEAGUE_REGISTRY = _registry("league")
PLAYER_REGISTRY = _registry("player", "league")
MODEL_REGISTRY = _registry("model", import_key="policy.model.import_names")
DATASET_REGISTRY = _registry("dataset", import_key="import_names")
ENV_MANAGER_REGISTRY = _registry("env_manager")
ENGINE_REGISTRY = _registry("engine", import_key="system_config.engine.import_names")
TRACKER_REGISTRY = _registry("tracker", import_key="trackers.<name>.import_names")


def component(
    registry: Registry, cfg: Settings, type_: str | None = None
) -> tuple[Maker, EasyDict]:
    """The class of a component's config, and the config merged over the class's defaults.

    Args:
        registry: Registry of the class.
        cfg: A mapping with ``type``; its ``import_names`` are imported first. An ``EasyDict`` that
            has all keys is returned unchanged.
        type_: Overrides the type in ``cfg``.

    Raises:
        ConfigError: The config is not a mapping, or has no type.
        UnknownTypeError: No class of this type is registered.
    """
    if not isinstance(cfg, Mapping):
        what = type(cfg).__name__
        raise ConfigError(f"the config of a {registry.label} must be a dict, got {what}")
    import_module(cfg.get("import_names", []))
    type_ = type_ or cfg.get("type")
    if type_ is None:
        known = ", ".join(sorted(map(str, registry.query())))
        raise ConfigError(f"the config of a {registry.label} has no 'type': one of {known}")
    cls = registry.get(type_)
    defaults = cls.default_config() if hasattr(cls, "default_config") else {}
    if not isinstance(cfg, EasyDict) or not set(defaults) <= set(cfg):
        cfg = EasyDict(deep_merge_dicts(defaults, dict(cfg)))
    return cls, cfg

"""What can be set in a config, and what it is if nobody sets it; shapes come from environments."""

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from easydict import EasyDict

from ding.config.check import Notes, Problems, at, put, require
from ding.config.known_keys import COMMANDER_KEYS, ENV_KEYS, EPS_KEYS, POLICY_KEYS, TOP_KEYS
from ding.config.parts import Parts, default_config, import_names, is_ours
from ding.envs import create_env_manager, get_vec_env_setting
from ding.policy.fit import action_space_of, model_shapes
from ding.torch_utils import build_activation
from ding.utils import MODEL_REGISTRY, deep_merge_dicts, import_module
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.worker import BaseSerialCommander

_POLICY_SECTIONS = ("learn", "collect", "eval", "other")


def defaults_of(parts: Parts, create: Mapping[str, Any]) -> EasyDict:
    """Everything that a run of these parts can be told, with its default.

    Of two values for a key, the later of these wins: a component's own default, the policy's or
    the env's for it, ``create``.
    """
    policy = deep_merge_dicts({name: {} for name in _POLICY_SECTIONS}, default_config(parts.policy))
    cfg = EasyDict(env=default_config(parts.env), policy=policy)
    for name, (_, place) in parts.components.items():
        part, settings = getattr(parts, name), create.get(name, {})
        if not place or (part is None and not settings):
            continue
        own = at(cfg, place) or {}
        layers = (own,) if name in ("env", "policy") else (default_config(part), own)
        put(cfg, place, layered(*layers, settings))
    if not parts.parallel:
        commander = at(cfg, "policy.other.commander") or {}
        cfg.policy.other.commander = layered(
            default_config(BaseSerialCommander), commander, create.get("commander", {})
        )
    return cfg


def layered(*layers: Mapping[str, Any]) -> EasyDict:
    """All layers merged, later over earlier."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = deep_merge_dicts(merged, dict(layer))
    return EasyDict(merged)


def known_keys(defaults: Mapping[str, Any], model_cls: Any) -> dict[str, Any]:
    """Every key that a main config may hold, with an example of its value."""
    known = deep_merge_dicts(dict(defaults), {**TOP_KEYS, "env": ENV_KEYS, "policy": POLICY_KEYS})
    known["policy"]["model"] = {
        **known["policy"]["model"],
        **{
            name: None if parameter.default is inspect.Parameter.empty else parameter.default
            for name, parameter in _parameters(model_cls).items()
        },
        "type": "",
        "import_names": [],
    }
    known["policy"]["other"]["commander"].update(COMMANDER_KEYS)
    other = known["policy"]["other"]
    if "eps" in other:
        other["eps"].update(EPS_KEYS)
    if "replay_buffer" not in defaults["policy"]["other"]:
        del other["replay_buffer"]  # nothing is replayed
    return known


def open_paths(parts: Parts, model_cls: Any) -> set[str]:
    """Sections of which not all keys can be known: those of classes from elsewhere."""
    paths = {"policy.learn.learner.hook"}
    for name, (_, place) in parts.components.items():
        if place and not is_ours(getattr(parts, name)):
            paths.add(place)
    if not is_ours(parts.policy):
        paths |= {f"policy.{name}" for name in (*_POLICY_SECTIONS, "other.eps")}
    kinds = {parameter.kind for parameter in _parameters(model_cls).values()}
    if model_cls is None or inspect.Parameter.VAR_KEYWORD in kinds:
        paths.add("policy.model")
    return paths


def required_model_keys(model_cls: Any) -> list[str]:
    """Arguments that a model has no default for."""
    return [
        name
        for name, parameter in _parameters(model_cls).items()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]


def model_class(parts: Parts, user: Mapping[str, Any]) -> Any:
    """What makes the network of a policy; ``None`` if that cannot be known beforehand."""
    own = at(user, "policy.model")
    if isinstance(own, Mapping) and own.get("type"):
        import_names(own.get("import_names", []), "policy.model.import_names")
        return MODEL_REGISTRY.get(own["type"])
    default_model = getattr(parts.policy, "default_model", None)
    # A method of somebody else's policy may need the policy.
    if default_model is None or not default_model.__module__.startswith("ding."):
        return None
    # It may depend on what the config says, and on nothing else of a policy that is not there yet.
    unbuilt: Any = object.__new__(cast(type, parts.policy))
    written = at(user, "policy") or {}
    unbuilt._cfg = EasyDict(deep_merge_dicts(default_config(parts.policy), EasyDict(written)))
    try:
        name, modules = unbuilt.default_model()
    except ConfigError:  # it has none
        return None
    import_module(modules)
    return MODEL_REGISTRY.get(name)


def _parameters(model_cls: Any) -> Mapping[str, inspect.Parameter]:
    return {} if model_cls is None else inspect.signature(model_cls).parameters


_EXAMPLES = {
    "obs_shape": "the shape of an observation, such as 4 or [4, 84, 84]",
    "action_shape": "how many actions there are, or how long an action is",
}
# Types of collectors whose environments show what each player sees.
_BATTLES = ("_1v1", "marine")


def settle_model(
    cfg: EasyDict,
    user: EasyDict,
    parts: Parts,
    env_setting: Sequence[Any] | None,
    problems: Problems,
    notes: Notes,
) -> None:
    """Fill in what ``policy.model`` leaves out, and report what is wrong or missing; see
    `fill_model`."""
    network = model_class(parts, cfg)
    missing, hint = fill_model(cfg, user, parts, env_setting, notes)
    for name, value in cfg.policy.model.items():
        if name.endswith("activation") and isinstance(value, str) and is_ours(network):
            try:
                build_activation(value)
            except UnknownTypeError as error:
                problems.add(f"policy.model.{name}: {error}")
    for name in missing:
        what = _EXAMPLES.get(name, "the network has no default for it")
        require(cfg, f"policy.model.{name}", what + hint, problems)


def fill_model(
    cfg: EasyDict,
    user: EasyDict,
    parts: Parts,
    env_setting: Sequence[Any] | None,
    notes: Notes,
) -> tuple[list[str], str]:
    """Fill in the shapes that ``policy.model`` leaves out.

    One environment is made to be asked, if something is missing that it may know. With it,
    ``policy.action_space`` is settled too where neither that nor the model's is said.

    Args:
        cfg: The completed config; changed.
        user: What the user wrote of it.
        env_setting: Environments that are given instead of those that the config names.
        notes: Told what was filled in.

    Returns:
        What the network needs and was missing, and why it could not be filled in, if it could not.
    """
    network = model_class(parts, cfg)
    missing = [
        name
        for name in required_model_keys(network)
        if at(cfg, f"policy.model.{name}") is None
        # The policy knows what its network has to be told.
        and not (name == "action_space" and at(cfg, "policy.action_space") is not None)
    ]
    hint = ""
    if any(name != "action_space" for name in missing):
        hint = _fill(cfg, user, parts, network, env_setting, notes)
    return missing, hint


def _fill(
    cfg: EasyDict,
    user: EasyDict,
    parts: Parts,
    network: Any,
    env_setting: Sequence[Any] | None,
    notes: Notes,
) -> str:
    """Write what an environment tells into ``cfg``; why it could not, for the error's end."""
    try:
        observations, actions = _spaces(cfg, env_setting)
    except Exception as error:  # whatever a simulator raises
        return f"; no environment could be asked for it ({type(error).__name__}: {error})"
    players = 1
    if str(at(cfg, "policy.collect.collector.type")).endswith(_BATTLES):
        players = cfg.env.get("player_num", 2)
    shapes, told = model_shapes(observations, actions, players), []
    parameters = inspect.signature(network).parameters
    if "global_obs_shape" in shapes and "global_obs_shape" not in parameters:
        # A team's network that is told no shape of the state by itself is told both at once.
        shapes["obs_shape"] = {
            "agent_state": shapes["obs_shape"],
            "global_state": shapes["global_obs_shape"],
        }
    for name in shapes:
        if name in parameters and at(cfg, f"policy.model.{name}") is None:
            cfg.policy.model[name] = shapes[name]
            told.append(f"policy.model.{name} = {shapes[name]}")
    kind = action_space_of(actions)
    # Where the policy has a kind of actions, and the user said none.
    said = at(user, "policy.action_space"), at(user, "policy.model.action_space")
    is_open = said == (None, None) and "action_space" in default_config(parts.policy)
    chosen = is_open and kind in getattr(parts.policy, "actions", ())
    if chosen and cfg.policy.action_space != kind:
        cfg.policy.action_space = kind
        told.append(f"policy.action_space = {kind!r}")
    if told:
        notes.adapt(f"{', '.join(told)}: from the environment")
    return f"; the environment has observations of {observations} and actions of {actions}"


def _spaces(cfg: EasyDict, env_setting: Sequence[Any] | None) -> tuple[Any, Any]:
    """Observation and action space of one environment, made as a collector's."""
    setting: Sequence[Any] = env_setting or get_vec_env_setting(cfg.env, eval_=False)
    make, configs, _ = setting
    env = create_env_manager(EasyDict(type="base"), [partial(make, configs[0])])
    try:
        return env.observation_space, env.action_space
    finally:
        env.close()

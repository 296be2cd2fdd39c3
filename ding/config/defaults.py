"""What can be set in a config, and what it is by default; shapes come from environments."""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from easydict import EasyDict
from gymnasium import Space

from ding.config.check import Notes, Problems
from ding.config.parts import Parts, default_config, import_names, is_ours
from ding.config.schema import examples
from ding.envs import create_env_manager, get_vec_env_setting
from ding.envs.env.answers import obs_fault
from ding.policy import fit
from ding.torch_utils import build_activation
from ding.utils import MODEL_REGISTRY, deep_merge_dicts, import_module
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.utils.settings import EnvSetting, at, put
from ding.utils.types import Config, Settings
from ding.worker import BaseSerialCommander

#: What makes a network; ``None`` if that is not known.
ModelClass: TypeAlias = Callable[..., object] | None
POLICY_SECTIONS = ("learn", "collect", "eval", "other")


def defaults_of(parts: Parts, create: Settings) -> EasyDict:
    """All keys of these parts with their defaults.

    Of two values for a key, the later of these wins: a component's own default, the policy's or
    the env's for it, ``create``.
    """
    policy = deep_merge_dicts({name: {} for name in POLICY_SECTIONS}, default_config(parts.policy))
    cfg = EasyDict(env=default_config(parts.env), policy=policy)
    for name, (_, place, _) in parts.components.items():
        part, settings = parts.get(name), create.get(name, {})
        if not place or (part is None and not settings):
            continue
        own = at(cfg, place) or {}
        if isinstance(part, Mapping):
            common = {k: v for k, v in own.items() if k not in part and k != "multi_buffer"}
            each = {
                key: layered(
                    default_config(cls), common, own.get(key) or {}, settings.get(key) or {}
                )
                for key, cls in part.items()
            }
            layers: Sequence[Settings] = own, {"multi_buffer": True}, each
        elif name in ("env", "policy"):
            layers = own, settings
        else:
            layers = default_config(part), own, settings
        put(cfg, place, layered(*layers))
    if "commander" not in parts.components:  # that of serial runs has no type
        own, settings = at(cfg, "policy.other.commander") or {}, create.get("commander", {})
        defaults = BaseSerialCommander.default_config()
        cfg.policy.other.commander = layered(defaults, own, settings)
    return cfg


def share_buffer_keys(user: EasyDict, parts: Parts) -> None:
    """Move what a user sets for all of several buffers to each of them, in place."""
    section = at(user, "policy.other.replay_buffer")
    buffers = parts.get("replay_buffer")
    if not isinstance(buffers, Mapping) or not isinstance(section, EasyDict):
        return
    known = {key for cls in buffers.values() for key in default_config(cls)}
    common = {key: section.pop(key) for key in known - set(buffers) if key in section}
    for name, cls in buffers.items():
        shared = {key: value for key, value in common.items() if key in default_config(cls)}
        section[name] = layered(shared, section.get(name) or {})


def layered(*layers: Settings) -> EasyDict:
    """All layers merged, later over earlier."""
    merged: Config = {}
    for layer in layers:
        merged = deep_merge_dicts(merged, dict(layer))
    return EasyDict(merged)


def known_keys(defaults: Settings, model_cls: ModelClass) -> Config:
    """Every key that a main config may hold, with an example of its value."""
    known = deep_merge_dicts(dict(defaults), examples())
    del known["system_config"]
    for name, parameter in _parameters(model_cls).items():
        is_required = parameter.default is parameter.empty
        known["policy"]["model"][name] = None if is_required else parameter.default
    known["policy"]["model"].update(type="", import_names=[])
    other = known["policy"]["other"]
    if "eps" in other:
        other["eps"]["collect"] = 0.0  # of saved demonstrations
    if "replay_buffer" not in defaults["policy"]["other"]:
        del other["replay_buffer"]  # nothing is replayed
    return known


def open_paths(parts: Parts, model_cls: ModelClass) -> set[str]:
    """Sections of which not all keys can be known: those of classes from elsewhere."""
    paths = {"policy.learn.learner.hook"}
    for name, one in parts.components.items():
        if one.place and not is_ours(parts.get(name)):
            paths.add(one.place)
    if not is_ours(parts.policy):
        paths |= {f"policy.{name}" for name in (*POLICY_SECTIONS, "other.eps")}
    kinds = {parameter.kind for parameter in _parameters(model_cls).values()}
    if model_cls is None or inspect.Parameter.VAR_KEYWORD in kinds:
        paths.add("policy.model")
    return paths


def model_class(parts: Parts, user: Settings) -> ModelClass:
    """What makes the network of a policy; ``None`` if that cannot be known beforehand."""
    own = at(user, "policy.model")
    if isinstance(own, Mapping) and own.get("type"):
        import_names(own.get("import_names", []), "policy.model.import_names")
        return MODEL_REGISTRY.get(own["type"])
    default_model = getattr(parts.policy, "default_model", None)
    # A method of a user's policy may need the policy.
    if default_model is None or not default_model.__module__.startswith("ding."):
        return None
    # It may depend on the config, and on nothing else of a policy that does not exist yet.
    unbuilt: Any = object.__new__(cast(type, parts.policy))
    written = at(user, "policy") or {}
    unbuilt._cfg = EasyDict(deep_merge_dicts(default_config(parts.policy), EasyDict(written)))
    try:
        name, modules = unbuilt.default_model()
    except ConfigError:  # it has none
        return None
    import_module(modules)
    return MODEL_REGISTRY.get(name)


def _parameters(model_cls: ModelClass) -> Mapping[str, inspect.Parameter]:
    return {} if model_cls is None else inspect.signature(model_cls).parameters


_EXAMPLES = {
    "obs_shape": "the shape of an observation, such as 4 or [4, 84, 84]",
    "action_shape": "how many actions there are, or how long an action is",
    "agent_num": "how many agents the environment has: the policy trains a team; for one agent "
    "choose another (ding -q policy)",
}
# Types of collectors whose environments show what each player sees.
_BATTLES = ("_1v1", "marine")


def fill_shapes(
    cfg: EasyDict,
    user: EasyDict,
    parts: Parts,
    notes: Notes,
    env_setting: EnvSetting | None = None,
    required: bool = True,
) -> "Seen | None":
    """Fill in the shapes that ``policy.model`` leaves out, in place.

    One environment is made and reset if something is missing that it may show. With it,
    ``policy.action_space`` is settled too where neither that nor the model's is written.

    Args:
        user: What the user wrote of ``cfg``.
        required: Whether an environment that cannot be made is an error: its own.
    """
    network = model_class(parts, cfg)
    if not {*_missing(cfg, network)} - {"action_space"}:
        return None
    try:
        seen = _look(cfg, env_setting)
    except Exception:  # whatever a simulator raises
        if required:
            raise
        return None
    _fill(cfg, user, parts, network, seen, notes)
    return seen


def check_model(cfg: EasyDict, parts: Parts, seen: "Seen | None", problems: Problems) -> None:
    """Report what is wrong or missing in ``policy.model``."""
    network = model_class(parts, cfg)
    for name, value in (cfg.policy.get("model") or {}).items():
        if name.endswith("activation") and isinstance(value, str) and is_ours(network):
            try:
                build_activation(value)
            except UnknownTypeError as error:
                problems.add(f"policy.model.{name}: {error}")
    for name in _missing(cfg, network):
        if seen and (fault := _fault(seen, name)):
            problems.add(fault)
            continue
        what = _EXAMPLES.get(name, "the network has no default for it")
        if seen is not None:
            what += (
                f"; the environment has observations of {seen.observation_space} and actions of "
                f"{seen.action_space}"
            )
        problems.add(f"missing key policy.model.{name}: {what}")


def _fault(seen: "Seen", shape: str) -> str | None:
    """Why the environment shows nothing that a shape could be taken from, if that is known."""
    space = {"obs_shape": "observation_space", "action_shape": "action_space"}.get(shape)
    fault = fit.space_fault(space, getattr(seen, space)) if space else None
    obs = next(iter(seen.ready_obs.values()), None)
    if fault is None and space == "observation_space" and not isinstance(obs, np.ndarray):
        return obs_fault(obs, seen.observation_space)
    return fault


def check_fit_here(cfg: EasyDict, parts: Parts, seen: "Seen | None", notes: Notes) -> None:
    """Compare the network with an environment, before the processes of a parallel run start."""
    if str(at(cfg, "policy.collect.collector.type")).endswith(_BATTLES):
        return
    try:
        seen = seen or _look(cfg, None)
    except Exception as error:  # whatever a simulator raises
        # The workers may be on hosts that have it; if not, they will report it.
        notes.adapt(f"no environment can be made here ({error}): the workers check the shapes")
        return
    for line in fit.check_fit(cfg.policy, seen, own_env=not is_ours(parts.env)):
        notes.adapt(line)


def _missing(cfg: Settings, network: ModelClass) -> list[str]:
    """Arguments that a network has no default for, and the config no value."""
    given = {name for name in _parameters(network) if at(cfg, f"policy.model.{name}") is not None}
    if at(cfg, "policy.action_space") is not None:  # the policy sets its network's
        given.add("action_space")
    return [
        name
        for name, one in _parameters(network).items()
        if one.default is one.empty
        and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        and name not in given
    ]


@dataclass(frozen=True)
class Seen:
    """What one environment shows, as a launched env manager has it."""

    observation_space: Space[object]
    action_space: Space[object]
    ready_obs: Mapping[int, object]


def _look(cfg: EasyDict, env_setting: EnvSetting | None) -> Seen:
    """Make and reset one environment, as a collector does."""
    setting: EnvSetting = env_setting or get_vec_env_setting(cfg.env, eval_=False)
    make, configs, _ = setting
    env = create_env_manager(EasyDict(type="base"), [partial(make, configs[0])])
    env.seed(cfg.seed)  # some can only be reset when they are
    try:
        env.launch()
        note_first_action(cfg, env)
        # Observations are the manager's until it is closed.
        return Seen(env.observation_space, env.action_space, copy.deepcopy(dict(env.ready_obs)))
    finally:
        env.close()


def note_first_action(cfg: EasyDict, env: object) -> bool:
    """Write what a launched env manager adds to choices into ``cfg``, for who loads the policy;
    returns whether that changes it."""
    first = (getattr(env, "first_action", None) or [0])[0]
    if cfg.env.get("first_action", 0) == first:
        return False
    cfg.env.first_action = first
    return True


def _fill(
    cfg: EasyDict, user: EasyDict, parts: Parts, network: ModelClass, seen: Seen, notes: Notes
) -> None:
    """Write what an environment shows into ``cfg``."""
    players = 1
    if str(at(cfg, "policy.collect.collector.type")).endswith(_BATTLES):
        players = cfg.env.get("player_num", 2)
    obs: Any = next(iter(seen.ready_obs.values()), None)
    declared, actions = seen.observation_space, seen.action_space
    observations = fit.shown(declared, obs)
    if observations is not declared:
        returned: object = f"an array of {list(np.shape(obs))}"
        if isinstance(obs, Mapping):
            returned = {name: list(np.shape(part)) for name, part in obs.items()}
        notes.adapt(
            f"the environment declares observations as {declared}, and its reset returns "
            f"{returned}: that counts"
        )
    shapes, filled = fit.model_shapes(observations, actions, players), []
    if fit.numbers_for_choices(cfg.policy.get("type"), actions):
        if is_ours(parts.env):  # which declares what is true
            fit.check_kind(cfg.policy.type, actions)
        shapes.pop("action_shape", None)
        if (choices := fit.choices_of(actions)) is not None:
            shapes["action_shape"] = choices
            notes.adapt(
                f"the environment declares actions as {actions}: taken as {choices} choices"
            )
    parameters = _parameters(network)
    if "global_obs_shape" in shapes and "global_obs_shape" not in parameters:
        # A team's network that takes no shape of the state by itself takes both at once.
        shapes["obs_shape"] = {
            "agent_state": shapes["obs_shape"],
            "global_state": shapes["global_obs_shape"],
        }
    for name, other in (("obs_shape", "state_dim"), ("action_shape", "act_dim")):
        if name in shapes and name not in parameters:  # as DecisionTransformer calls them
            shapes[other] = shapes[name]
    for name in shapes:
        if name in parameters and at(cfg, f"policy.model.{name}") is None:
            put(cfg, f"policy.model.{name}", shapes[name])
            filled.append(f"policy.model.{name} = {shapes[name]}")
    kind = fit.action_space_of(actions)
    # Where the policy has a kind of actions, and the user set none.
    own_words = at(user, "policy.action_space"), at(user, "policy.model.action_space")
    is_open = own_words == (None, None) and "action_space" in default_config(parts.policy)
    if is_open and kind in getattr(parts.policy, "actions", ()) and cfg.policy.action_space != kind:
        cfg.policy.action_space = kind
        filled.append(f"policy.action_space = {kind!r}")
    if filled:
        notes.adapt(f"{', '.join(filled)}: from the environment")

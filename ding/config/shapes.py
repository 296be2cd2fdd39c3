"""What a config says of the network, completed with the shapes of its environments."""

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any

from easydict import EasyDict

from ding.config.check import Notes, Problems, at, require
from ding.config.defaults import model_class, required_model_keys
from ding.config.parts import Parts, default_config, is_ours
from ding.envs import create_env_manager, get_vec_env_setting
from ding.policy.fit import action_space_of, model_shapes
from ding.torch_utils import build_activation
from ding.utils.errors import UnknownTypeError

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
    """Fill in the shapes that ``policy.model`` leaves out, and report what is wrong or missing.

    One environment is made to be asked, if something is missing that it may know. With it,
    ``policy.action_space`` is settled too where neither that nor the model's is said.

    Args:
        cfg: The completed config; changed.
        user: What the user wrote of it.
        env_setting: Environments that are given instead of those that the config names.
        notes: Told what was filled in.
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
    for name, value in cfg.policy.model.items():
        if name.endswith("activation") and isinstance(value, str) and is_ours(network):
            try:
                build_activation(value)
            except UnknownTypeError as error:
                problems.add(f"policy.model.{name}: {error}")
    for name in missing:
        what = _EXAMPLES.get(name, "the network has no default for it")
        require(cfg, f"policy.model.{name}", what + hint, problems)


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
    chosen = _is_open(user, parts) and kind in getattr(parts.policy, "actions", ())
    if chosen and cfg.policy.action_space != kind:
        cfg.policy.action_space = kind
        told.append(f"policy.action_space = {kind!r}")
    if told:
        notes.adapt(f"{', '.join(told)}: from the environment")
    return f"; the environment has observations of {observations} and actions of {actions}"


def _is_open(user: EasyDict, parts: Parts) -> bool:
    """Whether the policy has a kind of actions, and the user said none."""
    said = at(user, "policy.action_space"), at(user, "policy.model.action_space")
    return said == (None, None) and "action_space" in default_config(parts.policy)


def _spaces(cfg: EasyDict, env_setting: Sequence[Any] | None) -> tuple[Any, Any]:
    """Observation and action space of one environment, made as a collector's."""
    setting: Sequence[Any] = env_setting or get_vec_env_setting(cfg.env, eval_=False)
    make, configs, _ = setting
    env = create_env_manager(EasyDict(type="base"), [partial(make, configs[0])])
    try:
        return env.observation_space, env.action_space
    finally:
        env.close()

"""Whether a policy's network has the shapes of the environments that it is to act in."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError

#: Kinds of actions; hybrid ones are a choice (``action_type``) and its numbers (``action_args``).
KINDS = ("discrete", "multi-discrete", "continuous", "hybrid", "multi-agent")
_TYPES = ("Box", "Dict", "Discrete", "MultiDiscrete")
_CONTINUOUS = ("continuous", "regression", "reparameterization")


def model_shapes(observations: Any, actions: Any, players: int = 1) -> dict[str, Any]:
    """What ``policy.model`` has to say of an environment, by key; only what is certain.

    Args:
        observations: A space, or an observation: an array or a dict of arrays.
        actions: The action space.
        players: How many play in it; with several, the first axis is theirs.

    Returns:
        Of ``obs_shape`` and ``action_shape`` those that can be told: not those of images with their
        colours last, nor of dicts that are not a team's. Of a team also ``agent_num``,
        ``agent_obs_shape``, ``global_obs_shape`` and ``alone_obs_shape``; of several actions with
        the same choices ``num_branches`` and ``action_bins_per_branch``.
    """
    parts = getattr(observations, "spaces", observations)
    if isinstance(parts, Mapping):
        if "agent_state" not in parts:
            return _action_shapes(actions)
        agents, *own = parts["agent_state"].shape
        shapes = {"agent_num": agents, "obs_shape": _short(own), "agent_obs_shape": _short(own)}
        if "agent_alone_state" in parts:
            shapes["alone_obs_shape"] = _short(parts["agent_alone_state"].shape[1:])
        if "global_state" in parts:
            state = list(parts["global_state"].shape)
            # Told to all, or to each by itself.
            shapes["global_obs_shape"] = _short(state[1:] if state[:-1] == [agents] else state)
        return {**shapes, **_action_shapes(actions, agents)}
    shape = [int(size) for size in getattr(parts, "shape", None) or ()]
    if players > 1:
        shown = shape[1:] if shape[:1] == [players] else []
        return {
            **({"obs_shape": _short(shown)} if shown else {}),
            **_action_shapes(actions, players),
        }
    colours_last = len(shape) == 3 and shape[-1] in (1, 3, 4) and shape[0] not in (1, 3, 4)
    seen = {"obs_shape": _short(shape)} if shape and not colours_last else {}
    return {**seen, **_action_shapes(actions)}


def _action_shapes(space: Any, agents: int | None = None) -> dict[str, Any]:
    kind = _type_of(space)
    if kind == "Dict" and {"action_type", "action_args"} == set(space.spaces):
        return {"action_shape": _hybrid(space)}
    if kind not in _EXPECTED:
        return {}
    shape, _ = _EXPECTED[kind](space)
    if agents is None:
        shapes = {"action_shape": _short([math.prod(shape)] if kind == "Box" else shape)}
        if kind == "MultiDiscrete" and len(set(shape)) == 1:
            shapes.update(num_branches=len(shape), action_bins_per_branch=shape[0])
        return shapes
    if kind == "Box" and shape[0] == agents:
        return {"action_shape": math.prod(shape[1:])}
    same = kind == "MultiDiscrete" and len(shape) == agents and len(set(shape)) == 1
    return {"action_shape": shape[0]} if same else {}


def action_space_of(actions: Any) -> str | None:
    """``discrete``, ``continuous`` or ``hybrid``; ``None`` for a space of another kind."""
    kind = _kind_of(actions)
    return "discrete" if kind == "multi-discrete" else kind


def check_fit(cfg: Mapping[str, Any], env: Any) -> None:
    """Compare ``model.obs_shape`` and ``model.action_shape`` with what environments give and take.

    What cannot be compared passes: observations of several arrays that are not a team's,
    environments of several players, spaces of other kinds.

    Args:
        cfg: The policy's config.
        env: A launched env manager.

    Raises:
        ConfigError: They differ, or the policy does not choose such actions; names the key, its
            value and what the environments have.
    """
    model = cfg.get("model") or {}
    space = getattr(env, "action_space", None)
    if cfg.get("multi_agent") or "agent_num" in model:
        _check_team(model, _first_obs(env), space)
        return
    check_kind(cfg.get("type"), space)
    _check_observations(model.get("obs_shape"), _first_obs(env))
    _check_actions(model, space, cfg.get("action_space"))


def policies_for(kind: str) -> list[str]:
    """Types of policies that say they choose actions of a kind of `KINDS`."""
    types = (name for name in POLICY_REGISTRY.query() if not name.endswith("_command"))
    return sorted(
        name for name in types if kind in getattr(POLICY_REGISTRY.get(name), "actions", ())
    )


def check_kind(type_: Any, space: Any) -> None:
    """Compare the kind of actions that a type of policy chooses with an action space.

    Raises:
        ConfigError: The policy does not choose such; names policies that do.
    """
    if type_ not in POLICY_REGISTRY or (kind := _kind_of(space)) is None:
        return
    served = getattr(POLICY_REGISTRY.get(type_), "actions", ())
    if served and kind not in served:
        own = " or ".join(name for name in served if name != "multi-agent") or "a team's"
        raise ConfigError(
            f"policy {type_.removesuffix('_command')!r} chooses {own} actions, and "
            f"the environments' action space is {space}, which is {kind}; policies for it: "
            f"{', '.join(policies_for(kind))}"
        )


def _type_of(space: Any) -> str:
    """The type of a space by name: its own, or that of gymnasium which it derives from."""
    names = [cls.__name__ for cls in type(space).__mro__]
    return next((name for name in names if name in _TYPES), names[0])


def _kind_of(space: Any) -> str | None:
    name = _type_of(space)
    if name == "Box":
        return "continuous" if np.dtype(space.dtype).kind == "f" else None
    if name == "Dict":
        return "hybrid" if "action_type" in space.spaces else None
    return {"Discrete": "discrete", "MultiDiscrete": "multi-discrete"}.get(name)


def check_own_network(policy: Any, env: Any) -> None:
    """Try a user's own network with an observation of the environments; see `try_network`.

    Args:
        policy: Whose network may be a user's own.
        env: A launched env manager.

    Raises:
        ConfigError: It does not tell what the policy needs to know.
    """
    obs = _first_obs(env)
    if isinstance(obs, np.ndarray):
        policy.check_network(model_shapes(obs, getattr(env, "action_space", None)), obs)


def _first_obs(env: Any) -> Any:
    ready = getattr(env, "ready_obs", None)
    rows = list(ready.values()) if isinstance(ready, Mapping) else ready
    return rows[0] if rows is not None and len(rows) else None


def _check_team(model: Mapping[str, Any], obs: Any, space: Any) -> None:
    if not isinstance(obs, Mapping):
        return
    for key, expected in model_shapes(obs, space).items():
        shape = model.get(key)
        if isinstance(shape, int | Sequence | np.integer) and _as_list(shape) != _as_list(expected):
            raise ConfigError(
                f"policy.model.{key}={_plain(shape)} does not fit the environments: set it to "
                f"{expected} (their observations have the shapes "
                f"{ {name: list(part.shape) for name, part in obs.items()} }, their action space "
                f"is {space})"
            )


def _check_observations(shape: Any, obs: Any) -> None:
    if not isinstance(obs, np.ndarray) or not isinstance(shape, int | Sequence | np.integer):
        return
    wanted = _as_list(shape)
    if wanted != list(obs.shape):
        raise ConfigError(
            f"policy.model.obs_shape={_plain(shape)} does not fit the environments: their "
            f"observations have the shape {list(obs.shape)}; set it to {_short(obs.shape)}, or "
            "change the shape with an environment wrapper"
        )


def _check_actions(model: Mapping[str, Any], space: Any, action_space: Any) -> None:
    shape, kind = model.get("action_shape"), _type_of(space)
    if kind == "Dict" and {"action_type", "action_args"} == set(space.spaces):
        _check_hybrid(shape, space)
    if "num_branches" in model and kind == "MultiDiscrete":
        _check_branches([model[name] for name in ("num_branches", "action_bins_per_branch")], space)
    if not isinstance(shape, int | Sequence | np.integer) or kind not in _EXPECTED:
        return
    expected, what = _EXPECTED[kind](space)
    is_continuous = (model.get("action_space") or action_space) in _CONTINUOUS
    if is_continuous != (kind == "Box"):
        if is_continuous:
            raise ConfigError(
                f"policy.model.action_space={model.get('action_space') or action_space!r} does not "
                f"fit the environments: their action space is {space}, and that takes 'discrete'"
            )
        return  # a network may have its own words for it
    wanted = _as_list(shape)
    if wanted != expected and [math.prod(wanted)] != [math.prod(expected)] * (kind == "Box"):
        raise ConfigError(
            f"policy.model.action_shape={_plain(shape)} does not fit the environments: their "
            f"action space is {space}, {what}; set it to {_short(expected)}"
        )


def _check_branches(wanted: list[Any], space: Any) -> None:
    sizes = [int(n) for n in np.ravel(space.nvec)]
    if [wanted[1]] * wanted[0] != sizes:
        raise ConfigError(
            f"policy.model.num_branches={wanted[0]} with action_bins_per_branch={wanted[1]} does "
            f"not fit the environments: their actions have {len(sizes)} dimensions with "
            f"{', '.join(map(str, sizes))} choices"
        )


def _check_hybrid(shape: Any, space: Any) -> None:
    expected = _hybrid(space)
    wanted = {name: shape.get(name) for name in expected} if isinstance(shape, Mapping) else shape
    if wanted is None or wanted == expected:
        return
    if isinstance(wanted, Mapping) and wanted["action_type_shape"] == expected["action_type_shape"]:
        args = wanted["action_args_shape"]
        if not isinstance(args, int) and math.prod(args or ()) == expected["action_args_shape"]:
            return
    raise ConfigError(
        f"policy.model.action_shape={_plain(shape)} does not fit the environments: their action "
        f"space is {space}, a type with arguments; set it to {expected}"
    )


def _hybrid(space: Any) -> dict[str, int]:
    return {
        "action_type_shape": int(space["action_type"].n),
        "action_args_shape": math.prod(space["action_args"].shape),
    }


def _discrete(space: Any) -> tuple[list[int], str]:
    return [int(space.n)], f"which has {int(space.n)} actions"


def _multi_discrete(space: Any) -> tuple[list[int], str]:
    return [int(n) for n in np.ravel(space.nvec)], "which has several discrete actions"


def _box(space: Any) -> tuple[list[int], str]:
    shape = [int(size) for size in space.shape] or [1]
    return shape, f"in which an action has {math.prod(shape)} numbers"


# By name: old environments have the spaces of another package.
_EXPECTED = {"Discrete": _discrete, "MultiDiscrete": _multi_discrete, "Box": _box}


def _as_list(shape: Any) -> list[int]:
    return [int(shape)] if isinstance(shape, int | np.integer) else [int(size) for size in shape]


def _short(shape: Sequence[int]) -> Any:
    return shape[0] if len(shape) == 1 else list(shape)


def _plain(shape: Any) -> Any:
    return list(shape) if isinstance(shape, Sequence) else shape

"""Checks whether a policy's network fits the shapes of its environments."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs.env.answers import obs_fault
from ding.utils import POLICY_REGISTRY
from ding.utils.default_helper import sizes_of
from ding.utils.errors import ConfigError

#: Kinds of actions; a hybrid one has a choice (``action_type``) and arguments (``action_args``).
KINDS = ("discrete", "multi-discrete", "continuous", "hybrid", "multi-agent")
_MOST_CHOICES = 1 << 16  # a larger value is a bound, not a number of choices
_COLOURS = (1, 3, 4)
_TYPES = ("Box", "Dict", "Discrete", "MultiDiscrete")
_CONTINUOUS = ("continuous", "regression", "reparameterization")


def model_shapes(observations: Any, actions: object, players: int = 1) -> dict[str, Any]:
    """The keys of ``policy.model`` that follow from an environment; only those that are certain.

    Args:
        observations: A space, or an observation: an array or a dict of arrays.
        actions: The action space.
        players: Number of players; if several, they are the first axis.

    Returns:
        ``obs_shape`` and ``action_shape`` where they can be determined: not for images with
        channels last, nor for dicts that are not a team's. For a team also ``agent_num``,
        ``agent_obs_shape``, ``global_obs_shape`` and ``alone_obs_shape``; for several actions with
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
            # One global state shared by all agents, or one per agent.
            shapes["global_obs_shape"] = _short(state[1:] if state[:-1] == [agents] else state)
        return {**shapes, **_action_shapes(actions, agents)}
    shape = [int(size) for size in getattr(parts, "shape", None) or ()]
    if players > 1:
        shown = shape[1:] if shape[:1] == [players] else []
        return {
            **({"obs_shape": _short(shown)} if shown else {}),
            **_action_shapes(actions, players),
        }
    colours_last = len(shape) == 3 and shape[-1] in _COLOURS and shape[0] not in _COLOURS
    seen = {"obs_shape": _short(shape)} if shape and not colours_last else {}
    return {**seen, **_action_shapes(actions)}


def _action_shapes(space: Any, agents: int | None = None) -> dict[str, Any]:
    kind, sizes = _type_of(space), _sizes(space)
    if kind == "Dict" and {"action_type", "action_args"} == set(space.spaces):
        args = math.prod(space["action_args"].shape)
        choices = int(space["action_type"].n)
        return {"action_shape": {"action_type_shape": choices, "action_args_shape": args}}
    if not sizes:
        return {}
    same = len(set(sizes)) == 1
    if agents is None:
        shapes = {"action_shape": math.prod(sizes) if kind == "Box" else _short(sizes)}
        if kind == "MultiDiscrete" and same:
            shapes.update(num_branches=len(sizes), action_bins_per_branch=sizes[0])
        return shapes
    if kind == "Box" and sizes[0] == agents:
        return {"action_shape": math.prod(sizes[1:])}
    return {"action_shape": sizes[0]} if kind == "MultiDiscrete" and same else {}


def _sizes(space: Any) -> list[int]:
    """Number of choices of each part of an action, or the shape of a real action; else empty."""
    kind = _type_of(space)
    if kind == "Discrete":
        return [int(space.n)]
    if kind == "MultiDiscrete":
        return [int(n) for n in np.ravel(space.nvec)]
    return [int(size) for size in space.shape] or [1] if kind == "Box" else []


def action_space_of(actions: object) -> str | None:
    """``discrete``, ``continuous`` or ``hybrid``; ``None`` for other spaces."""
    kind = _kind_of(actions)
    return "discrete" if kind == "multi-discrete" else kind


def choices_of(space: Any) -> int | None:
    """Number of discrete actions of a ``Box`` with one number from 0 to a positive bound."""
    if _type_of(space) != "Box" or math.prod(space.shape) != 1 or _kind_of(space) is not None:
        return None
    low, high = int(space.low.item()), int(space.high.item())
    return high + 1 if low == 0 and 0 < high < _MOST_CHOICES else None


def shown(space: object, obs: Any) -> Any:
    """The actual format of an environment's observations: its space, or the observation returned by
    ``reset`` if the two differ."""
    parts: Any = getattr(space, "spaces", None)
    if isinstance(obs, Mapping):
        fits = isinstance(parts, Mapping) and obs.keys() == parts.keys()
        fits = fits and all(np.shape(obs[name]) == parts[name].shape for name in obs)
        return space if fits or not all(hasattr(part, "shape") for part in obs.values()) else obs
    return (
        obs if isinstance(obs, np.ndarray) and getattr(space, "shape", None) != obs.shape else space
    )


def check_fit(cfg: Mapping[str, Any], env: Any, own_env: bool = False) -> list[str]:
    """Compare ``model.obs_shape`` and ``model.action_shape`` with the environments' shapes.

    Shapes that cannot be compared pass: observations of several arrays that are not a team's,
    environments with several players, other kinds of spaces.

    Args:
        cfg: The policy's config.
        env: A launched env manager.
        own_env: Whether the environments are of a custom class, which may declare a ``Box`` for
            discrete actions.

    Returns:
        The assumptions made, one line each.

    Raises:
        ConfigError: The shapes differ, or the policy does not support such actions; names the key,
            its value and the environments' shape.
    """
    assumed: list[str] = []
    model, action_space = cfg.get("model") or {}, cfg.get("action_space")
    space, obs = getattr(env, "action_space", None), _first_obs(env)
    is_team = cfg.get("multi_agent") or "agent_num" in model
    known = POLICY_REGISTRY.get(cfg["type"]) if cfg.get("type") in POLICY_REGISTRY else None
    is_ours = getattr(known, "__module__", "").startswith("ding.")
    if is_ours and isinstance(obs, tuple | list | str | None):
        declared = getattr(env, "observation_space", None)
        raise ConfigError(space_fault("observation_space", declared) or obs_fault(obs, declared))
    if is_team and not isinstance(obs, Mapping):
        return assumed
    expected = model_shapes(obs, space)
    if not is_team:
        if own_env and numbers_for_choices(cfg.get("type"), space) and "action_shape" in model:
            assumed.append(
                f"the environments declare actions as {space}, and the policy "
                f"{cfg['type'].removesuffix('_command')!r} chooses discrete ones: taken as "
                f"policy.model.action_shape={_plain(model['action_shape'])} choices"
            )
        else:
            check_kind(cfg.get("type"), space)
        if isinstance(obs, np.ndarray):
            expected["obs_shape"] = _short(obs.shape)
        _check_branches(model, space)
        if not _comparable(model, model.get("action_space") or action_space, space):
            expected.pop("action_shape", None)
    for key, wanted in expected.items():
        if not _agree(
            model.get(key), wanted, is_number="action" in key and _type_of(space) == "Box"
        ):
            parts = obs if isinstance(obs, Mapping) else {"obs": obs}
            shapes = ", ".join(f"{name} {list(np.shape(part))}" for name, part in parts.items())
            raise ConfigError(
                f"policy.model.{key}={_plain(model[key])} does not fit the environments: set it "
                f"to {wanted}, or use a wrapper (their observations: {shapes}; their action space: "
                f"{space})"
            )
    return assumed


def numbers_for_choices(type_: Any, space: Any) -> bool:
    """Whether an action space is a ``Box``, while this policy type supports only choices."""
    served = getattr(POLICY_REGISTRY.get(type_), "actions", ()) if type_ in POLICY_REGISTRY else ()
    return "discrete" in served and "continuous" not in served and _type_of(space) == "Box"


def policies_for(kind: str) -> list[str]:
    """Policy types that declare support for a kind of actions of `KINDS`."""
    types = (name for name in POLICY_REGISTRY.query() if not name.endswith("_command"))
    return sorted(
        name for name in types if kind in getattr(POLICY_REGISTRY.get(name), "actions", ())
    )


def check_kind(type_: Any, space: Any, among: Collection[str] | None = None) -> None:
    """Check that a policy type supports an action space.

    Args:
        among: The policies that the error may suggest; by default all.

    Raises:
        ConfigError: The policy does not support such actions; names policies that do.
    """
    if type_ not in POLICY_REGISTRY or (kind := _kind_of(space)) is None:
        return
    if np.any(getattr(space, "start", 0)):
        raise ConfigError(
            f"the environments' action space is {space}, and policies choose from 0 on: put them "
            "in a FlattenActionWrapper, or declare no start and add it in step()"
        )
    served = getattr(POLICY_REGISTRY.get(type_), "actions", ())
    if served and kind not in served:
        own = " or ".join(name for name in served if name != "multi-agent") or "a team's"
        raise ConfigError(
            f"policy {type_.removesuffix('_command')!r} chooses {own} actions, and "
            f"the environments' action space is {space}, which is {kind}; policies for it: "
            + ", ".join(one for one in policies_for(kind) if among is None or one in among)
        )


def space_fault(name: str, space: Any) -> str | None:
    """Why no policy of this package can use a space, and the fix; ``None`` if some policy may.

    Args:
        name: ``observation_space`` or ``action_space``.
    """
    kind, is_obs = _type_of(space), name == "observation_space"
    if space is None or not hasattr(space, "contains"):
        example = "Box(-1, 1, (4,))" if is_obs else "Discrete(2)"
        return (
            f"the environment's {name} is {space!r}: set self.{name} in its __init__, to "
            f"gymnasium.spaces.{example} for example"
        )
    what = f"the environment's {name} is {space}"
    if is_obs and kind == "Box" and len(space.shape) == 3 and space.shape[-1] in _COLOURS:
        return (
            f"{what}, images with their colours last, and networks take them first: set "
            "env.env_wrapper=['channel_first']"
        )
    if is_obs and kind in ("Dict", "Tuple"):
        return (
            f"{what}, and networks take one array: set env.env_wrapper=['flatten_obs'] "
            "(FlattenObsWrapper in code)"
        )
    if kind in ("Dict", "Tuple", "MultiBinary") and "action_type" not in getattr(
        space, "spaces", ()
    ):
        return (
            f"{what}, and policies choose from Discrete, MultiDiscrete or Box: set "
            "env.env_wrapper=['flatten_action'] (FlattenActionWrapper in code), which takes choices"
        )
    if kind in ("Text", "Graph", "Sequence", "OneOf"):
        wrapper = "TransformObservation" if is_obs else "TransformAction"
        return f"{what}, which no policy takes: make it an array by gymnasium.wrappers.{wrapper}"
    return None


def _type_of(space: object) -> str:
    """Name of a space's type: its own, or that of its gymnasium base class."""
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
    """Run a custom network with an observation of the environments; see `try_network`.

    Args:
        policy: The policy, whose network may be custom.
        env: A launched env manager.

    Raises:
        ConfigError: The network does not define everything that the policy needs.
    """
    obs = _first_obs(env)
    if isinstance(obs, np.ndarray | Mapping):
        policy.check_network(model_shapes(obs, getattr(env, "action_space", None)), obs)


def _first_obs(env: Any) -> Any:
    ready = getattr(env, "ready_obs", None)
    rows = list(ready.values()) if isinstance(ready, Mapping) else ready
    return rows[0] if rows is not None and len(rows) else None


def _comparable(model: Mapping[str, Any], word: Any, space: object) -> bool:
    """Whether network and environments both have real actions, or both do not."""
    kind = _type_of(space)
    if not _sizes(space) or (word in _CONTINUOUS) == (kind == "Box"):
        return True
    if kind != "Box" and "action_shape" in model:
        raise ConfigError(
            f"policy.model.action_space={word!r} does not fit the environments: their action space "
            f"is {space}, and that takes 'discrete'"
        )
    return False  # a network may use other names


def _check_branches(model: Mapping[str, Any], space: object) -> None:
    sizes = _sizes(space)
    if "num_branches" in model and _type_of(space) == "MultiDiscrete" and len(set(sizes)) > 1:
        raise ConfigError(
            f"policy.model.num_branches={model['num_branches']} does not fit the environments: "
            f"their actions have {len(sizes)} dimensions with {', '.join(map(str, sizes))} "
            "choices, not as many in each"
        )


def _agree(given: object, wanted: object, is_number: bool) -> bool:
    """Whether a shape equals the wanted one, or cannot be compared with it; with ``is_number``,
    only the number of elements is compared."""
    if given is None:
        return True
    if isinstance(wanted, Mapping):
        return isinstance(given, Mapping) and all(
            name in given and _agree(given[name], size, name == "action_args_shape")
            for name, size in wanted.items()
        )
    if not isinstance(given, int | Sequence | np.ndarray | np.generic):
        return True
    shape, expected = sizes_of(given), sizes_of(wanted)
    return shape == expected or (is_number and math.prod(shape) == math.prod(expected))


def _short(shape: Sequence[int]) -> Any:
    return shape[0] if len(shape) == 1 else list(shape)


def _plain(shape: Any) -> Any:
    return list(shape) if isinstance(shape, Sequence) else shape

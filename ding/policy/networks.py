"""What policies ask of their networks, and the check of a user's own network against it.

A policy declares its `Call`s; docs/own_network.md lists those of all of them, and a test holds the
page against them.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from ding.data import tree_map
from ding.utils.errors import ConfigError

#: Rows of the batch, and steps of the sequences, that a network of the user is tried with.
_ROWS, _STEPS = 3, 2
#: Observations; an environment's may be dicts of arrays.
OBS = "B *obs_shape"
#: The states of a recurrent network, a list with one for each row; None is one that begins.
STATES = "states"


@dataclass(frozen=True)
class Call:
    """One way in which a policy calls its network.

    Shapes are words: ``B`` rows of a batch, ``T`` steps of a sequence, ``M`` agents of a team,
    ``N`` actions to choose from, ``A`` numbers of an action; other letters are the network's own.

    Attributes:
        gives: What has to come back: shapes by name, also nested, or a pair of shapes.
        mode: Which method of the network is meant, ``forward(inputs, mode=...)``; empty for none.
        takes: The inputs: observations, or a dict of them and more.
        is_step: Whether a recurrent network is asked for one step, with ``inference=True``.
    """

    gives: Mapping[str, Any]
    mode: str = ""
    takes: str | Mapping[str, Any] = OBS
    is_step: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments."""
        return {
            **({"mode": self.mode} if self.mode else {}),
            **({"inference": True} if self.is_step else {}),
        }

    def of_team(self) -> "Call":
        """The same with a network of agents, which are its second axis."""
        return replace(self, gives=_with_agents(self.gives), takes=_with_agents(self.takes))

    def shown(self, sizes: Mapping[str, Any] = {}) -> str:
        """How the call looks in code, with the sizes that are known."""
        inputs = described(self.takes, sizes)
        if self.takes == OBS:
            inputs = f"obs {inputs}"
        options = (f", {name}={value!r}" for name, value in self.options.items())
        return f"forward({inputs}{''.join(options)})"


def _with_agents(shapes: Any) -> Any:
    if isinstance(shapes, Mapping):
        return {name: _with_agents(part) for name, part in shapes.items()}
    if isinstance(shapes, tuple):
        return tuple(map(_with_agents, shapes))
    return shapes if shapes == OBS else shapes.replace("B", "B M", 1)


#: A diagonal Gaussian, by name and as a pair.
GAUSSIAN = {"mu": "B A", "sigma": "B A"}
GAUSSIAN_PAIR = ("B A", "B A")
_OF_ACTOR_CRITIC = ("compute_actor", "compute_critic", "compute_actor_critic")
_LOGITS = {
    "discrete": "B N",
    "continuous": GAUSSIAN,
    "hybrid": {"action_type": "B N", "action_args": GAUSSIAN},
}


def stochastic_actor(
    *kinds: str, modes: Sequence[str] = _OF_ACTOR_CRITIC
) -> dict[str, tuple[Call, ...]]:
    """By kind of action: the calls of networks that tell a ``logit``, and perhaps a ``value``."""

    def call(kind: str, mode: str) -> Call:
        logit: dict[str, Any] = {"logit": _LOGITS[kind]}
        value: dict[str, Any] = {"value": "B"}
        gives = {"compute_critic": value, "compute_actor_critic": {**logit, **value}}
        return Call(gives.get(mode, logit), mode)

    return {kind: tuple(call(kind, mode) for mode in modes) for kind in kinds}


def actor_and_q_critic(
    actor: Mapping[str, Any], action: Any = "B A", q_value: str = "B", **more: Any
) -> tuple[Call, ...]:
    """The calls of networks with an actor and critics of its actions.

    Args:
        actor: What the actor tells.
        action: What critics are told of actions.
        q_value: What a critic tells.
        more: What critics tell besides.
    """
    takes = {"obs": OBS, "action": action} if isinstance(action, str) else {"obs": OBS, **action}
    return (
        Call(actor, "compute_actor"),
        Call({"q_value": q_value, **more}, "compute_critic", takes),
    )


def require_parts(policy: Any, model: nn.Module, calls: Sequence[Call]) -> None:
    """Refuse a network whose ``forward`` takes no mode, or without parts that are optimised.

    Raises:
        ConfigError: Names what is missing, and the modes that the policy uses.
    """
    who, name = type(policy).__name__, type(model).__name__
    modes = [call.mode for call in calls if call.mode]
    parameters = inspect.signature(model.forward).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    if modes and "mode" not in parameters and not takes_any:
        raise ConfigError(
            f"{name}.forward({', '.join(parameters)}) has no 'mode': {who} needs a network with "
            f"forward(x, mode) and the modes {_listed(modes)} (docs/own_network.md)"
        )
    missing = [part for part in policy.network_parts if not hasattr(model, part)]
    if missing and "learn" in policy._enable_field:
        raise ConfigError(
            f"{who} needs a network with the modes {_listed(modes)} and the parts "
            f"{_listed(policy.network_parts)}; {name} lacks {missing} (docs/own_network.md)"
        )


def try_network(policy: Any, model: nn.Module, shapes: Mapping[str, Any], obs: Any = None) -> None:
    """Ask a network once in each way, with made-up inputs, and compare what it returns.

    What cannot be made up passes: shapes that are not known, and without an observation those of
    several arrays. Nothing of the network or the random generators changes.

    Args:
        shapes: ``obs_shape`` and ``action_shape``, as far as they are known.
        obs: An observation of the environments, an array or a dict of arrays. Then ``shapes`` are
            theirs too, and an error of the network is one; without, ``shapes`` is what a config
            says, of which a user's network need not know.

    Raises:
        ConfigError: Names the call, what came, what was expected, and how to mend it.
    """
    sizes = _sizes(shapes)
    if isinstance(obs, Mapping):
        sizes["*obs_shape"] = obs
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            for call in policy.network_calls:
                inputs = _inputs(call.takes, sizes, obs, policy)
                if inputs is not None:
                    _try_call(policy, model, call, inputs, sizes, certain=obs is not None)
    finally:
        model.train(was_training)


def _try_call(
    policy: Any,
    model: nn.Module,
    call: Call,
    inputs: Any,
    sizes: Mapping[str, Any],
    certain: bool,
) -> None:
    try:
        output = model(inputs, **call.options)
    except Exception as error:  # whatever a user's code raises
        if not certain:
            return
        raise ConfigError(_failed(policy, model, call, sizes, error)) from error
    wrong = _difference(call.gives, output, sizes if certain else {}, "")
    if wrong:
        raise ConfigError(
            f"{_needed(policy, call, sizes)}; {type(model).__name__}.forward returned "
            f"{_shapes_of(output)}: {wrong} (docs/own_network.md)"
        )


def _failed(
    policy: Any, model: nn.Module, call: Call, sizes: Mapping[str, Any], error: Exception
) -> str:
    return (
        f"{_needed(policy, call, sizes)}; {type(model).__name__}.forward failed with "
        f"{type(error).__name__}: {error} (docs/own_network.md)"
    )


def _needed(policy: Any, call: Call, sizes: Mapping[str, Any]) -> str:
    who = type(policy).__name__.replace("CommandMode", "").removesuffix("Policy")
    return f"{who}'s model must return {described(call.gives, sizes)} from {call.shown(sizes)}"


# ---------------------------------------------------------------------- sizes and inputs


def _sizes(shapes: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes by letter, where they are known; ``*obs_shape`` is a tuple."""
    sizes: dict[str, Any] = {"M": shapes["agent_num"]} if "agent_num" in shapes else {}
    obs, action = shapes.get("obs_shape"), shapes.get("action_shape")
    if isinstance(obs, int | np.integer | list | tuple):
        sizes["*obs_shape"] = tuple(int(size) for size in np.ravel(obs))
    if isinstance(action, Mapping):
        sizes["N"] = int(action["action_type_shape"])
        sizes["A"] = int(np.prod(action["action_args_shape"]))
    elif isinstance(action, int | np.integer | list | tuple):
        sizes["A"] = int(np.prod(action))
        if np.size(action) == 1:
            sizes["N"] = sizes["A"]  # a policy has either choices or numbers
    return sizes


def _inputs(takes: Any, sizes: Mapping[str, Any], obs: Any, policy: Any) -> Any:
    """Zeros of the shapes that a call takes; ``None`` if one is not known."""
    if takes == STATES:
        return [None] * _ROWS
    if isinstance(takes, Mapping):
        parts = {name: _inputs(part, sizes, obs, policy) for name, part in takes.items()}
        return None if any(part is None for part in parts.values()) else parts
    known = {**sizes, "B": _ROWS, "T": _STEPS}
    *batch, last = takes.split()
    if last == "*obs_shape" and obs is not None:
        axes = [known[letter] for letter in batch]
        return tree_map(lambda leaf: _repeated(leaf, axes, policy._device), obs)
    shape: list[int] = []
    for letter in (*batch, last):
        if letter not in known:
            return None
        size = known[letter]
        shape += size if isinstance(size, tuple) else [size]
    return torch.zeros(shape, device=policy._device)


def _repeated(leaf: Any, axes: Sequence[int], device: str) -> torch.Tensor:
    rows = np.broadcast_to(leaf, (*axes, *np.shape(leaf)))
    return torch.tensor(rows, dtype=torch.float32, device=device)


# ---------------------------------------------------------------------- comparing


def _difference(wanted: Any, got: Any, sizes: Mapping[str, Any], name: str) -> str:
    """What is wrong and how to mend it; empty if nothing is."""
    if isinstance(wanted, Mapping):
        if not isinstance(got, Mapping):
            return f"return a dict, {described(wanted, sizes)}{name and f', as {name!r}'}"
        if missing := [key for key in wanted if key not in got]:
            return f"it lacks {_listed(map(repr, missing))}"
        parts = (_difference(wanted[key], got[key], sizes, key) for key in wanted)
        return next(filter(None, parts), "")
    if wanted == STATES:
        fits = isinstance(got, Sequence) and len(got) == _ROWS and None not in got
        return "" if fits else f"{name!r} has to be a list with a state for each of the B rows"
    if isinstance(wanted, tuple):
        if not isinstance(got, Sequence) or len(got) != len(wanted):
            return f"{name!r} has to be mu and sigma, {described(wanted, sizes)}"
        parts = (_difference(one, part, sizes, name) for one, part in zip(wanted, got))
        return next(filter(None, parts), "")
    if isinstance(got, Sequence) and not isinstance(got, str) and got:
        # One for each of several choices or critics.
        different = {letter: size for letter, size in sizes.items() if letter != "N"}
        return next(filter(None, (_difference(wanted, one, different, name) for one in got)), "")
    if not isinstance(got, torch.Tensor):
        return f"{name!r} has to be a tensor {_brackets(wanted, sizes)}"
    return _wrong_shape(wanted, got, sizes, name)


def _wrong_shape(wanted: str, got: torch.Tensor, sizes: Mapping[str, Any], name: str) -> str:
    known = {**sizes, "B": _ROWS, "T": _STEPS}
    expected = [known.get(letter) for letter in wanted.split()]
    shape = list(got.shape)
    fits = len(shape) == len(expected) and all(
        size is None or size == own for size, own in zip(expected, shape)
    )
    if fits:
        return ""
    if len(shape) > len(expected) and 1 in shape[1:]:
        return f"take the axis of size 1 out of {name!r}, as with .squeeze({shape.index(1, 1)})"
    if len(shape) == len(expected):
        return f"{name!r} has to have the shape {_brackets(wanted, sizes)}"
    return f"{name!r} has {len(shape)} axes and has to have {len(expected)}"


# ---------------------------------------------------------------------- words


def _brackets(shape: str, sizes: Mapping[str, Any] = {}) -> str:
    if shape == STATES:
        return "[state] * B"
    *batch, last = shape.split()
    if isinstance(obs := sizes.get(last), Mapping):
        return described(tree_map(lambda leaf: " ".join([*batch, *map(str, np.shape(leaf))]), obs))
    known = {
        letter: ", ".join(map(str, size)) if isinstance(size, tuple) else str(size)
        for letter, size in sizes.items()
    }
    return f"[{', '.join(known.get(letter, letter) for letter in shape.split())}]"


def described(shapes: Any, sizes: Mapping[str, Any] = {}) -> str:
    """Shapes as code would say them, with the sizes that are known."""
    if isinstance(shapes, Mapping):
        parts = (f"{name!r}: {described(part, sizes)}" for name, part in shapes.items())
        return f"{{{', '.join(parts)}}}"
    if isinstance(shapes, tuple):
        return f"({', '.join(described(part, sizes) for part in shapes)})"
    return _brackets(shapes, sizes)


def _shapes_of(output: Any) -> str:
    if isinstance(output, Mapping):
        return f"{{{', '.join(f'{name!r}: {_shapes_of(part)}' for name, part in output.items())}}}"
    if isinstance(output, torch.Tensor):
        sizes = [str(size) for size in output.shape]
        rows = ["B", *sizes[1:]] if sizes[:1] == [str(_ROWS)] else sizes
        return f"a tensor [{', '.join(rows)}]"
    if isinstance(output, list | tuple):
        return f"[{', '.join(map(_shapes_of, output))}]"
    return type(output).__name__


def _listed(words: Any) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last

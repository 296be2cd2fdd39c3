"""The calls that policies make to their networks, and the check of custom networks against them.

A policy declares its `Call`s; docs/own_network.md lists all of them, and a test compares the page
with the code.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from ding.data import tree_map
from ding.utils.errors import ConfigError

#: Batch size and sequence length with which a custom network is tried.
_ROWS, _STEPS = 3, 2
#: Known sizes by axis; ``*obs_shape`` is a tuple, or an observation that is a dict.
Sizes: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Shape:
    """The shape of a tensor, axis by axis.

    Axes: ``B`` rows of a batch, ``T`` steps of a sequence, ``M`` agents of a team, ``N`` actions to
    choose from, ``A`` numbers of an action, ``*obs_shape`` the axes of an observation, which may be
    a dict of arrays; other letters are specific to the network.
    """

    axes: str

    @property
    def parts(self) -> list[str]:
        """The axes as a list."""
        return self.axes.split()

    def of_team(self) -> "Shape":
        """The shape for a team's network: agents are the second axis, except in observations."""
        return self if "*obs_shape" in self.parts else Shape(self.axes.replace("B", "B M", 1))

    def shown(self, sizes: Sizes = {}) -> str:
        """The shape in code notation, with known sizes."""
        *batch, last = self.parts
        if isinstance(obs := sizes.get(last), Mapping):
            shapes = tree_map(
                lambda leaf: Shape(" ".join([*batch, *map(str, np.shape(leaf))])), obs
            )
            return described(shapes)
        known = {
            axis: ", ".join(map(str, size)) if isinstance(size, tuple) else str(size)
            for axis, size in sizes.items()
        }
        return f"[{', '.join(known.get(axis, axis) for axis in self.parts)}]"

    def difference(self, got: Any, sizes: Sizes, name: str) -> str:
        """The error in a network's output and its fix; empty if there is none."""
        if isinstance(got, Sequence) and not isinstance(got, str) and got:
            # A list with one tensor for each of several choices or critics.
            different = {axis: size for axis, size in sizes.items() if axis != "N"}
            return next(filter(None, (self.difference(one, different, name) for one in got)), "")
        if not isinstance(got, torch.Tensor):
            return f"{name!r} has to be a tensor {self.shown(sizes)}"
        known = {**sizes, "B": _ROWS, "T": _STEPS}
        expected, shape = [known.get(axis) for axis in self.parts], list(got.shape)
        if len(shape) == len(expected):
            fits = all(size is None or size == own for size, own in zip(expected, shape))
            return "" if fits else f"{name!r} has to have the shape {self.shown(sizes)}"
        if len(shape) > len(expected) and 1 in shape[1:]:
            return f"take the axis of size 1 out of {name!r}, as with .squeeze({shape.index(1, 1)})"
        return f"{name!r} has {len(shape)} axes and has to have {len(expected)}"


@dataclass(frozen=True)
class States:
    """The states of a recurrent network, a list with one per row; None for an initial state."""


#: Input or output of a network: shapes by name, also nested, or a tuple.
Contract: TypeAlias = Shape | States | tuple["Contract", ...] | Mapping[str, "Contract"]

OBS, STATES = Shape("B *obs_shape"), States()
#: Per row: one number, one number per choice, the numbers of an action.
NUMBER, CHOICES, VECTOR = Shape("B"), Shape("B N"), Shape("B A")


@dataclass(frozen=True)
class Call:
    """One way in which a policy calls its network.

    Attributes:
        gives: The required outputs, by name.
        mode: The network's method, ``forward(inputs, mode=...)``; empty for none.
        takes: The inputs: observations, or a dict that contains them.
        is_step: Whether a recurrent network is called for one step, with ``inference=True``.
    """

    gives: Contract
    mode: str = ""
    takes: Contract = OBS
    is_step: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments."""
        return {
            **({"mode": self.mode} if self.mode else {}),
            **({"inference": True} if self.is_step else {}),
        }

    def of_team(self) -> "Call":
        """The call for a team's network: agents are the second axis."""
        return replace(self, gives=_with_agents(self.gives), takes=_with_agents(self.takes))

    def shown(self, sizes: Sizes = {}) -> str:
        """The call in code notation, with known sizes."""
        inputs = described(self.takes, sizes)
        if self.takes == OBS:
            inputs = f"obs {inputs}"
        options = (f", {name}={value!r}" for name, value in self.options.items())
        return f"forward({inputs}{''.join(options)})"


def _with_agents(shapes: Contract) -> Contract:
    if isinstance(shapes, Mapping):
        return {name: _with_agents(part) for name, part in shapes.items()}
    if isinstance(shapes, tuple):
        return tuple(map(_with_agents, shapes))
    return shapes.of_team() if isinstance(shapes, Shape) else shapes


#: A diagonal Gaussian, by name and as a tuple.
GAUSSIAN: Contract = {"mu": VECTOR, "sigma": VECTOR}
GAUSSIAN_PAIR: Contract = (VECTOR, VECTOR)
_OF_ACTOR_CRITIC = ("compute_actor", "compute_critic", "compute_actor_critic")
_LOGITS: dict[str, Contract] = {
    "discrete": CHOICES,
    "continuous": GAUSSIAN,
    "hybrid": {"action_type": CHOICES, "action_args": GAUSSIAN},
}


def stochastic_actor(
    *kinds: str, modes: Sequence[str] = _OF_ACTOR_CRITIC
) -> dict[str, tuple[Call, ...]]:
    """By kind of action: calls of networks that return ``logit`` and, in some modes, ``value``."""

    def call(kind: str, mode: str) -> Call:
        logit: dict[str, Contract] = {"logit": _LOGITS[kind]}
        value: dict[str, Contract] = {"value": NUMBER}
        gives = {"compute_critic": value, "compute_actor_critic": {**logit, **value}}
        return Call(gives.get(mode, logit), mode)

    return {kind: tuple(call(kind, mode) for mode in modes) for kind in kinds}


def actor_and_q_critic(
    actor: Contract, q_value: Shape = NUMBER, **more: Contract
) -> tuple[Call, ...]:
    """The calls of networks with an actor and critics of its actions.

    Args:
        actor: The actor's output.
        q_value: A critic's output.
        more: Further outputs of critics.
    """
    takes = {"obs": OBS, "action": VECTOR}
    return (
        Call(actor, "compute_actor"),
        Call({"q_value": q_value, **more}, "compute_critic", takes),
    )


def require_parts(policy: Any, model: nn.Module, calls: Sequence[Call]) -> None:
    """Reject a network whose ``forward`` takes no mode, or that lacks an optimised part.

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


def try_network(policy: Any, model: nn.Module, shapes: Sizes, obs: Any = None) -> None:
    """Make each call once with made-up inputs, and compare the outputs with the declared ones.

    Calls whose inputs cannot be made up pass: those with unknown shapes and, without an
    observation, with several arrays. The network and the random generators are not changed.

    Args:
        shapes: ``obs_shape`` and ``action_shape``, as far as they are known.
        obs: An observation of the environments, an array or a dict of arrays. If given, ``shapes``
            are the environments' too, and exceptions of the network are reported. Otherwise
            ``shapes`` come from a config, which a custom network may ignore.

    Raises:
        ConfigError: Names the call, the actual and the expected output, and the fix.
    """
    sizes = _sizes(shapes)
    if isinstance(obs, Mapping):
        sizes["*obs_shape"] = obs
    was_training = model.training
    # In training mode, batch norm would include the made-up inputs in its statistics.
    model.eval()
    try:
        # Dropout and noisy layers would advance the run's random generators.
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            for call in policy.network_calls:
                inputs = _inputs(call.takes, sizes, obs, policy)
                if inputs is not None:
                    _try_call(policy, model, call, inputs, sizes, certain=obs is not None)
    finally:
        model.train(was_training)


def _try_call(
    policy: Any, model: nn.Module, call: Call, inputs: Any, sizes: Sizes, certain: bool
) -> None:
    try:
        output = model(inputs, **call.options)
    except Exception as error:  # custom code may raise anything
        if not certain:
            return
        raise ConfigError(
            f"{_needed(policy, call, sizes)}; {type(model).__name__}.forward failed with "
            f"{type(error).__name__}: {error} (docs/own_network.md)"
        ) from error
    wrong = _difference(call.gives, output, sizes if certain else {}, "")
    if wrong:
        raise ConfigError(
            f"{_needed(policy, call, sizes)}; {type(model).__name__}.forward returned "
            f"{_shapes_of(output)}: {wrong} (docs/own_network.md)"
        )


def _needed(policy: Any, call: Call, sizes: Sizes) -> str:
    who = type(policy).__name__.replace("CommandMode", "").removesuffix("Policy")
    return f"{who}'s model must return {described(call.gives, sizes)} from {call.shown(sizes)}"


def _sizes(shapes: Sizes) -> dict[str, Any]:
    """Known sizes by letter; ``*obs_shape`` is a tuple."""
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
            sizes["N"] = sizes["A"]  # a policy has either choices or real numbers
    return sizes


def _inputs(takes: Contract, sizes: Sizes, obs: Any, policy: Any) -> Any:
    """Zeros in the shapes of a call's inputs; ``None`` if a shape is unknown."""
    if isinstance(takes, Mapping):
        parts = {name: _inputs(part, sizes, obs, policy) for name, part in takes.items()}
        return None if any(part is None for part in parts.values()) else parts
    if not isinstance(takes, Shape):
        return [None] * _ROWS
    known = {**sizes, "B": _ROWS, "T": _STEPS}
    *batch, last = takes.parts
    if last == "*obs_shape" and obs is not None:
        axes = [known[axis] for axis in batch]

        def repeated(leaf: Any) -> torch.Tensor:
            rows = np.broadcast_to(leaf, (*axes, *np.shape(leaf)))
            return torch.tensor(rows, dtype=torch.float32, device=policy._device)

        return tree_map(repeated, obs)
    if not all(axis in known for axis in takes.parts):
        return None
    shape = np.concatenate([np.ravel(known[axis]) for axis in takes.parts])
    return torch.zeros(shape.astype(int).tolist(), device=policy._device)


def _difference(wanted: Contract, got: Any, sizes: Sizes, name: str) -> str:
    """The error in an output and its fix; empty if there is none."""
    if isinstance(wanted, Shape):
        return wanted.difference(got, sizes, name)
    if isinstance(wanted, States):
        fits = isinstance(got, Sequence) and len(got) == _ROWS and None not in got
        return "" if fits else f"{name!r} has to be a list with a state for each of the B rows"
    if isinstance(wanted, Mapping):
        if not isinstance(got, Mapping):
            return f"return a dict, {described(wanted, sizes)}{name and f', as {name!r}'}"
        if missing := [key for key in wanted if key not in got]:
            return f"it lacks {_listed(map(repr, missing))}"
        parts = (_difference(wanted[key], got[key], sizes, key) for key in wanted)
        return next(filter(None, parts), "")
    if not isinstance(got, Sequence) or len(got) != len(wanted):
        return f"{name!r} has to be mu and sigma, {described(wanted, sizes)}"
    parts = (_difference(one, part, sizes, name) for one, part in zip(wanted, got))
    return next(filter(None, parts), "")


def described(shapes: Contract, sizes: Sizes = {}) -> str:
    """Shapes in code notation, with known sizes."""
    if isinstance(shapes, Mapping):
        parts = (f"{name!r}: {described(part, sizes)}" for name, part in shapes.items())
        return f"{{{', '.join(parts)}}}"
    if isinstance(shapes, tuple):
        return f"({', '.join(described(part, sizes) for part in shapes)})"
    return shapes.shown(sizes) if isinstance(shapes, Shape) else "[state] * B"


def _shapes_of(output: object) -> str:
    if isinstance(output, Mapping):
        return f"{{{', '.join(f'{name!r}: {_shapes_of(part)}' for name, part in output.items())}}}"
    if isinstance(output, torch.Tensor):
        sizes = [str(size) for size in output.shape]
        rows = ["B", *sizes[1:]] if sizes[:1] == [str(_ROWS)] else sizes
        return f"a tensor [{', '.join(rows)}]"
    if isinstance(output, list | tuple):
        return f"[{', '.join(map(_shapes_of, output))}]"
    return type(output).__name__


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last

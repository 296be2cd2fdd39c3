"""Values of attributes as plain data, and back into objects.

Only data is restored, no code: values are put into objects that exist, or into copies of a network
that exists. Whatever cannot be stored in this way is refused by name.
"""

import copy
import functools
import json
import logging
import random
import types
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from easydict import EasyDict
from torch import nn
from torch.optim import Optimizer

from ding.policy.saved_state import load_optimizer

Encoded = dict[str, Any]
ATOMS = (type(None), bool, int, float, str)
_SEQUENCES: dict[str, Callable[[list[Any]], Any]] = {
    kind.__name__: kind for kind in (list, tuple, set, frozenset)
}
MAPPINGS: dict[str, type] = {kind.__name__: kind for kind in (dict, OrderedDict, EasyDict, Counter)}
#: Types without state.
STATELESS = (
    *(type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType),
    *(functools.partial, logging.Logger, np.dtype, torch.dtype, torch.device),
)
MISSING = object()
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


class Unsaved(Exception):
    """A value cannot be stored or restored; the text names it and its place."""


class Writer:
    """Converts values to plain data.

    Args:
        shared: Objects that others hold, by their path; they are referred to, not stored.
        templates: Objects that exist whenever the state is restored; see `find_template`.
    """

    def __init__(self, shared: Mapping[str, object], templates: Sequence[object]) -> None:
        self._paths = {id(value): path for path, value in reversed([*shared.items()])}
        self._templates = templates
        self._numbers: dict[int, int] = {}
        self._held: list[object] = []  # as an id is another object's once its own is gone

    def attribute(self, name: str, value: object) -> Encoded:
        """An attribute's value; one that cannot be stored leaves nothing that others refer to.

        Raises:
            Unsaved: It cannot be stored, or not be restored.
        """
        before = dict(self._numbers)
        try:
            return self.encode(value, name)
        except Unsaved:
            self._numbers = before
            raise

    def encode(self, value: object, place: str) -> Encoded:
        """One value; `place` is where it is, for errors.

        Raises:
            Unsaved: It cannot be stored, or not be restored.
        """
        if type(value) in ATOMS:
            return {"kind": "plain", "value": value}
        if isinstance(value, STATELESS):
            return {"kind": "stateless", "type": _name_of(value)}
        if id(value) in self._paths:
            return {"kind": "shared", "path": self._paths[id(value)]}
        if id(value) in self._numbers:
            return {"kind": "again", "number": self._numbers[id(value)]}
        self._numbers[id(value)] = len(self._numbers)
        self._held.append(value)
        encoded = self._content(value, place)
        return {**encoded, "number": self._numbers[id(value)]}

    def _content(self, value: Any, place: str) -> Encoded:
        kind = type(value)
        if isinstance(value, torch.Tensor):
            return _encode_tensor(value)
        if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
            # A single number of numpy's as an array of no dimension.
            is_scalar = isinstance(value, np.generic)
            return {"kind": "array", "value": np.asarray(value), "scalar": is_scalar}
        if isinstance(value, complex | bytes):
            raw = [value.real, value.imag] if isinstance(value, complex) else list(value)
            return {"kind": type(value).__name__, "value": raw}
        if (kind.__name__ in _SEQUENCES and kind is _SEQUENCES[kind.__name__]) or kind is deque:
            items = [self.encode(item, f"{place}[{i}]") for i, item in enumerate(value)]
            limit = {"maxlen": value.maxlen} if kind is deque else {}
            return {"kind": kind.__name__, "items": items, **limit}
        if kind is MAPPINGS.get(kind.__name__):
            pairs = [
                [self.encode(key, f"{place} (a key)"), self.encode(part, f"{place}[{key!r}]")]
                for key, part in value.items()
            ]
            return {"kind": kind.__name__, "items": pairs}
        if (generator := _generator_state(value)) is not None:
            return {"kind": "generator", "type": _name_of(value), "state": generator}
        if isinstance(value, nn.Module):
            return self._encode_network(value, place)
        if has_state(value):
            return self._encode_stateful(value, place)
        raise Unsaved(f"{place} (a {_name_of(value)})")

    def _encode_network(self, network: nn.Module, place: str) -> Encoded:
        encoded = {"kind": "network", **_looks(network)}
        self._check_template(encoded, place)
        return {
            **encoded,
            "state": dict(network.state_dict()),
            "training": [module.training for module in network.modules()],
            "trained": [parameter.requires_grad for parameter in network.parameters()],
        }

    def _encode_stateful(self, value: Any, place: str) -> Encoded:
        encoded = {"kind": "stateful", **_looks(value)}
        self._check_template(encoded, place)
        if encoded["layout"] is None:
            state = self.encode(value.state_dict(), f"{place}.state_dict()")
            return {**encoded, "state": state}
        # A wrapper of a network.
        count = getattr(value, "update_count", None)
        return {**encoded, "network": self.encode(innermost(value), place), "update_count": count}

    def _check_template(self, looks: Encoded, place: str) -> None:
        # An attribute itself is made by its class; what is within a container may not be.
        if "[" in place and find_template(looks, self._templates) is None:
            raise Unsaved(f"{place} (a {looks['type']} unlike those that the policy begins with)")


def _encode_tensor(tensor: torch.Tensor) -> Encoded:
    return {
        "kind": "tensor",
        "value": tensor.detach(),
        "trained": tensor.requires_grad,
        "parameter": isinstance(tensor, nn.Parameter),
        "device": str(tensor.device),
    }


_GENERATORS: dict[str, Callable[[], Any]] = {
    "numpy.random._generator.Generator": np.random.default_rng,
    "numpy.random.mtrand.RandomState": np.random.RandomState,
    "random.Random": random.Random,
    "torch._C.Generator": torch.Generator,
}


def _generator_state(value: object) -> Any:
    """The state of a random generator; numbers of more than 64 bits as text."""
    if isinstance(value, np.random.Generator):
        return json.dumps(value.bit_generator.state, default=np.ndarray.tolist)
    if isinstance(value, np.random.RandomState):
        return json.dumps(value.get_state(legacy=False), default=np.ndarray.tolist)
    if type(value) is random.Random:
        return json.dumps(value.getstate())
    return value.get_state() if isinstance(value, torch.Generator) else None


class Reader:
    """Restores values from plain data, in place where possible.

    Args:
        shared: As for `Writer`, of the object that is loaded into; so are the templates.
    """

    def __init__(self, shared: Mapping[str, object], templates: Sequence[object]) -> None:
        self._shared, self._templates = shared, templates
        self._numbers: dict[int, Any] = {}
        self._used: set[int] = set()  # one object is not to become two

    def restore(self, encoded: Encoded, current: object, place: str) -> Any:
        """The value; `current` is what is in its place now.

        Raises:
            Unsaved: There is no object that it could be restored into.
        """
        kind = encoded["kind"]
        if kind == "plain":
            return encoded["value"]
        if kind == "stateless":
            if current is MISSING:
                raise Unsaved(f"{place} (a {encoded['type']})")
            return current
        if kind == "shared":
            if encoded["path"] not in self._shared:
                raise Unsaved(f"{place} (there is no {encoded['path']})")
            return self._shared[encoded["path"]]
        if kind == "again":
            return self._numbers[encoded["number"]]
        if id(current) in self._used:
            current = MISSING
        restored = self._restored(kind, encoded, current, place)
        self._numbers[encoded["number"]] = restored
        self._used.add(id(restored))
        return restored

    def _restored(self, kind: str, encoded: Encoded, current: Any, place: str) -> Any:
        if kind == "tensor":
            return _restore_tensor(encoded, current)
        if kind == "array":
            value = np.array(encoded["value"])
            return value[()] if encoded["scalar"] else _restore_array(value, current)
        if kind in ("complex", "bytes"):
            return complex(*encoded["value"]) if kind == "complex" else bytes(encoded["value"])
        if kind in _SEQUENCES or kind == "deque":
            return self._restore_items(kind, encoded, current, place)
        if kind in MAPPINGS:
            return self._restore_mapping(MAPPINGS[kind], encoded, current, place)
        if kind == "generator":
            return _restore_generator(encoded, current, place)
        if current is MISSING or _name_of(current) != encoded["type"]:
            template = find_template(encoded, self._templates)
            # A copy of an optimiser would not step the network that is restored.
            if template is None or encoded["layout"] is None:
                raise Unsaved(f"{place} (no {encoded['type']} exists to restore it into)")
            current = copy.deepcopy(template)
        if kind == "network":
            return _restore_network(encoded, current)
        if encoded["layout"] is not None:
            self.restore(encoded["network"], innermost(current), place)
            if encoded["update_count"] is not None:
                current.reset_state(encoded["update_count"])
            return current
        state = self.restore(encoded["state"], MISSING, place)
        if isinstance(current, Optimizer):
            load_optimizer(current, state)
        else:
            current.load_state_dict(state)
        return current

    def _restore_items(self, kind: str, encoded: Encoded, current: Any, place: str) -> Any:
        there = list(current) if type(current).__name__ == kind else []
        items = [
            self.restore(item, there[i] if i < len(there) else MISSING, f"{place}[{i}]")
            for i, item in enumerate(encoded["items"])
        ]
        if kind == "list" and isinstance(current, list):
            current[:] = items
            return current
        if kind != "deque":
            return _SEQUENCES[kind](items)
        if isinstance(current, deque) and current.maxlen == encoded["maxlen"]:
            current.clear()
            current.extend(items)
            return current
        return deque(items, encoded["maxlen"])

    def _restore_mapping(self, cls: type, encoded: Encoded, current: Any, place: str) -> Any:
        there: Any = current if type(current) is cls else {}
        items = {}
        for key, value in encoded["items"]:
            name = self.restore(key, MISSING, place)
            items[name] = self.restore(value, there.get(name, MISSING), f"{place}[{name!r}]")
        if not isinstance(current, dict) or type(current) is not cls:
            return cls(items)
        current.clear()
        current.update(items)
        return current


def _restore_network(encoded: Encoded, network: nn.Module) -> nn.Module:
    network.load_state_dict(encoded["state"])
    for module, training in zip(network.modules(), encoded["training"]):
        module.training = training
    for parameter, trained in zip(network.parameters(), encoded["trained"]):
        parameter.requires_grad_(trained)
    return network


def _restore_tensor(encoded: Encoded, current: Any) -> torch.Tensor:
    value = encoded["value"]
    fits = isinstance(current, torch.Tensor) and current.shape == value.shape
    if fits and current.dtype == value.dtype and (current.is_leaf or not current.requires_grad):
        with torch.no_grad():
            current.copy_(value)
        return current
    device = encoded["device"] if torch.cuda.is_available() else "cpu"
    tensor = value.detach().clone().to(device).requires_grad_(encoded["trained"])
    return nn.Parameter(tensor, encoded["trained"]) if encoded["parameter"] else tensor


def _restore_array(value: np.ndarray, current: Any) -> np.ndarray:
    same = isinstance(current, np.ndarray) and current.flags.writeable
    if same and current.shape == value.shape and current.dtype == value.dtype:
        current[...] = value
        return current
    return value


def _restore_generator(encoded: Encoded, current: Any, place: str) -> Any:
    kind, state = encoded["type"], encoded["state"]
    if kind not in _GENERATORS:
        raise Unsaved(f"{place} (a {kind})")
    if isinstance(state, str):
        state = json.loads(state)
    if _name_of(current) != kind:
        current = _GENERATORS[kind]()
    if isinstance(current, np.random.Generator):
        name = state["bit_generator"]
        if name not in _BIT_GENERATORS:
            raise Unsaved(f"{place} (a generator of {name})")
        if type(current.bit_generator).__name__ != name:
            current = np.random.Generator(getattr(np.random, name)())
        current.bit_generator.state = state
    elif isinstance(current, random.Random):
        version, numbers, gauss = state
        current.setstate((version, tuple(numbers), gauss))
    else:
        current.set_state(state)
    return current


def innermost(value: object) -> Any:
    """The network under wrappers of it."""
    while not isinstance(value, nn.Module) and "_model" in getattr(value, "__dict__", {}):
        value = vars(value)["_model"]
    return value


def has_state(value: object) -> bool:
    return all(callable(getattr(value, name, None)) for name in ("state_dict", "load_state_dict"))


def find_template(looks: Encoded, among: Sequence[object]) -> Any:
    """An object of the same type, a network also with the same shapes; or ``None``."""
    candidates = [*among, *(innermost(one) for one in among)]
    return next((one for one in candidates if _looks(one).items() <= looks.items()), None)


def _looks(value: object) -> Encoded:
    """Type, and of a network the names and shapes of its state."""
    network = innermost(value)
    if not isinstance(network, nn.Module):
        return {"type": _name_of(value), "layout": None}
    state = network.state_dict()
    layout = [[name, list(getattr(part, "shape", ()))] for name, part in state.items()]
    return {"type": _name_of(value), "layout": json.dumps(layout)}


def _name_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"

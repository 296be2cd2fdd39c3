"""Saves and restores attributes that a subclass adds to a built-in class, as plain data.

Only data is restored, no code: values are loaded into existing objects, or into copies of an
existing network. Attributes that cannot be stored in this way are reported.
"""

import copy
import dis
import functools
import inspect
import json
import logging
import random
import types
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from easydict import EasyDict
from torch import nn
from torch.optim import Optimizer

from ding.policy.saved_state import load_optimizer

logger = logging.getLogger(__name__)

Encoded = dict[str, Any]
_ATOMS = (type(None), bool, int, float, str)
_SEQUENCES: dict[str, Callable[[list[Any]], Any]] = {
    kind.__name__: kind for kind in (list, tuple, set, frozenset)
}
_MAPPINGS: dict[str, type] = {
    kind.__name__: kind for kind in (dict, OrderedDict, EasyDict, Counter)
}
#: Types of objects without state.
_STATELESS = (
    *(type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType),
    *(functools.partial, logging.Logger, np.dtype, torch.dtype, torch.device),
)
_MISSING = object()


class OwnState:
    """The attributes that an object's class, or a base outside this package, adds.

    Numbers, strings and containers of them are not saved if they still have their initial value:
    they follow from the config, which may change before a run is resumed.

    Args:
        owner: The object, just after its construction.
        covered: Attributes that are saved elsewhere in its state.
        with_bases: Whether changed plain values of our base classes are saved as well.
    """

    def __init__(
        self, owner: object, covered: Collection[str] = (), with_bases: bool = False
    ) -> None:
        self._covered, self._with_bases = frozenset(covered), with_bases
        self._theirs = [cls for cls in type(owner).__mro__[:-1] if not _is_ours(cls)]
        # A copy, since lists and dicts may be modified in place.
        self._initial = copy.deepcopy(self._plain_values(owner)) if self.applies else {}
        self._made: list[object] | None = None
        #: Attributes that the last `save` could not store, or `load` could not restore.
        self.unsaved: list[str] = []

    @property
    def applies(self) -> bool:
        """Whether the class, or one of its bases, is outside this package."""
        return bool(self._theirs)

    def defines(self, name: str) -> bool:
        """Whether such a class defines the method."""
        return any(name in vars(cls) for cls in self._theirs)

    def save(self, owner: object) -> dict[str, Encoded] | None:
        """Values by attribute; ``None`` if the class is of this package."""
        if not self.applies:
            return None
        writer = _Writer(_shared(owner, self._own_names(owner)), self._templates(owner))
        state: dict[str, Encoded] = {}
        self.unsaved = []
        for name, value in self._kept(owner):
            before = dict(writer.places)
            try:
                state[name] = writer.encode(value, name)
            except _Unsaved as error:
                writer.places = before  # drop references to values that are not stored
                self.unsaved.append(str(error))
        return state

    def load(self, owner: object, state: Mapping[str, Encoded], adds: bool = True) -> None:
        """Restore a result of `save`; an attribute that cannot be restored is a warning.

        Args:
            adds: Whether to add attributes that the object does not have yet.
        """
        if not self.applies:
            return
        own = self._own_names(owner)
        reader = _Reader(_shared(owner, own), self._templates(owner))
        for name in own:
            # Attributes missing in the state had their initial value, which this object may have
            # changed since.
            if name in self._initial and name not in state:
                setattr(owner, name, copy.deepcopy(self._initial[name]))
        failed = []
        for name, encoded in state.items():
            current = vars(owner).get(name, _MISSING)
            if current is _MISSING and not adds:
                continue
            try:
                restored = reader.restore(encoded, current, name)
            except _Unsaved as error:
                failed.append(str(error))
            else:
                setattr(owner, name, restored)
        if failed:
            logger.warning("%s: not restored: %s", type(owner).__name__, "; ".join(failed))
            self.unsaved = failed

    def _own_names(self, owner: object) -> list[str]:
        ours = _assigned_names(type(owner))
        return [name for name in vars(owner) if name not in ours and name not in self._covered]

    def _templates(self, owner: object) -> list[object]:
        """Objects with state that the object contained at the first `save` or `load`."""
        if self._made is None:
            self._made = [one for value in vars(owner).values() for one in _stateful_in(value)]
        return self._made

    def _plain_values(self, owner: object) -> dict[str, object]:
        return {
            name: value
            for name, value in vars(owner).items()
            if name not in self._covered and _is_plain(value)
        }

    def _kept(self, owner: object) -> Iterator[tuple[str, object]]:
        own = set(self._own_names(owner))
        for name, value in vars(owner).items():
            if name in self._covered or isinstance(value, _STATELESS):
                continue
            if _is_plain(value):
                # Also plain values of a base class that the subclass has changed.
                before = self._initial.get(name, _MISSING)
                if name not in own and (before is _MISSING or not self._with_bases):
                    continue
                # Compare types as well: True equals 1.
                if type(before) is type(value) and before == value:
                    continue
            elif name not in own:
                continue
            yield name, value


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in ("ding", "abc", "typing", "builtins")


def _assigned_names(cls: type) -> set[str]:
    """The attributes that methods of this package's base classes assign."""
    return set().union(*(_assigned_by(base) for base in cls.__mro__ if _is_ours(base)))


@functools.cache
def _assigned_by(cls: Hashable) -> frozenset[str]:
    functions = (getattr(member, "__func__", member) for member in vars(cls).values())
    # From the code, not from the object: an assigning method may not have been called yet.
    codes = (getattr(inspect.unwrap(one), "__code__", None) for one in functions)
    return frozenset(name for code in codes for name in _stored_in(code))


def _stored_in(code: types.CodeType | None) -> Iterator[str]:
    if code is not None:
        for instruction in dis.get_instructions(code):
            if instruction.opname == "STORE_ATTR":
                yield instruction.argval


def _is_plain(value: Any) -> bool:
    """Whether a value consists of numbers and strings only."""
    if type(value) in (list, tuple, set, frozenset, deque):
        return all(map(_is_plain, value))
    if type(value) in _MAPPINGS.values():
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return type(value) in _ATOMS


def _stateful_in(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | deque):
        for part in value:
            yield from _stateful_in(part)
    elif _has_state(value):
        yield value


def _shared(owner: object, own: Collection[str]) -> dict[str, object]:
    """Networks, their parts and parameters, and optimisers in attributes of a base class."""
    found: dict[str, object] = {}
    for name, value in vars(owner).items():
        if name in own:
            continue
        found[name] = value
        module = _innermost(value)
        if isinstance(module, nn.Module):
            found.update({f"{name}.{part}": one for part, one in module.named_modules()})
            found.update({f"{name}.{part}": one for part, one in module.named_parameters()})
    kinds = (nn.Module, torch.Tensor, Optimizer)
    return {k: v for k, v in found.items() if isinstance(v, kinds) or _has_state(v)}


class _Unsaved(Exception):
    """A value cannot be stored or restored; the message names it and its place."""


class _Writer:
    """Converts values to plain data.

    Args:
        known: Objects stored elsewhere, by place; they are referred to, not stored again. The same
            holds for values already stored at another place.
        templates: Objects that exist whenever the state is restored; see `_find_template`.
    """

    def __init__(self, known: Mapping[str, object], templates: Sequence[object]) -> None:
        self.places = {id(value): place for place, value in reversed([*known.items()])}
        self._templates = templates
        self._held: list[object] = []  # keeps objects alive, since ids of deleted ones are reused

    def encode(self, value: Any, place: str) -> Encoded:
        """Encode one value; `place` is its place in the object.

        Raises:
            _Unsaved: The value cannot be stored, or could not be restored.
        """
        if type(value) in _ATOMS:
            return {"kind": "plain", "value": value}
        if isinstance(value, _STATELESS):
            return {"kind": "stateless", "type": _name_of(value)}
        if id(value) in self.places:
            return {"kind": "same", "place": self.places[id(value)]}
        self.places[id(value)] = place
        self._held.append(value)
        kind = type(value).__name__
        if isinstance(value, torch.Tensor):
            return {
                "kind": "tensor",
                "value": value.detach(),
                "trained": value.requires_grad,
                "parameter": isinstance(value, nn.Parameter),
                "device": str(value.device),
            }
        if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
            is_scalar = isinstance(value, np.generic)
            return {"kind": "array", "value": np.asarray(value), "scalar": is_scalar}
        if type(value) in (_SEQUENCES.get(kind), deque):
            items = [self.encode(item, f"{place}[{i}]") for i, item in enumerate(value)]
            return {"kind": kind, "items": items, "maxlen": getattr(value, "maxlen", None)}
        is_mapping = type(value) is _MAPPINGS.get(kind)
        if is_mapping:
            keys = [self.encode(key, f"{place}.keys[{i}]") for i, key in enumerate(value)]
            parts = [self.encode(part, f"{place}[{key!r}]") for key, part in value.items()]
            return {"kind": kind, "keys": keys, "items": parts}
        if (generator := _generator_state(value)) is not None:
            return {"kind": "generator", "type": _name_of(value), "state": generator}
        looks = _looks(value)
        if not (looks["layout"] or _has_state(value)):
            raise _Unsaved(f"{place} (a {_name_of(value)})")
        # The class creates an attribute itself; the contents of a container it may not create.
        if "[" in place and _find_template(looks, self._templates) is None:
            raise _Unsaved(f"{place} (a {looks['type']} unlike those that the policy begins with)")
        if not looks["layout"]:
            state = self.encode(value.state_dict(), f"{place}.state_dict()")
            return {"kind": "stateful", **looks, "state": state}
        network = _innermost(value)
        return {
            "kind": "network",
            **looks,
            "state": dict(network.state_dict()),
            "training": [module.training for module in network.modules()],
            "trained": [parameter.requires_grad for parameter in network.parameters()],
            "update_count": getattr(value, "update_count", None),
        }


class _Reader:
    """Restores values from plain data, in place where possible.

    Args:
        known, templates: As in `_Writer`, for the object that is loaded into.
    """

    def __init__(self, known: Mapping[str, object], templates: Sequence[object]) -> None:
        self._known, self._templates = dict(known), templates
        self._used: set[int] = set()  # objects already restored into; none is used twice

    def restore(self, encoded: Encoded, current: Any, place: str) -> Any:
        """The restored value; `current` is the present value at this place.

        Raises:
            _Unsaved: There is no object into which the value can be restored.
        """
        kind = encoded["kind"]
        if kind == "plain":
            return encoded["value"]
        if kind == "same":
            if encoded["place"] not in self._known:
                raise _Unsaved(f"{place} (there is no {encoded['place']})")
            return self._known[encoded["place"]]
        if id(current) in self._used:
            current = _MISSING
        if kind == "stateless" and current is _MISSING:
            raise _Unsaved(f"{place} (a {encoded['type']})")
        restored = current if kind == "stateless" else self._content(encoded, current, place)
        self._known[place] = restored
        self._used.add(id(restored))
        return restored

    def _content(self, encoded: Encoded, current: Any, place: str) -> Any:
        kind = encoded["kind"]
        if kind == "tensor":
            return _restore_tensor(encoded, current)
        if kind == "array":
            value = np.array(encoded["value"])
            return value[()] if encoded["scalar"] else _restore_array(value, current)
        if kind in _SEQUENCES or kind == "deque":
            there = list(current) if type(current).__name__ == kind else []
            items = [
                self.restore(item, there[i] if i < len(there) else _MISSING, f"{place}[{i}]")
                for i, item in enumerate(encoded["items"])
            ]
            if kind == "deque":
                return deque(items, encoded["maxlen"])
            if type(current) is not list or kind != "list":
                return _SEQUENCES[kind](items)
            # In place: other attributes or objects may refer to the same list.
            current[:] = items
            return current
        if kind in _MAPPINGS:
            keys = [
                self.restore(key, _MISSING, f"{place}.keys[{i}]")
                for i, key in enumerate(encoded["keys"])
            ]
            cls = _MAPPINGS[kind]
            is_same = type(current) is cls
            found = {
                key: self.restore(
                    part, current.get(key, _MISSING) if is_same else _MISSING, f"{place}[{key!r}]"
                )
                for key, part in zip(keys, encoded["items"], strict=True)
            }
            if not is_same:
                return cls(found)
            current.clear()
            current.update(found)
            return current
        return self._object(encoded, current, place)

    def _object(self, encoded: Encoded, current: Any, place: str) -> Any:
        if _name_of(current) != encoded["type"]:
            # A copied optimiser would not update the restored network.
            template = _find_template(encoded, self._templates) if encoded.get("layout") else None
            if template is None:
                raise _Unsaved(f"{place} (no {encoded['type']} exists to restore it into)")
            current = copy.deepcopy(template)
        if encoded["kind"] == "generator":
            _restore_generator(encoded["state"], current)
        elif encoded["kind"] == "network":
            network = _innermost(current)
            network.load_state_dict(encoded["state"])
            for module, training in zip(network.modules(), encoded["training"]):
                module.training = training
            for parameter, trained in zip(network.parameters(), encoded["trained"]):
                parameter.requires_grad_(trained)
            if encoded["update_count"] is not None:
                current.reset_state(encoded["update_count"])
        else:
            state = self.restore(encoded["state"], _MISSING, f"{place}.state_dict()")
            if isinstance(current, Optimizer):
                load_optimizer(current, state)
            else:
                current.load_state_dict(state)
        return current


def _restore_tensor(encoded: Encoded, current: Any) -> torch.Tensor:
    value = encoded["value"]
    fits = isinstance(current, torch.Tensor) and current.shape == value.shape
    # In place: an optimiser or a network may refer to this tensor.
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


def _generator_state(value: object) -> Any:
    """The state of a random generator; numbers of more than 64 bits as strings."""
    if isinstance(value, np.random.Generator):
        return json.dumps(value.bit_generator.state, default=np.ndarray.tolist)
    if isinstance(value, np.random.RandomState):
        return json.dumps(value.get_state(legacy=False), default=np.ndarray.tolist)
    if type(value) is random.Random:
        return json.dumps(value.getstate())
    return value.get_state() if isinstance(value, torch.Generator) else None


def _restore_generator(state: Any, current: Any) -> None:
    state = json.loads(state) if isinstance(state, str) else state
    if isinstance(current, np.random.Generator):
        current.bit_generator.state = state
    elif isinstance(current, random.Random):
        version, numbers, gauss = state
        current.setstate((version, tuple(numbers), gauss))
    else:
        current.set_state(state)


def _innermost(value: object) -> Any:
    """The network inside its wrappers."""
    while not isinstance(value, nn.Module) and "_model" in getattr(value, "__dict__", {}):
        value = vars(value)["_model"]
    return value


def _has_state(value: object) -> bool:
    return all(callable(getattr(value, name, None)) for name in ("state_dict", "load_state_dict"))


def _find_template(looks: Encoded, among: Sequence[object]) -> Any:
    """An object of the same type, for a network with the same shapes; ``None`` if not found."""
    candidates = [*among, *(_innermost(one) for one in among)]
    return next((one for one in candidates if _looks(one).items() <= looks.items()), None)


def _looks(value: object) -> Encoded:
    """The type, and for a network the names and shapes of its state."""
    network = _innermost(value)
    if not isinstance(network, nn.Module):
        return {"type": _name_of(value), "layout": None}
    state = network.state_dict()
    layout = [[name, list(getattr(part, "shape", ()))] for name, part in state.items()]
    return {"type": _name_of(value), "layout": json.dumps(layout)}


def _name_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"

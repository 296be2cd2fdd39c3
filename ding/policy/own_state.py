"""Which attributes a subclass of a built-in class adds, and their state as plain data and back."""

import copy
import dis
import functools
import inspect
import logging
import types
from collections import deque
from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from ding.policy.object_state import (
    ATOMS,
    MAPPINGS,
    MISSING,
    STATELESS,
    Encoded,
    Reader,
    Unsaved,
    Writer,
    has_state,
    innermost,
)

logger = logging.getLogger(__name__)


class OwnState:
    """The attributes of an object that its class, or a base of it outside this package, adds.

    Numbers, texts and containers of them that are as they were when the object was built are left
    out: they follow from the config, which may change before a run is resumed.

    Args:
        owner: The object; its own attributes are as they were built.
        covered: Attributes that other parts of its state hold.
        with_bases: Whether numbers of our base classes that have changed count, too.
    """

    def __init__(
        self, owner: object, covered: Collection[str] = (), with_bases: bool = False
    ) -> None:
        self._covered, self._with_bases = frozenset(covered), with_bases
        self._theirs = [cls for cls in type(owner).__mro__[:-1] if not _is_ours(cls)]
        self._initial = copy.deepcopy(self._plain_values(owner)) if self.applies else {}
        self._made: list[object] | None = None
        #: Attributes that the newest `save` could not store, or `load` could not restore.
        self.unsaved: list[str] = []

    @property
    def applies(self) -> bool:
        """Whether the class, or one of its bases, is not of this package."""
        return bool(self._theirs)

    def defines(self, name: str) -> bool:
        """Whether such a class defines a method."""
        return any(name in vars(cls) for cls in self._theirs)

    def save(self, owner: object) -> dict[str, Encoded] | None:
        """Values by attribute; ``None`` for a class of this package."""
        if not self.applies:
            return None
        writer = Writer(_shared(owner, self._own_names(owner)), self._templates(owner))
        state: dict[str, Encoded] = {}
        self.unsaved = []
        for name, value in self._kept(owner):
            try:
                state[name] = writer.attribute(name, value)
            except Unsaved as error:
                self.unsaved.append(str(error))
        return state

    def load(self, owner: object, state: Mapping[str, Encoded], adds: bool = True) -> None:
        """Restore what `save` returned; an attribute that cannot be restored is a warning.

        Args:
            adds: Whether to add attributes that the object does not have yet.
        """
        if not self.applies:
            return
        own = self._own_names(owner)
        reader = Reader(_shared(owner, own), self._templates(owner))
        for name in own:
            if name in self._initial and name not in state:
                setattr(owner, name, copy.deepcopy(self._initial[name]))
        failed = []
        for name, encoded in state.items():
            current = vars(owner).get(name, MISSING)
            if current is MISSING and not adds:
                continue
            try:
                restored = reader.restore(encoded, current, name)
            except Unsaved as error:
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
        """Objects with a state that the object had when it was first asked for its own."""
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
            if name in self._covered or isinstance(value, STATELESS):
                continue
            if _is_plain(value):
                # Also a number of a base class that the subclass has changed.
                before = self._initial.get(name, MISSING)
                if name not in own and (before is MISSING or not self._with_bases):
                    continue
                if type(before) is type(value) and before == value:
                    continue
            elif name not in own:
                continue
            yield name, value


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in ("ding", "abc", "typing", "builtins")


def _assigned_names(cls: type) -> set[str]:
    """The attributes that methods of this package's classes among the bases assign."""
    return set().union(*(_assigned_by(base) for base in cls.__mro__ if _is_ours(base)))


@functools.cache
def _assigned_by(cls: Hashable) -> frozenset[str]:
    functions = (getattr(member, "__func__", member) for member in vars(cls).values())
    codes = (getattr(inspect.unwrap(one), "__code__", None) for one in functions)
    return frozenset(name for code in codes for name in _stored_in(code))


def _stored_in(code: types.CodeType | None) -> Iterator[str]:
    if code is not None:
        for instruction in dis.get_instructions(code):
            if instruction.opname == "STORE_ATTR":
                yield instruction.argval


def _is_plain(value: Any) -> bool:
    """Whether it is made of numbers and texts alone."""
    if type(value) in (list, tuple, set, frozenset, deque):
        return all(map(_is_plain, value))
    if type(value) in MAPPINGS.values():
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    return type(value) in ATOMS


def _stateful_in(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | deque):
        for part in value:
            yield from _stateful_in(part)
    elif has_state(value):
        yield value


def _shared(owner: object, own: Collection[str]) -> dict[str, object]:
    """Networks, their parts and parameters, and optimisers that attributes of a base class hold."""
    found: dict[str, object] = {}
    for name, value in vars(owner).items():
        if name in own:
            continue
        found[name] = value
        module = innermost(value)
        if isinstance(module, nn.Module):
            found.update({f"{name}.{part}": one for part, one in module.named_modules()})
            found.update({f"{name}.{part}": one for part, one in module.named_parameters()})
    kinds = (nn.Module, torch.Tensor, Optimizer)
    return {k: v for k, v in found.items() if isinstance(v, kinds) or has_state(v)}

"""What is wrong with a user's config, or worth a note, before anything is built."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from ding.config.schema import GONE, SCHEMA
from ding.utils.errors import ConfigError
from ding.utils.settings import at, has
from ding.utils.types import Config, Settings

_NEAR = 0.6  # similarity from which a known key is worth naming
_TELLING = 4  # letters from which a slip in a key shows which one was meant, in any section
_ANYWHERE = ("type", "import_names", "cfg_type")  # keys that say nothing about their place


@dataclass
class Notes:
    """What was found while a config was compiled.

    Attributes:
        unknown: Paths of keys that nothing in this package reads, with the nearest path that it
            does read (empty if none is near). They stay in the config.
        unused: Paths of keys that have a meaning, but none in this run, with the reason.
        adapted: Settings that did not fit together, and how they are read; one line each.
    """

    unknown: dict[str, str] = field(default_factory=dict)
    unused: dict[str, str] = field(default_factory=dict)
    adapted: list[str] = field(default_factory=list)

    def explain_gone(self, user: Settings) -> None:
        """Give the reason for keys that scripts may read, and no run of this package."""
        for path, reason in GONE.items():
            for place in (path, f"create_config.{path}"):
                if place in self.unknown or at(user, place):
                    self.unknown.pop(place, None)
                    self.unused[place] = reason

    def adapt(self, line: str) -> None:
        if line not in self.adapted:
            self.adapted.append(line)

    @property
    def text(self) -> str:
        """One block for the start of a run; empty if there is nothing to say."""
        lines = []
        if self.unknown:
            lines.append("config: unknown keys, kept for custom code:")
            lines += [
                f"  {path}" + (f" (nearest known key: {near})" if near else "")
                for path, near in self.unknown.items()
            ]
        if self.unused:
            lines.append("config: keys without effect in this run:")
            lines += [f"  {path}: {reason}" for path, reason in self.unused.items()]
        if self.adapted:
            lines.append("config: adapted:")
            lines += [f"  {line}" for line in self.adapted]
        return "\n".join(lines)

    @property
    def facts(self) -> Config:
        """The same for ``run.json``; only what there is."""
        facts = dict(unknown_keys=self.unknown, unused_keys=self.unused, adapted=self.adapted)
        return {name: value for name, value in facts.items() if value}


@dataclass
class Problems:
    """What was found so far; each with the full path of its key."""

    found: list[str] = field(default_factory=list)

    def add(self, message: str) -> None:
        if message not in self.found:
            self.found.append(message)

    def raise_if_any(self) -> None:
        """Raise one `ConfigError` that lists everything, if anything was found."""
        if len(self.found) == 1:
            raise ConfigError(self.found[0])
        if self.found:
            raise ConfigError("the config has several errors:\n  " + "\n  ".join(self.found))


@dataclass
class KeyChecker:
    """Compares what a user wrote with the defaults: key by key, and type by type.

    An unknown key is noted. It is an error if it is a slip, one edit away from a known sibling that
    the user did not set, or by ``strict``.

    Attributes:
        known: Every key with its default, nested. ``None`` and ``{}`` allow any value and any dict.
        strict: Whether unknown keys are errors: all, or those at or under these paths.
        open_paths: Sections that may hold further keys; only slips are errors there, or noted.
        silent: Paths of keys without an effect that are not reported.
        counts: Paths whose numbers must be whole; elsewhere a whole default allows fractions.
    """

    known: Settings
    notes: Notes
    strict: bool | Collection[str] = False
    open_paths: Collection[str] = ()
    silent: Collection[str] = ()
    counts: Collection[str] = ()

    def check(self, user: Config) -> None:
        """Check a whole config; floats such as ``1e5`` in place of integers become integers.

        Raises:
            ConfigError: Everything that is wrong.
        """
        self._problems = Problems()
        self._places: dict[str, list[str]] = {}
        self._index(self.known, "")
        self._check(user, self.known, "")
        self._problems.raise_if_any()

    def _check(self, user: Config, known: Settings, path: str) -> None:
        for key in list(user):
            where = f"{path}.{key}" if path else str(key)
            if key not in known:
                self._report_unknown(key, path, where, known, user)
            elif isinstance(known[key], Mapping):
                if not isinstance(user[key], Mapping):
                    self._problems.add(f"{where} must be a dict, got {_show(user[key])}")
                elif known[key]:
                    self._check(user[key], known[key], where)
            elif isinstance(user[key], float) and user[key].is_integer() and is_int(known[key]):
                user[key] = int(user[key])
            else:
                fraction = is_int(known[key]) and where not in self.counts
                self._check_value(user[key], float(known[key]) if fraction else known[key], where)

    def _check_value(self, value: Any, default: object, where: str) -> None:
        words, types = _kind(default)
        is_bool = isinstance(value, bool | np.bool_)  # True is an integer to Python
        is_wrong = not isinstance(value, types) or is_bool != isinstance(default, bool)
        if words and value is not None and is_wrong:
            self._problems.add(
                f"{where} must be {words}, got {_show(value)} (default: {default!r})"
            )
        elif isinstance(default, list | tuple) and default and all(map(is_int, default)):
            for index, item in enumerate(value if value is not None else ()):
                if not is_int(item):
                    self._problems.add(f"{where}[{index}] must be an integer, got {_show(item)}")

    def _report_unknown(
        self, key: str, path: str, where: str, known: Settings, user: Settings
    ) -> None:
        prefix, strict = f"{path}." if path else "", self.strict
        if not isinstance(strict, bool):
            strict = any(
                f"{where}.".startswith(f"{path}.") or path.startswith(f"{where}.")
                for path in strict
            )
        slips = [name for name in known if name not in user and one_edit_apart(key, name)]
        if slips:
            meant = " or ".join(prefix + name for name in slips)
            self._problems.add(f"unknown key {where}: did you mean {meant}?")
        elif where in self.silent:
            return
        elif path in self.open_paths:
            # Next to the key itself it may be another one of a custom class: no error.
            if near := next((name for name in known if one_edit_apart(key, name)), None):
                self.notes.unknown[where] = prefix + near
        elif not strict:
            self.notes.unknown[where] = self._nearest(key, prefix, known)
        elif nearest := self._nearest(key, prefix, known):
            self._problems.add(f"unknown key {where}: did you mean {nearest}?")
        else:
            there = ", ".join(sorted(known)) or "none"
            self._problems.add(f"unknown key {where}: known keys there: {there}")

    def _nearest(self, key: str, prefix: str, known: Settings) -> str:
        """The key of another place with this name, or one edit away, or else the sibling most like
        it; may be empty."""
        places = [] if key in _ANYWHERE else self._places.get(key, [])
        near = difflib.get_close_matches(key, list(known), 1, _NEAR)
        is_slip_here = bool(near) and one_edit_apart(key, near[0])
        if not places and not is_slip_here and len(key) >= _TELLING:
            slips = (name for name in self._places if one_edit_apart(key, name))
            places = [place for name in slips for place in self._places[name]]
        if not places and near:
            return prefix + near[0]
        return " or ".join(places[:3])

    def _index(self, known: Settings, path: str) -> None:
        for key, value in known.items():
            where = f"{path}.{key}" if path else key
            self._places.setdefault(key, []).append(where)
            if isinstance(value, Mapping):
                self._index(value, where)


def one_edit_apart(first: str, second: str) -> bool:
    """Whether one insertion, deletion, replacement or swap of neighbours makes one the other."""
    if abs(len(first) - len(second)) > 1 or first == second:
        return False
    short, long = sorted((first, second), key=len)
    start = next((i for i, (a, b) in enumerate(zip(short, long)) if a != b), len(short))
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    swapped = short[start : start + 2][::-1] == long[start : start + 2]
    return short[start + 1 :] == long[start + 1 :] or (
        swapped and short[start + 2 :] == long[start + 2 :]
    )


def is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    return is_int(value) or isinstance(value, float | np.floating)


_Types: TypeAlias = type | UnionType
#: Kinds of defaults: names, and the types that a value of each may have; the first match counts.
_KINDS: tuple[tuple[_Types, str, _Types], ...] = (
    (bool, "True or False", bool | np.bool_),
    (int | np.integer, "an integer", int | np.integer),
    (float, "a number", int | float | np.integer | np.floating),
    (str, "a string", str),
    (list | tuple, "a list", list | tuple | np.ndarray),
)


def _kind(default: object) -> tuple[str, _Types]:
    """What may replace ``default``: the name of the kind, and its types."""
    found = ((words, types) for kind, words, types in _KINDS if isinstance(default, kind))
    return next(found, ("", object))


def _show(value: object) -> str:
    return f"{type(value).__name__} {value!r}"


def require(config: Settings, path: str, what: str, problems: Problems) -> None:
    """Report a key that has no default and is missing."""
    if at(config, path) is None:
        problems.add(f"missing key {path}: {what}")


def check_ranges(config: Settings, problems: Problems) -> None:
    """Report values that the schema does not allow for their key; wrong types are found before."""
    for key in SCHEMA:
        if has(config, key.path) and not key.allows(value := at(config, key.path)):
            problems.add(f"{key.path} must be {key.values}, got {value!r}")

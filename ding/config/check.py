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


_Types: TypeAlias = type | UnionType
#: Kinds of defaults: names, and the types that a value of each may have; the first match counts.
_KINDS: tuple[tuple[_Types, str, _Types], ...] = (
    (bool, "True or False", bool | np.bool_),
    (int | np.integer, "an integer", int | np.integer),
    (float, "a number", int | float | np.integer | np.floating),
    (str, "a string", str),
    (list | tuple, "a list", list | tuple | np.ndarray),
)


@dataclass
class Notes:
    """What was found while a config was compiled."""

    #: Paths of keys that nothing in this package reads, with the nearest path that it does read
    #: (empty if none is near). They stay in the config.
    unknown: dict[str, str] = field(default_factory=dict)
    #: Paths of keys that have a meaning, but none in this run, with the reason.
    unused: dict[str, str] = field(default_factory=dict)
    #: Settings that did not fit together, and how they are read; one line each.
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
        unknown = [
            f"{path} (nearest known key: {near})" if near else path
            for path, near in self.unknown.items()
        ]
        sections = {
            "unknown keys, kept for custom code": unknown,
            "keys without effect in this run": [": ".join(one) for one in self.unused.items()],
            "adapted": self.adapted,
        }
        blocks = ([f"config: {title}:", *found] for title, found in sections.items() if found)
        return "\n".join("\n  ".join(block) for block in blocks)

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
        if self.found:
            several = ["the config has several errors:"] if len(self.found) > 1 else []
            raise ConfigError("\n  ".join(several + self.found))


@dataclass
class KeyChecker:
    """Compares what a user wrote with the defaults: key by key, and type by type.

    An unknown key is noted. It is an error if it is a slip, one edit away from a known sibling that
    the user did not set, or by ``strict``.
    """

    known: Settings  # every key with its default; `None` and `{}` allow any value and any dict
    notes: Notes
    strict: bool | Collection[str] = False  # for all unknown keys, or at or under these paths
    open_paths: Collection[str] = ()  # sections that may hold further keys; slips are reported
    silent: Collection[str] = ()  # keys without an effect that are not reported
    counts: Collection[str] = ()  # where numbers are whole; elsewhere fractions are allowed, too

    def check(self, user: Config) -> None:
        """Check a whole config; floats such as ``1e5`` in place of integers become integers."""
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
        fitting = ((words, types) for kind, words, types in _KINDS if isinstance(default, kind))
        words, types = next(fitting, ("", object))
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
        prefix, strict = where.removesuffix(key), self.strict
        if not isinstance(strict, bool):
            strict = any(
                f"{where}.".startswith(f"{one}.") or one.startswith(f"{where}.") for one in strict
            )
        near = [name for name in known if one_edit_apart(key, name)]
        if slips := [name for name in near if name not in user]:
            meant = " or ".join(prefix + name for name in slips)
            self._problems.add(f"unknown key {where}: did you mean {meant}?")
        elif where in self.silent:
            return
        elif path in self.open_paths:
            # Next to the key itself it may be another one of a custom class: no error.
            if near:
                self.notes.unknown[where] = prefix + near[0]
        elif not strict:
            self.notes.unknown[where] = self._nearest(key, prefix, known)
        else:
            nearest, there = self._nearest(key, prefix, known), ", ".join(sorted(known)) or "none"
            hint = f"did you mean {nearest}?" if nearest else f"known keys there: {there}"
            self._problems.add(f"unknown key {where}: {hint}")

    def _nearest(self, key: str, prefix: str, known: Settings) -> str:
        """The key of another place with this name, or one edit away, or else the sibling most like
        it; may be empty."""
        places = [] if key in _ANYWHERE else self._places.get(key, [])
        near = difflib.get_close_matches(key, list(known), 1, _NEAR)
        is_slip_here = bool(near) and one_edit_apart(key, near[0])
        if not places and not is_slip_here and len(key) >= _TELLING:
            slips = (name for name in self._places if one_edit_apart(key, name))
            places = [place for name in slips for place in self._places[name]]
        return " or ".join(places[:3] or [prefix + name for name in near])

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
    swapped = short[start + 1 : start + 2] + short[start : start + 1] + short[start + 2 :]
    return short[start + 1 :] == long[start + 1 :] or swapped == long[start:]


def is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _show(value: object) -> str:
    return f"{type(value).__name__} {value!r}"


def check_ranges(config: Settings, problems: Problems) -> None:
    """Report values that the schema does not allow for their key; wrong types are found before."""
    for key in SCHEMA:
        if has(config, key.path) and not key.allows(value := at(config, key.path)):
            problems.add(f"{key.path} must be {key.values}, got {value!r}")

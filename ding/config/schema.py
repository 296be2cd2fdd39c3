"""The config keys, a row each; checks and the docs are made from them.

A class's own keys, with their defaults, are in its ``config``. A row adds what that cannot say:
the meaning, the range, another place or older names of the same setting, and keys that configs may
hold although no class has a default for them.

The rows are in ``keys.json``, by section, in the order of messages. A row is a meaning alone, for a
key that only configs of classes with a default for it may hold, or the attributes of a `Key`.
``_part`` adds the keys of a component that is chosen by its type; ``_note`` is for readers.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ding.utils.types import Config

#: Ranges that a number may have, by what messages and docs call them.
RANGES: dict[str, Callable[[float], bool]] = {
    "greater than 0": lambda number: number > 0,
    "between 0 and 1": lambda number: 0 <= number <= 1,
    "at least 1": lambda number: number >= 1,
    "0 or more": lambda number: number >= 0,
}


@dataclass(frozen=True)
class Key:
    """One config key.

    Attributes:
        path: Its full path in the main config (``system_config.``: in that of a parallel run).
        meaning: What it sets.
        like: An example of its type; ``None`` allows any, ``{}`` any dict, and a whole number any
            number unless `whole`.
        known: Whether every config may hold it; otherwise only those of classes that have it.
        unit: What a number counts or measures.
        range: The numbers that it may be, one of `RANGES`.
        choices: Values that it may have, in addition to the range if there is one.
        may_be_none: Whether it may be ``None``, too.
        whole: Whether it is a number of things, of which there is no fraction.
        twins: Other places of the same setting. What a user wrote counts; if several places were
            written, `path`.
        old: Older names.
        silent: Whether configs hold it and no policy of this package reads it, so that it is not
            reported.
        gone: Why it has no effect in a run, which is reported.
    """

    path: str
    meaning: str
    like: object = None
    known: bool = True
    unit: str = ""
    range: str = ""
    choices: tuple[object, ...] = ()
    may_be_none: bool = False
    whole: bool = False
    twins: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    silent: bool = False
    gone: str = ""

    @property
    def values(self) -> str:
        """What it may be, as messages and docs show it; empty if that is not bounded."""
        return " or ".join(filter(None, [self.range, *map(repr, self.choices)]))

    def allows(self, value: object) -> bool:
        """Whether a value of the right type is in the range."""
        if value is None or not self.values:
            return self.may_be_none or not self.values
        if not isinstance(value, int | float | str) or value in self.choices:
            return True
        if self.range and not isinstance(value, str):
            return RANGES[self.range](value)
        return not self.choices


def _rows(section: str, rows: Config) -> Iterator[Key]:
    """The keys of a section of ``keys.json``."""
    prefix = f"{section}." if section else ""
    rows.pop("_note", None)
    if (what := rows.pop("_part", None)) is not None:
        yield Key(f"{prefix}type", f"Registered type of the {what}.", "")
        yield Key(f"{prefix}import_names", "Modules to import, which register the type.", [])
        yield Key(f"{prefix}cfg_type", "Name of the section's form; written, and not read.", "")
    for name, row in rows.items():
        facts: Config = row
        if isinstance(row, str):
            facts = {"meaning": row, "known": False}
        several: Config = {kind: tuple(facts.get(kind, ())) for kind in ("twins", "old", "choices")}
        yield Key(f"{prefix}{name}", **{**facts, **several})


def _read() -> tuple[Key, ...]:
    # Not YAML: its thousands of short-lived objects have the garbage collector go through all that
    # torch holds, 0.1 s at each start.
    with open(Path(__file__).with_name("keys.json"), encoding="utf-8") as file:
        sections: dict[str, Config] = json.load(file)
    return tuple(key for section, rows in sections.items() for key in _rows(section, rows))


#: All rows, in the order in which messages name keys.
SCHEMA = _read()

#: Numbers of things; other whole numbers may become fractions.
COUNTS = frozenset(key.path for key in SCHEMA if key.whole)
#: What configs hold and nothing reads.
SILENT = frozenset(key.path for key in SCHEMA if key.silent)
#: What has no effect in a run, with the reason.
GONE = {key.path: key.gone for key in SCHEMA if key.gone}
#: The same setting in two places.
TWINS = tuple((key.path, twin) for key in SCHEMA for twin in key.twins)
#: Older names, and the names of today.
OLD_NAMES = tuple((old, key.path) for key in SCHEMA for old in key.old)

#: Sections of ``create_config``; the last ones are those of parallel mode.
CREATE_SECTIONS = (
    *("env", "env_manager", "policy", "learner", "collector", "evaluator", "replay_buffer"),
    *("reward_model", "commander", "model", "comm_learner", "comm_collector", "league"),
)


def examples() -> Config:
    """The keys that every main config may hold, nested, each with an example of its value."""
    tree: Config = {}
    for key in SCHEMA:
        if not key.known:
            continue
        *way, last = key.path.split(".")
        section = tree
        for name in way:
            below = section.get(name)
            section[name] = section = below if isinstance(below, dict) else {}
        section[last] = dict(key.like) if isinstance(key.like, dict) else key.like
    return tree

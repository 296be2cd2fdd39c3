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
    """One config key."""

    path: str  # in the main config, or from `system_config.` on in that of a parallel run
    meaning: str
    #: An example of its type; ``None`` allows any, ``{}`` any dict, and a whole number any number
    #: unless `whole`.
    like: object = None
    known: bool = True  # whether every config may hold it, not only those of classes that have it
    unit: str = ""  # what a number counts or measures
    range: str = ""  # the numbers that it may be, one of `RANGES`
    choices: tuple[object, ...] = ()  # values that it may have, too
    may_be_none: bool = False
    whole: bool = False  # whether it is a number of things, of which there is no fraction
    #: Other places of the same setting. What a user wrote counts; if several places were written,
    #: `path`.
    twins: tuple[str, ...] = ()
    old: tuple[str, ...] = ()  # older names
    silent: bool = False  # whether no policy of this package reads it, which is not reported
    gone: str = ""  # why it has no effect in a run, which is reported

    @property
    def values(self) -> str:
        """What it may be, as messages and docs show it; empty if that is not bounded."""
        return " or ".join(filter(None, [self.range, *map(repr, self.choices)]))

    def allows(self, value: object) -> bool:
        """Whether a value of the right type is in the range."""
        if value is None or not self.values:
            return self.may_be_none or not self.values
        if isinstance(value, list | tuple | str):
            return value in self.choices or not (self.choices or self.range)
        if not isinstance(value, int | float) or value in self.choices:
            return True
        return RANGES[self.range](value) if self.range else not self.choices


def _rows(section: str, rows: Config) -> Iterator[Key]:
    """The keys of a section of ``keys.json``."""
    prefix = f"{section}." if section else ""
    rows.pop("_note", None)
    if (what := rows.pop("_part", None)) is not None:
        yield Key(f"{prefix}type", f"Registered type of the {what}.", "")
        yield Key(f"{prefix}import_names", "Modules to import, which register the type.", [])
        yield Key(f"{prefix}cfg_type", "Name of the section's form; written, and not read.", "")
    for name, row in rows.items():
        facts: Config = {"meaning": row, "known": False} if isinstance(row, str) else row
        several: Config = {kind: tuple(facts.get(kind, ())) for kind in ("twins", "old", "choices")}
        yield Key(f"{prefix}{name}", **{**facts, **several})


# Not YAML: its thousands of short-lived objects have the garbage collector go through all that
# torch holds, 0.1 s at each start.
_TEXT = Path(__file__).with_name("keys.json").read_text(encoding="utf-8")
#: All rows, in the order in which messages name keys.
SCHEMA = tuple(key for section, rows in json.loads(_TEXT).items() for key in _rows(section, rows))

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
        if key.known:
            *way, last = key.path.split(".")
            section = tree
            for name in way:
                if not isinstance(section.get(name), dict):
                    section[name] = {}
                section = section[name]
            section[last] = dict(key.like) if isinstance(key.like, dict) else key.like
    return tree

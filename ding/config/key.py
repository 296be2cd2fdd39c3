"""The form of a row of the schema, and short ways to write several."""

from dataclasses import dataclass
from typing import Any

#: Ranges that a number may have.
POSITIVE, FRACTION, AT_LEAST_ONE = "greater than 0", "between 0 and 1", "at least 1"


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
        range: The numbers that it may be, one of the constants above.
        may_be_none: Whether ``None`` is in the range.
        whole: Whether it is a number of things, of which there is no fraction.
        twins: Other places of the same setting. What a user wrote counts; if several places were
            written, `path`.
        old: Older names.
        silent: Whether configs hold it and no policy of this package reads it, so that it is not
            reported.
    """

    path: str
    meaning: str
    like: Any = None
    known: bool = True
    unit: str = ""
    range: str = ""
    may_be_none: bool = False
    whole: bool = False
    twins: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    silent: bool = False


def part(path: str, what: str) -> tuple[Key, ...]:
    """The keys of each component that is chosen by its type."""
    return (
        Key(f"{path}.type", f"Registered type of the {what}.", ""),
        Key(f"{path}.import_names", "Modules to import, which register the type.", []),
        Key(f"{path}.cfg_type", "Name of the section's form; written, and not read.", ""),
    )


def own(path: str, meaning: str, **facts: Any) -> Key:
    """A key that only configs of classes with a default for it may hold."""
    return Key(path, meaning, known=False, **facts)


def owns(section: str, **meanings: str) -> tuple[Key, ...]:
    """Keys of a section that only configs of classes with a default for them may hold."""
    return tuple(own(f"{section}.{name}", meaning) for name, meaning in meanings.items())


def ignored(path: str, meaning: str) -> Key:
    """A key that configs hold and no policy of this package reads."""
    return Key(path, meaning, known=False, silent=True)

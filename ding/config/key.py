"""The form of a row of the schema, and short ways to write several."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

#: Ranges that a number may have.
POSITIVE, FRACTION, AT_LEAST_ONE = "greater than 0", "between 0 and 1", "at least 1"


@dataclass(frozen=True)
class Key:
    """One config key.

    Attributes:
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
        path: Its full path in the main config (``system_config.``: in that of a parallel run).
    """

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
    path: str = ""


#: A key that only configs of classes with a default for it may hold.
own = partial(Key, known=False)
#: A key that configs hold and no policy of this package reads.
ignored = partial(own, silent=True)
#: Keys whose values are numbers of things.
count, own_count = (partial(kind, range=POSITIVE, whole=True) for kind in (Key, own))


def section(path: str, **rows: Key | str) -> tuple[Key, ...]:
    """The keys below a path; one with a meaning alone is `own`."""
    keys = {name: own(row) if isinstance(row, str) else row for name, row in rows.items()}
    return tuple(replace(key, path=f"{path}.{name}".strip(".")) for name, key in keys.items())


def part(path: str, what: str) -> tuple[Key, ...]:
    """The keys of each component that is chosen by its type."""
    return section(
        path,
        type=Key(f"Registered type of the {what}.", ""),
        import_names=Key("Modules to import, which register the type.", []),
        cfg_type=Key("Name of the section's form; written, and not read.", ""),
    )

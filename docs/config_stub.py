"""The types of configs for editors and checkers, ``ding/config/keys.pyi``, from the schema.

``python docs/config_stub.py`` writes the file; a test compares it.
"""

import inspect
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ding.config.parts import COMPONENTS, PARALLEL_COMPONENTS, default_config
from ding.config.schema import CREATE_SECTIONS, SCHEMA, Key
from ding.utils.builtin_types import BUILTIN_TYPES
from ding.utils.registry_factory import registries
from ding.utils.settings import leaves

STUB = Path(__file__).parent.parent / "ding/config/keys.pyi"
#: The defaults of a key: by their text, the value and the types that have it.
Defaults = dict[str, tuple[object, list[str]]]
#: Sections with a special name; others are named for their last keys.
_NAMES = {
    "": "MainConfig",
    "env": "EnvConfig",
    "policy": "PolicyConfig",
    "env.manager": "ManagerConfig",
    "policy.learn": "LearnConfig",
    "policy.collect": "CollectConfig",
    "policy.eval": "EvalConfig",
    "policy.other": "OtherConfig",
    "policy.model": "ModelConfig",
}
#: Sections with the keys of another one.
_BUFFER = "policy.other.replay_buffer"
_SAME = {f"{_BUFFER}.{name}": _BUFFER for name in ("policy", "value")}
#: Not of the main config, or below a section of `_SAME`.
_LEFT_OUT = ("system_config.", *(f"{path}." for path in _SAME))
#: The type of a key, and what is shown with it.
_Row = tuple[str, str]
_HEAD = '''"""Types of configs, for editors and type checkers: keys with their types and meanings.

Made from the schema and the defaults of the registered classes by ``docs/config_stub.py``. Old
names of keys, and keys without an effect, are left out. Keys of custom classes are those of a
subclass, which is accepted where the base class is::

    class WalkConfig(EnvConfig, total=False):
        length: int

    main_config: MainConfig = {"env": WalkConfig(length=9, stop_value=10)}
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict
'''


def defaults() -> dict[str, Defaults]:
    """The defaults of the built-in classes by key."""
    names = {id(registry): name for name, registry in registries.items()}
    found: dict[str, Defaults] = defaultdict(dict)
    all_parts = (*COMPONENTS.values(), *PARALLEL_COMPONENTS.values())
    parts = {names[id(one.registry)]: (one.registry, one.place) for one in all_parts}
    for name, (registry, place) in parts.items():
        for type_ in BUILTIN_TYPES[name] if place else ():
            for path, value in leaves(default_config(registry.get(type_)), place):
                types = found[path].setdefault(repr(value), (value, []))[1]
                types.append(type_.removesuffix("_command"))
    return found


def stub() -> str:
    """The text of the file."""
    sections = _sections()
    names = _names(sections)
    create: dict[str, _Row] = {}
    places = {name: one.place for name, one in PARALLEL_COMPONENTS.items()}
    for name in CREATE_SECTIONS:
        place = "policy.model" if name == "model" else places.get(name)
        create[name] = (names.get(place or "-", "PartConfig"), "")
    part = {"type": ("str", ""), "import_names": ("Sequence[str]", "")}
    classes = [
        *(_class(names[path], path or "main_config", sections[path]) for path in names),
        _class("CreateConfig", "create_config", create),
        _class("PartConfig", "a section of create_config", part),
    ]
    return "\n".join([_HEAD, *classes])


def _class(name: str, place: str, rows: Mapping[str, _Row]) -> str:
    lines = [f"class {name}(TypedDict, total=False):", f'    """Keys of ``{place}``."""\n']
    for key, (type_, about) in rows.items():
        lines.append(f"    {key}: {type_}")
        if about:
            quotes = '"""'
            lines += textwrap.wrap(
                f"{quotes}{about}{quotes}", 99, initial_indent=" " * 4, subsequent_indent=" " * 4
            )
    return "\n".join([*lines, ""])


def _sections() -> dict[str, dict[str, _Row]]:
    """For each section its keys, each with its type and meaning."""
    values = {path: [value for value, _ in some.values()] for path, some in defaults().items()}
    for type_ in BUILTIN_TYPES["model"]:
        for argument in inspect.signature(registries["model"].get(type_)).parameters.values():
            if argument.default is not argument.empty:
                values.setdefault(f"policy.model.{argument.name}", []).append(argument.default)
    rows = {path: key for key in SCHEMA for path in (*key.old, *key.twins)}
    rows.update({key.path: key for key in SCHEMA})
    rows["policy.model.type"] = Key("policy.model.type", "Registered type of the network.", "")
    rows["policy.model.import_names"] = rows["policy.import_names"]
    left_out = {path for path, key in rows.items() if key.meaning.startswith("Older ")}
    left_out |= {path for path, key in rows.items() if key.gone}
    left_out |= {old for key in SCHEMA for old in key.old if old not in values}
    left_out |= {
        path for path, key in rows.items() if key.silent and not key.values and path not in values
    }
    paths = [
        path
        for path in dict.fromkeys([*rows, *values, *_SAME])
        if path not in left_out
        and not path.endswith(".cfg_type")
        and not path.startswith(_LEFT_OUT)
    ]
    sections: dict[str, dict[str, _Row]] = {"": {}}
    for path in paths:  # sections that have no row are keys, too
        steps = path.split(".")
        for n in range(1, len(steps)):
            sections.setdefault(".".join(steps[:n]), {})
    names = _names(sections)
    for path in dict.fromkeys([*(section for section in sections if section), *paths]):
        section, _, name = path.rpartition(".")
        row = rows.get(path)
        bounds = "" if row is None else row.values
        facts = () if row is None else (row.meaning, bounds and f"{bounds[0].upper()}{bounds[1:]}.")
        about = " ".join(filter(None, (*facts, row and row.unit and f"Unit: {row.unit}.")))
        sections[section][name] = (_type(path, row, values.get(path, []), names), about)
    return sections


def _names(sections: Iterable[str]) -> dict[str, str]:
    """The class of each section."""
    names = dict(_NAMES)
    for path in sorted(sections, key=lambda path: (path.count("."), path)):
        *_, parent, last = ("", *path.split("."))
        name = "".join(word.capitalize() for word in last.split("_"))
        if f"{name}Config" in names.values():
            name = parent.capitalize() + name
        names.setdefault(path, f"{name}Config")
    return names


def _type(path: str, row: Key | None, values: Sequence[object], names: Mapping[str, str]) -> str:
    """What checks of a run let pass: any value where the schema has no example of one."""
    section = names.get(_SAME.get(path, path))
    if path.endswith(".import_names"):
        return "Sequence[str]"
    if row is not None and row.known and row.like is None and section is None:
        return "Any"
    examples = [row.like, *values] if row is not None else [*values]
    whole = row is not None and row.whole
    kinds = {section} if section else set()
    kinds |= {_kind(value, whole) for value in examples if value is not None}
    if section:
        kinds -= {"Mapping[str, Any]"}
    if "Any" in kinds or not kinds:
        return "Any"
    if "float" in kinds:
        kinds -= {"int"}
    is_optional = (row is not None and row.may_be_none) or None in values
    return " | ".join([*sorted(kinds), *(["None"] if is_optional else [])])


def _kind(value: object, whole: bool) -> str:
    for kind, name in ((bool, "bool"), (int, "int" if whole else "float"), (str, "str")):
        if isinstance(value, kind):
            return name
    if isinstance(value, list | tuple):
        inner = {"int" if type(one) is int else _kind(one, whole) for one in value} or {"Any"}
        inner -= {"int"} if "float" in inner else set()
        return f"Sequence[{' | '.join(sorted(inner))}]"
    if isinstance(value, float):
        return "float"
    return "Mapping[str, Any]" if isinstance(value, dict) else "Any"


if __name__ == "__main__":
    STUB.write_text(stub())

"""Converts dataclasses to and from JSON objects, and checks the types of their fields.

Types may be ``bool``, ``int``, ``float``, ``str``, ``UUID``, literals, mappings (whose content is
not checked), dataclasses, tuples of these, and each of them or ``None``. `Annotated` with a `Rule`
adds a condition. A field of any other type accepts all values.
"""

import dataclasses
import functools
import json
import math
import reprlib
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin
from uuid import UUID

from ding.utils.types import Json, JsonObject

Kind = TypeVar("Kind")
_Reader = Callable[[object], object]

#: Metadata of a field that contains the whole JSON object, including entries of other fields.
WHOLE = {"keeps": "all"}
#: Metadata of a field that contains all entries without a field.
OTHERS = {"keeps": "others"}


def called(name: str) -> dict[str, str]:
    """Metadata of a field that has another name in JSON."""
    return {"json": name}


class Rule(NamedTuple):
    """A condition on the value of a field."""

    holds: Callable[[Any], object]
    expected: str


#: Amounts: bytes, seconds, counts.
Count = Annotated[int, Rule(lambda number: number >= 0, "0 or more")]
Seconds = Annotated[float, Rule(lambda number: number >= 0, "0 or more seconds")]


class BadMessageError(ValueError):
    """JSON that does not fit the dataclass; the message contains the field and what is expected."""


def to_json(message: object) -> JsonObject:
    """Convert a dataclass to a JSON object; its fields override entries in `WHOLE` or `OTHERS`."""
    kept: Mapping[str, object] = {}
    fields = {}
    for entry in _entries(type(message)):
        value = getattr(message, entry.attribute)
        if entry.keeps:
            kept = value
        else:
            fields[entry.key] = _plain(value)
    return {**kept, **fields}


def from_json(kind: type[Kind], body: object) -> Kind:
    """Convert a JSON object to a dataclass.

    Raises:
        BadMessageError: The body is not an object, or a field is missing or invalid.
    """
    fields, entries = json_object(body), _entries(kind)
    values: dict[str, object] = {}
    for entry in entries:
        given = fields.get(entry.key)
        if entry.keeps == "all":
            values[entry.attribute] = fields
        elif entry.keeps == "others":
            known = {other.key for other in entries}
            values[entry.attribute] = {k: v for k, v in fields.items() if k not in known}
        elif given is not None:
            try:
                values[entry.attribute] = entry.read(given)
            except BadMessageError as error:
                raise BadMessageError(f"{entry.key!r}: {error}") from None
        elif not entry.has_default:
            if not entry.takes_none:
                raise BadMessageError(f"{entry.key!r} is missing; there are {sorted(fields)[:20]}")
            values[entry.attribute] = None
    return kind(**values)


def json_object(value: object) -> JsonObject:
    """The value, if it is a JSON object; otherwise raises a `BadMessageError`."""
    if not isinstance(value, dict):
        raise _unexpected(value, "an object")
    return value


def parsed_json(content: bytes) -> object:
    """Parse a JSON text; raises a `BadMessageError` if it is not JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadMessageError(f"the body is not JSON: {error}") from error


class _Entry(NamedTuple):
    attribute: str
    key: str
    read: _Reader
    takes_none: bool
    has_default: bool
    keeps: str | None


_known: dict[type, list[_Entry]] = {}


def _entries(kind: type) -> list[_Entry]:
    if kind in _known:
        return _known[kind]
    entries = _known[kind] = [
        _Entry(
            field.name,
            field.metadata.get("json", field.name),
            _reader(field.type),
            type(None) in get_args(field.type),
            field.default is not field.default_factory,  # without a default, both are MISSING
            field.metadata.get("keeps"),
        )
        for field in dataclasses.fields(kind)
    ]
    return entries


def _plain(value: object) -> object:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value):
        return to_json(value)
    return dict(value) if isinstance(value, Mapping) else value


def _reader(hint: object) -> _Reader:
    """The function that converts a JSON value other than ``None`` to a field's value."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        kinds = [arg for arg in args if arg is not type(None)]
        return _reader(kinds[0]) if len(kinds) == 1 else _anything
    if origin is Annotated:
        return functools.partial(_checked, _reader(args[0]), args[1])
    if origin is Literal:
        rule = Rule(lambda value: value in args, " or ".join(args))
        return functools.partial(_checked, _text, rule)
    if origin is tuple:
        return functools.partial(_items, [_reader(arg) for arg in args if arg is not ...], args)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return functools.partial(from_json, hint)
    if origin is not None and issubclass(origin, Mapping):
        return json_object
    return _READERS.get(hint, _anything)


def _anything(value: object) -> object:
    return value


def _checked(read: _Reader, rule: Rule, value: object) -> object:
    found = read(value)
    if not rule.holds(found):
        raise _unexpected(value, rule.expected)
    return found


def _items(readers: list[_Reader], kinds: tuple[object, ...], value: object) -> object:
    """Convert a list to a tuple, of any length if `kinds` contains ``...``."""
    any_length = ... in kinds
    if not isinstance(value, list) or not (any_length or len(value) == len(readers)):
        raise _unexpected(value, "a list" if any_length else f"a list of {len(readers)}")
    if any_length:
        return tuple(map(readers[0], value))
    return tuple(read(item) for read, item in zip(readers, value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _unexpected(value, "text")
    return value


def _number(value: Json) -> float:
    if type(value) not in (int, float) or not abs(value) < math.inf:
        raise _unexpected(value, "a number")
    return value


def _whole_number(value: object) -> int:
    number = _number(value)
    if number != int(number):
        raise _unexpected(value, "a whole number")
    return int(number)


def _uuid(value: object) -> UUID:
    try:
        return UUID(_text(value))
    except ValueError:
        raise _unexpected(value, "a UUID") from None


#: Types that JSON has; the content of mappings and lists is not converted.
_PLAIN = frozenset({bool, int, float, str, type(None), list, dict})
_READERS: Mapping[object, _Reader] = {
    bool: bool,
    int: _whole_number,
    float: _number,
    str: _text,
    UUID: _uuid,
}


def _unexpected(value: object, expected: str) -> BadMessageError:
    # `repr` would traverse the whole value, and fail if it is deeply nested.
    shown = value if isinstance(value, str) else reprlib.repr(value)
    return BadMessageError(f"{type(value).__name__} {shown[:80]!r}, expected {expected}")

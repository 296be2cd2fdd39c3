"""Reads and writes strict JSON (RFC 8259): no NaN, no infinity, no numbers beyond a float."""

import json
import math
from typing import NoReturn

from ding.utils.types import Json

#: Maximum nesting of objects and lists, well below the limits of parsers and encoders.
MAX_DEPTH = 32
_LARGEST = 1.7976931348623157e308


def loads(content: bytes | str) -> Json:
    """Parse JSON of unknown origin.

    Every value that is returned can be written by `dumps`, converted to a float and encoded as
    UTF-8.

    Raises:
        ValueError: The content is not JSON, is nested more than `MAX_DEPTH` levels deep, or
            contains a number beyond the range of floats or invalid Unicode.
    """
    value = parse(content)
    _check(value)
    return value


def parse(content: bytes | str) -> Json:
    """Parse JSON without the checks of `loads`; faster, for content whose values are not used.

    Raises:
        ValueError: The content is not JSON.
    """
    try:
        text = content.decode() if isinstance(content, bytes) else content
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep") from None


def dumps(value: object, indent: int | None = None) -> str:
    """Format a value as JSON; NaN and infinity become ``null``, objects become text."""
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except (ValueError, TypeError):
        return json.dumps(plain(value), indent=indent, allow_nan=False)


def plain(value: object) -> Json:
    """Convert a value to types of JSON: without NaN, arrays and objects."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (int, str, bool, type(None))) else str(value)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _check(value: Json) -> None:
    left = [(value, 1)]
    while left:
        item, depth = left.pop()
        if isinstance(item, str):
            if not item.isascii():
                item.encode()  # an unpaired surrogate raises UnicodeEncodeError, a ValueError
        elif isinstance(item, (dict, list)):
            if depth > MAX_DEPTH:
                raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
            if isinstance(item, dict):
                left += [(key, depth) for key in item]
                item = item.values()
            left += [(inner, depth + 1) for inner in item]
        elif isinstance(item, (int, float)) and not abs(item) <= _LARGEST:
            raise ValueError(f"a number beyond {_LARGEST:.4g} (the range of a float)")

"""Small JSON files of facts, with a checksum of them."""

import json
import logging
import os
import zlib
from collections.abc import Mapping
from typing import Any

from .file_helper import open_regular, replace_text

logger = logging.getLogger(__name__)

_CHECKSUM = "checksum"
#: What somebody wrote by hand has none of these. One alone may be what is damaged.
_SIGNS = (b'"checksum"', b"crc32", b"other entries")


def write_facts(path: str | os.PathLike, facts: Mapping[str, Any]) -> None:
    """Replace a file in one move.

    Args:
        facts: Plain JSON; ``checksum`` is added to it.

    Raises:
        OSError: It cannot be written; a previous file is unchanged.
    """
    whole = {**facts, _CHECKSUM: _checksum(facts)}
    replace_text(path, json.dumps(whole, indent=2, allow_nan=False) + "\n")


def read_facts(path: str | os.PathLike) -> dict[str, Any]:
    """What `write_facts` wrote, or somebody by hand; empty if there is no such file, or if it is
    damaged, with a warning that names it."""
    try:
        with open_regular(os.fspath(path)) as file:
            content = file.read()
        found = json.loads(content)
        if not isinstance(found, dict):
            raise ValueError(f"it holds a {type(found).__name__}, not facts")
        if not any(sign in content for sign in _SIGNS):
            return found
        if found.pop(_CHECKSUM, None) == _checksum(found):
            return found
        cause = "its checksum is another"
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        cause = str(error)
    logger.warning("%s cannot be used: %s", os.fspath(path), cause)
    return {}


def _checksum(facts: Mapping[str, Any]) -> str:
    # Once through JSON, so that what is not text as a key, or a list, is as it will be read.
    plain = json.loads(json.dumps(facts))
    crc = zlib.crc32(json.dumps(plain, sort_keys=True).encode())
    return f"crc32 of the other entries: {crc:08x}"

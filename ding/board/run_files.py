"""What the page reads of one run's folder. Nothing is executed, no link is followed."""

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ding.utils.file_helper import open_regular
from ding.utils.log_writer import METRICS_FILE
from ding.utils.run_log import RECORD_FILE

CONFIG_FILE = "total_config.py"
#: Bytes that one answer holds of a file of metrics, and of a log.
METRICS_CHUNK = 4 << 20
LOG_TAIL = 64 << 10
#: Larger than any config or record: such a file is something else.
MAX_SMALL_FILE = 4 << 20
MAX_FILES = 1000
MAX_VALUE = 400

_LOGS = (".txt", ".log", ".out", ".err")
_VIDEOS = (".mp4", ".webm", ".gif")
_FOLDERS_WITHOUT = {"ckpt", "data", "policy"}
_SEED = re.compile(r"^\s*'seed': .*$", re.MULTILINE)


@dataclass(frozen=True)
class Piece:
    """A part of a growing file.

    Attributes:
        content: Whole lines.
        offset: Where the next piece begins.
        size: Bytes that the file has now.
        restarted: The file is shorter than what was read of it before: this is its beginning.
    """

    content: bytes
    offset: int
    size: int
    restarted: bool


def read_record(folder: str) -> dict[str, Any]:
    """What ``run.json`` says; empty if there is none or it cannot be read."""
    try:
        found = json.loads(_read_small(os.path.join(folder, RECORD_FILE)))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_metrics(folder: str, offset: int, limit: int = METRICS_CHUNK) -> Piece:
    """The lines of ``metrics.jsonl`` from an offset on; a last one that is not whole comes later.

    Raises:
        OSError: There is no such file.
    """
    with open_regular(os.path.join(folder, METRICS_FILE), follow_links=False) as file:
        size = os.fstat(file.fileno()).st_size
        restarted = offset > size
        start = 0 if restarted else offset
        file.seek(start)
        content = file.read(limit)
    end = content.rfind(b"\n") + 1
    if end == 0 and len(content) == limit:
        end = limit  # no row is that long
        return Piece(b"", start + end, size, restarted)
    return Piece(content[:end], start + end, size, restarted)


def read_log(folder: str, path: str, offset: int | None) -> Piece:
    """A text file from an offset on, or its end.

    Raises:
        FileNotFoundError: It is none of the run's logs.
    """
    _check_listed(folder, path, _LOGS)
    with open_regular(os.path.join(folder, path), follow_links=False) as file:
        size = os.fstat(file.fileno()).st_size
        restarted = offset is not None and offset > size
        start = max(0, size - LOG_TAIL) if offset is None or restarted else offset
        file.seek(start)
        content = file.read(LOG_TAIL)
    return Piece(content, start + len(content), size, restarted)


def video_path(folder: str, path: str) -> str:
    """The file of one of the run's videos.

    Raises:
        FileNotFoundError: It is none of them.
    """
    _check_listed(folder, path, _VIDEOS)
    return os.path.join(folder, path)


def list_files(folder: str) -> dict[str, list[dict[str, Any]]]:
    """``logs`` and ``videos``: ``path`` in the folder, ``size`` in bytes, ``time`` of change."""
    files: dict[str, list[dict[str, Any]]] = {"logs": [], "videos": []}
    for kind, endings in (("logs", _LOGS), ("videos", _VIDEOS)):
        for path in _walk(folder, endings):
            try:
                stat = os.lstat(os.path.join(folder, path))
            except OSError:
                continue
            files[kind].append({"path": path, "size": stat.st_size, "time": stat.st_mtime})
    return files


def read_config(folder: str) -> dict[str, str]:
    """The whole config, ``{"policy.learn.batch_size": "64", ...}``; it is parsed, not run.

    Raises:
        ValueError: It cannot be read; says why.
    """
    try:
        tree = ast.parse(_read_small(os.path.join(folder, CONFIG_FILE)))
    except FileNotFoundError:
        return {}
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{CONFIG_FILE} cannot be read: {error}") from error
    flat: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            flat.update(_flatten("" if name == "exp_config" else name, node.value))
    return flat


def config_text(folder: str, record: Mapping[str, Any]) -> str:
    """The config without what differs from one run to the next of the same: folder and seed."""
    try:
        text = _read_small(os.path.join(folder, CONFIG_FILE)).decode(errors="replace")
    except OSError:
        return ""
    if exp_name := str(record.get("exp_name") or ""):
        text = text.replace(exp_name, "")
    return _SEED.sub("", text)


def _flatten(path: str, node: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Dict):
        node = node.args[0]  # EasyDict({...})
    if not isinstance(node, ast.Dict) or not node.keys:
        text = ast.unparse(node)
        yield path, text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]} ..."
        return
    for key, value in zip(node.keys, node.values):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            name = key.value
        else:
            name = ast.unparse(key) if key else "**"
        yield from _flatten(f"{path}.{name}" if path else name, value)


def _read_small(path: str) -> bytes:
    with open_regular(path, follow_links=False) as file:
        content = file.read(MAX_SMALL_FILE + 1)
    if len(content) > MAX_SMALL_FILE:
        raise ValueError(f"it has more than {MAX_SMALL_FILE} bytes")
    return content


def _check_listed(folder: str, path: str, endings: tuple[str, ...]) -> None:
    # A path from outside is compared, never joined: none can lead out of the folder.
    if path not in _walk(folder, endings):
        raise FileNotFoundError(path)


def _walk(folder: str, endings: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in _FOLDERS_WITHOUT and f[0] != ".")
        for name in sorted(names):
            path = os.path.join(where, name)
            is_whole = not os.path.splitext(name)[0].endswith(".part")
            if name.lower().endswith(endings) and is_whole and not os.path.islink(path):
                found.append(os.path.relpath(path, folder).replace(os.sep, "/"))
        if len(found) >= MAX_FILES:
            break
    return found[:MAX_FILES]

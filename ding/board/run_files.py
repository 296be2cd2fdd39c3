"""Reads configs, logs and videos in a run's folder for the board. Nothing is executed, and no link
is followed."""

import ast
import io
import os
import re
from collections.abc import Iterator

from ding.utils.file_helper import open_regular
from ding.utils.run_files import Piece
from ding.utils.types import JsonObject

CONFIG_FILE = "total_config.py"
#: Maximum number of bytes of a log per answer.
LOG_TAIL = 64 << 10
#: Maximum size of a config file.
MAX_CONFIG = 1 << 20
#: Maximum number of listed logs or videos, and of folder entries that are searched for them.
MAX_FILES = 1000
MAX_ENTRIES = 50_000
MAX_VALUE = 400

_LOGS = (".txt", ".log", ".out", ".err")
_VIDEOS = (".mp4", ".webm", ".gif")
_FOLDERS_WITHOUT = {"ckpt", "data", "policy"}
_TEXT = r"""(?:'[^'\n]*'|"[^"\n]*")"""
#: Entries that differ between runs of one config; `pprint` splits long strings at blanks.
_OWN = re.compile(rf"^[ \t]*'seed': .*$|'exp_name': {_TEXT}(?:\s+{_TEXT})*", re.MULTILINE)
#: Characters in file names that are escaped: bytes that are not UTF-8, as Python decodes them.
_NOT_TEXT = re.compile("[%\udc80-\udcff]")


def escaped(path: str) -> str:
    """Escape a path, unambiguously and readably, for JSON and URLs."""
    path = path.replace(os.sep, "/")
    return _NOT_TEXT.sub(lambda match: f"%{ord(match[0]) & 0xFF:02X}", path)


def read_log(folder: str, path: str, offset: int | None) -> Piece:
    """A piece of a text file from an offset on; None for its end.

    Args:
        path: Path from `list_files`.

    Raises:
        OSError: The file is not one of the run's logs.
    """
    with open_regular(_listed(folder, path, _LOGS), follow_links=False) as file:
        size = os.fstat(file.fileno()).st_size
        restarted = offset is not None and offset > size
        start = max(0, size - LOG_TAIL) if offset is None or restarted else max(0, offset)
        file.seek(start)
        content = file.read(LOG_TAIL)
    return Piece(content, start + len(content), size, restarted)


def open_video(folder: str, path: str) -> io.BufferedReader:
    """Open one of the run's videos.

    Raises:
        OSError: The file is not one of the run's videos.
    """
    return open_regular(_listed(folder, path, _VIDEOS), follow_links=False)


def list_files(folder: str) -> dict[str, list[JsonObject]]:
    """``logs`` and ``videos``, each with ``path``, ``size`` in bytes and modification ``time``."""
    files: dict[str, list[JsonObject]] = {"logs": [], "videos": []}
    for kind, endings in (("logs", _LOGS), ("videos", _VIDEOS)):
        for name, path in _walk(folder, endings).items():
            try:
                found = os.lstat(path)
            except OSError:
                continue
            files[kind].append({"path": name, "size": found.st_size, "time": found.st_mtime})
    return files


def read_config(folder: str) -> dict[str, str]:
    """The whole config, ``{"policy.learn.batch_size": "64", ...}``; it is parsed, not executed.

    The keys of a parallel run's main config have no prefix ``main.``, as in a serial run.

    Raises:
        ValueError: The config cannot be read.
    """
    try:
        tree = ast.parse(_read_config(folder))
        flat: dict[str, str] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                flat.update(_flatten("" if name == "exp_config" else name, node.value))
        return {
            key if (serial := key.removeprefix("main.")) in flat else serial: value
            for key, value in flat.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        cause = str(error) or "it is nested too deeply"  # the parser's error has no message
        raise ValueError(f"{CONFIG_FILE} cannot be read: {cause}") from error


def config_text(folder: str, exp_name: str) -> str:
    """The config without the entries that differ between runs of one config: folder and seed."""
    try:
        text = _read_config(folder).decode(errors="replace")
    except (OSError, ValueError):
        return ""
    # Paths in the run's folder; the name without a slash may also be another value of the config.
    inner = re.compile(rf"""(?<=['"]){re.escape(exp_name)}(?=/)""")
    return _OWN.sub("", inner.sub("", text) if exp_name else text)


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


def _read_config(folder: str) -> bytes:
    with open_regular(os.path.join(folder, CONFIG_FILE), follow_links=False) as file:
        content = file.read(MAX_CONFIG + 1)
    if len(content) > MAX_CONFIG:
        raise ValueError(f"it has more than {MAX_CONFIG} bytes")
    return content


def _listed(folder: str, path: str, endings: tuple[str, ...]) -> str:
    # Look up untrusted paths instead of joining them: none can lead out of the folder.
    try:
        return _walk(folder, endings)[path]
    except KeyError:
        raise FileNotFoundError(path) from None


def _walk(folder: str, endings: tuple[str, ...]) -> dict[str, str]:
    """Regular files with these endings, by their escaped relative path."""
    found: dict[str, str] = {}
    seen = 0
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in _FOLDERS_WITHOUT and f[0] != ".")
        for name in sorted(names):
            path = os.path.join(where, name)
            is_whole = not os.path.splitext(name)[0].endswith(".part")
            is_listed = is_whole and name.lower().endswith(endings)
            if is_listed and os.path.isfile(path) and not os.path.islink(path):
                found[escaped(os.path.relpath(path, folder))] = path
            if len(found) >= MAX_FILES:
                return found
        seen += len(folders) + len(names)
        if seen >= MAX_ENTRIES:
            break
    return found

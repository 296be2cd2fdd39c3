"""Files of plain data and small JSON files: written atomically, read without executing code."""

import errno
import fcntl
import io
import json
import logging
import os
import pickle
import re
import secrets
import stat
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import IO

from ding.utils import durations, strict_json
from ding.utils.disk_writes import NotedFile, writing
from ding.utils.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    DataError,
)
from ding.utils.lock_helper import get_file_lock
from ding.utils.sent_files import sent_file
from ding.utils.types import Json, JsonObject, Tree

#: Temporary names of files that `write_atomically` is writing; the group is the final name.
TEMPORARY_NAME = re.compile(r"\.(.+)\.[0-9a-f]{16}")
#: Exclusive: a link of that name, which other users may have created, must not be followed.
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_CHECKPOINTS = re.compile(r".+\.pth\.tar")


def read_file(
    path: str,
    fs_type: str | None = None,
    use_lock: bool = False,
    allow_pickle: bool = False,
    columns: bool = False,
) -> Tree:
    """Read a file that `save_file` or ``torch.save`` wrote.

    Args:
        fs_type: None or ``'normal'``: an ordinary file.
        use_lock: Use a lock file next to `path`, shared with all writers that set ``use_lock``.
        allow_pickle: Whether to read files with arbitrary pickled objects. Such a file can execute
            arbitrary code: use this only for files that you trust. The environment variable
            ``DING_ALLOW_PICKLE=1`` has the same effect.
        columns: Whether to return a long list of uniform dicts as `safe_serial.UniformRows`.

    Raises:
        CheckpointNotFoundError: The file does not exist (also a `FileNotFoundError`).
        CheckpointError: The file cannot be read, is damaged, or is not plain data.
    """
    _check_fs_type(fs_type)
    with get_file_lock(path, "read") if use_lock else nullcontext():
        allow_pickle = allow_pickle or os.environ.get("DING_ALLOW_PICKLE") == "1"
        return _read(path, allow_pickle, columns)


def save_file(path: str, data: object, fs_type: str | None = None, use_lock: bool = False) -> None:
    """Write nested plain data (see `ding.utils.safe_serial.dump`); creates missing folders.

    The file appears under its name once it is complete and on disk.

    Raises:
        CheckpointWriteError: The file cannot be written (also an `OSError`); a previous file is
            unchanged.
        TypeError: The data contains an object that cannot be stored safely.
    """
    from ding.utils import safe_serial

    _check_fs_type(fs_type)
    with get_file_lock(path, "write") if use_lock else nullcontext():
        write_atomically(path, lambda stream: safe_serial.dump(data, stream))
        if _CHECKPOINTS.fullmatch(os.path.basename(path)):
            remove_unfinished(os.path.dirname(path) or ".", _CHECKPOINTS)


def remove_file(path: str, fs_type: str | None = None) -> None:
    """Remove a file, if it exists.

    Raises:
        CheckpointWriteError: The file cannot be removed.
    """
    _check_fs_type(fs_type)
    sent = sent_file(path)
    if sent is not None:
        sent[0].remove(sent[1])
    try:
        os.remove(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise CheckpointWriteError(
            f"cannot remove {path}: {error.strerror}", error.errno
        ) from error


def read_from_file(path: str) -> Tree:
    """`read_file` of an ordinary file."""
    return read_file(path)


read_from_path = read_from_file


def open_regular(path: str, follow_links: bool = True) -> io.BufferedReader:
    """Open a file for reading.

    Args:
        follow_links: Whether the last part of the path may be a link.

    Raises:
        OSError: The file cannot be opened or is not a regular file; a FIFO or a device does not
            block.
    """
    sent = sent_file(path)
    given = None if sent is None else sent[0].read(sent[1])
    if given is not None:
        return io.BufferedReader(io.BytesIO(given))  # type: ignore[arg-type]
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow_links:
            raise OSError(errno.ELOOP, "it is a link", path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return os.fdopen(descriptor, "rb")


def open_to_write(path: str, flags: int) -> int:
    """Open a file that is written in place, such as a log; it is created if it is missing.

    Links are refused: in a folder that other users can write to, a link could point to any file of
    this user.

    Args:
        flags: Flags of `os.open`.

    Returns:
        The file descriptor.

    Raises:
        OSError: The file cannot be opened, or is a link, a FIFO, a device or a folder.
    """
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    name = os.path.basename(path)
    try:
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        cause = f"{name} is a link, and what it leads to is not written over: remove the link"
        raise OSError(errno.ELOOP, cause, path) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"{name} is no regular file", path)
    return descriptor


def write_atomically(path: str, write: Callable[[IO[bytes]], None], durable: bool = True) -> None:
    """Call `write` with a binary stream, whose content then replaces the file `path`.

    Args:
        durable: Whether to wait until the file is on disk; otherwise a crash of the computer may
            lose it.

    Raises:
        CheckpointWriteError: The file cannot be written; a previous file is unchanged.
    """
    path = os.path.abspath(path)
    with _named_write_errors(path):
        try:
            replace_file(path, write, durable)
        except FileNotFoundError:
            # Created only if it is missing: each check costs a round trip on a network disk.
            os.makedirs(os.path.dirname(path), exist_ok=True)
            replace_file(path, write, durable)


def write_pieces(
    path: str, pieces: Sequence[bytes | bytearray | memoryview], durable: bool = False
) -> int:
    """`write_atomically` for bytes; returns their number."""
    write_atomically(path, lambda stream: stream.writelines(pieces), durable)
    return sum(map(len, pieces))


def replace_file(path: str, write: Callable[[IO[bytes]], object], durable: bool) -> None:
    """`write_atomically` into an existing folder, with the errors of the system.

    Raises:
        OSError: The file cannot be written; a previous file is unchanged.
    """
    sent = sent_file(path)
    if sent is not None:
        content = io.BytesIO()
        write(content)
        sent[0].replace(sent[1], content.getvalue())
        return
    temporary = temporary_name(path)
    with writing(path):
        handle = os.open(temporary, _FRESH, 0o666)
    try:
        # The lock ends with this process, for whatever reason it ends: see `remove_unfinished`.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with io.BufferedWriter(NotedFile(handle, path, durable)) as stream:
            write(stream)
            stream.flush()
            put_in_place(temporary, path, durable)
    except BaseException:
        with suppress(OSError):
            os.remove(temporary)
        raise


def write_secret(path: str | os.PathLike[str], text: str) -> bool:
    """Write a file that only its owner can read, at any time; its folder must exist.

    Returns:
        Whether the file was written; ``False`` if the path exists already.

    Raises:
        OSError: The file cannot be written.
    """
    temporary = temporary_name(os.fspath(path))
    handle = os.open(temporary, _FRESH, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            os.fchmod(handle, 0o600)  # independent of the umask
            file.write(text)
        os.link(temporary, path)  # readers never see a partial file
    except FileExistsError:
        return False
    finally:
        os.remove(temporary)
    return True


def put_in_place(temporary: str, path: str, durable: bool = True) -> None:
    """Rename a complete file to its final name, replacing an existing file.

    Args:
        durable: Whether to wait until the file and its name are on disk.

    Raises:
        OSError: The file cannot be renamed; a previous file is unchanged.
    """
    with writing(path):
        if durable:
            # Before the rename: otherwise, the name could refer to an empty file after a crash of
            # the computer.
            _sync(temporary)
        os.replace(temporary, path)
        if durable:
            with suppress(OSError):  # some file systems cannot sync folders
                _sync(os.path.dirname(os.path.abspath(path)))


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_text(path: str | os.PathLike[str], text: str) -> None:
    """Replace a small text file atomically, so that readers never see a partial file.

    Raises:
        OSError: As for `replace_file`.
    """
    content = text.encode()
    replace_file(os.fspath(path), lambda stream: stream.write(content), durable=False)


def temporary_name(path: str) -> str:
    """A new temporary name for a file that is not complete yet."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{secrets.token_hex(8)}")


def names_by_age(folder: str) -> list[str]:
    """Names of the files in a folder, oldest first; empty if the folder does not exist."""
    ages = []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        ages = sorted((e.stat().st_mtime_ns, len(e.name), e.name) for e in entries)
    sent = sent_file(folder)
    written = [] if sent is None else sent[0].written_in(sent[1])
    return [*(name for *_, name in ages if name not in written), *written]


def remove_unfinished(
    folder: str, names: re.Pattern[str], min_age: float = durations.FILE_LOCK
) -> None:
    """Remove what writers that were killed have left of files that they were writing.

    Args:
        names: What the names of the finished files match, as a whole.
        min_age: In seconds. A younger file stays: its writer may not have locked it yet.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            temporary = TEMPORARY_NAME.fullmatch(entry.name)
            if temporary and names.fullmatch(temporary[1]) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_unlocked(entry.path, min_age)


def _remove_unlocked(path: str, min_age: float) -> None:
    with open_regular(path, follow_links=False) as stream:
        if time.time() - os.fstat(stream.fileno()).st_mtime < min_age:
            return
        # Check the lock, not only the age: a slow disk may need minutes for a large file.
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while it is being written
        os.unlink(path)


@contextmanager
def _named_write_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cause: OSError = error
    except RuntimeError as error:
        # torch's writer turns an OSError of the stream into a RuntimeError about its own state.
        if not isinstance(error.__context__, OSError):
            raise
        cause = error.__context__
    else:
        return
    raise CheckpointWriteError(
        f"cannot write {path}: {cause.strerror or cause}; a previous file there is unchanged. "
        f"Check free space and permissions of {os.path.dirname(path)}",
        cause.errno,
    ) from cause


def _read(path: str, allow_pickle: bool, columns: bool) -> Tree:
    from ding.utils import safe_serial

    try:
        with open_regular(path) as stream:
            return safe_serial.load_columns(stream) if columns else safe_serial.load(stream)
    except FileNotFoundError as error:
        raise CheckpointNotFoundError(f"there is no file {path}") from error
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from error
    except DataError as error:
        folder = os.path.dirname(path) or "."
        others = sorted(
            name
            for name in os.listdir(folder)
            if name.endswith(".pth.tar") and name[0] != "." and name not in path
        )
        cure = "Use another file"
        if others:
            cure += f", such as --load-path {os.path.join(folder, others[0])}, in a new run"
        raise CheckpointError(f"{path} cannot be loaded: {error}. {cure}") from error
    except Exception as error:  # the parser raises various errors for damaged bytes
        if allow_pickle:
            return _read_pickled(path)
        raise CheckpointError(_why_unreadable(path, error)) from error


def _why_unreadable(path: str, error: Exception) -> str:
    if os.path.getsize(path) == 0:
        return f"{path} is empty: use another checkpoint"
    with open_regular(path) as stream:
        start = stream.read(256)
    if not any(byte < 9 for byte in start):  # every pickle and every archive has such bytes
        return f"{path} is a text file, not a checkpoint (such as ckpt_best.pth.tar) or a data set"
    lines = str(error).strip().splitlines()
    # Leave out torch's advice to load the file unsafely.
    cause = f": {lines[0].rstrip('.')}" if lines and "weights_only" not in lines[0] else ""
    return (
        f"{path} cannot be loaded as plain data{cause}. "
        f"If it is an old pickled checkpoint that you trust, set DING_ALLOW_PICKLE=1 or pass "
        f"allow_pickle=True; otherwise it is damaged or not a checkpoint"
    )


def _read_pickled(path: str) -> Tree:
    import torch

    failures = []
    for load in (lambda f: torch.load(f, map_location="cpu", weights_only=False), pickle.load):
        try:
            with open_regular(path) as stream:
                return load(stream)
        except Exception as error:  # unpickling may raise anything
            failures.append(f"{type(error).__name__}: {error}")
    raise CheckpointError(f"{path} cannot be unpickled either: {'; '.join(failures)}")


def _check_fs_type(fs_type: str | None) -> None:
    if fs_type not in (None, "normal"):
        raise ValueError(
            f"fs_type {fs_type!r} is not supported; use None or 'normal' (ordinary files)"
        )


logger = logging.getLogger(__name__)

_CHECKSUM = "checksum"
#: Maximum size of a file of facts in bytes.
MAX_FACTS = 16 << 20
#: Signs of a checksum. A hand-written file has none of them; any one of them may be damaged.
_SIGNS = (b'"checksum"', b"crc32", b"other entries")


def write_facts(path: str | os.PathLike[str], facts: Mapping[str, Json]) -> None:
    """Write facts to a JSON file, which is replaced atomically.

    Args:
        facts: Plain JSON, to which a ``checksum`` is added.

    Raises:
        OSError: The file cannot be written; a previous file is unchanged.
    """
    whole = {**facts, _CHECKSUM: _checksum(facts)}
    replace_text(path, json.dumps(whole, indent=2, allow_nan=False) + "\n")


def read_facts(path: str | os.PathLike[str]) -> JsonObject:
    """`load_facts`; empty if the file does not exist, or, with a warning, if it is damaged."""
    try:
        return load_facts(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        logger.warning("%s cannot be used: %s", os.fspath(path), error)
        return {}


def load_facts(path: str | os.PathLike[str]) -> JsonObject:
    """Read facts that `write_facts` or a user wrote.

    Raises:
        OSError: The file does not exist, is a link, or is not a regular file.
        ValueError: The file is damaged or not JSON (`strict_json.loads`).
    """
    with open_regular(os.fspath(path), follow_links=False) as file:
        content = file.read(MAX_FACTS + 1)
    if len(content) > MAX_FACTS:
        raise ValueError(f"it has more than {MAX_FACTS} bytes")
    found = strict_json.loads(content)
    if not isinstance(found, dict):
        raise ValueError(f"it holds a {type(found).__name__}, not facts")
    if any(sign in content for sign in _SIGNS) and found.pop(_CHECKSUM, None) != _checksum(found):
        raise ValueError("its checksum is another")
    return found


def _checksum(facts: Mapping[str, Json]) -> str:
    # Convert to JSON and back, so that keys and tuples have the types with which they will be read.
    plain = json.loads(json.dumps(facts))
    crc = zlib.crc32(json.dumps(plain, sort_keys=True).encode())
    return f"crc32 of the other entries: {crc:08x}"

"""Files in the folders of an active run: a lock, a mark, and the key of its parts."""

import contextlib
import errno
import fcntl
import os
import platform
import secrets
import stat
import weakref
from collections.abc import Iterable, Mapping

from ding.utils.errors import ConfigError, RunError
from ding.utils.file_helper import open_to_write, read_facts, write_facts, write_secret
from ding.utils.processes import process_identity, still_runs
from ding.utils.types import Json, JsonObject

LOCK_FILE = ".run_lock"
#: Maximum size of a lock's content, which describes its holder.
MAX_HOLDER = 512

# A forked child must not keep the lock of a parent that has died.
_held: "weakref.WeakSet[RunLock]" = weakref.WeakSet()


class RunLock:
    """Prevents a second process from writing into the same run's folder.

    The system releases the lock when its holder ends, for whatever reason: a lock file that was
    left behind is reused. On file systems without locks, no process is refused.

    Args:
        exp_name: The run's folder, which must exist.
    """

    def __init__(self, exp_name: str) -> None:
        self._exp = exp_name
        self._path = os.path.abspath(os.path.join(exp_name, LOCK_FILE))
        self._descriptor = -1

    def __enter__(self) -> "RunLock":
        """
        Raises:
            ConfigError: Another process holds the lock, or the folder cannot be written.
        """
        self._descriptor = self._take()
        _held.add(self)
        os.pwrite(self._descriptor, f"process {os.getpid()} on {platform.node()}".encode(), 0)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                # Remove it while it is held: afterwards, it may be the lock of another process.
                os.remove(self._path)
        self._forget()

    def __del__(self) -> None:
        self._forget()

    def _take(self) -> int:
        while True:
            try:
                descriptor = open_to_write(self._path, os.O_RDWR)
            except OSError as error:
                raise ConfigError(
                    f"cannot write into the run's folder {os.path.abspath(self._exp)!r}: "
                    f"{error.strerror or error}; choose another exp_name"
                ) from error
            if not _lock(descriptor):
                holder = os.read(descriptor, MAX_HOLDER)
                os.close(descriptor)
                raise ConfigError(
                    f"the run in {self._exp!r} is running: {_named(holder)} has its folder; end "
                    "that first, or choose another exp_name"
                )
            if os.fstat(descriptor).st_nlink > 1:  # a write would change the other file, too
                os.close(descriptor)
                raise ConfigError(
                    f"{self._path!r} is another file's second name, which is not written over: "
                    "remove it"
                )
            if _is_at(self._path, descriptor):
                os.ftruncate(descriptor, 0)
                return descriptor
            os.close(descriptor)  # the previous holder has just removed the file

    def _forget(self) -> None:
        """Close the descriptor; in a forked child, the parent's lock is kept."""
        _held.discard(self)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def release_locks() -> None:
    """Release all locks of this process, which is about to end without leaving their contexts."""
    for lock in list(_held):
        lock.__exit__()


def _lock(descriptor: int) -> bool:
    """Whether the lock was acquired, or the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def is_locked(exp_name: str) -> bool:
    """Whether a process holds the lock of the run's folder."""
    try:
        # Do not block at a FIFO, and do not follow a link.
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(os.path.join(exp_name, LOCK_FILE), flags)
    except OSError:
        return False
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def _named(holder: bytes) -> str:
    name = holder.decode(errors="replace")
    return name if name.startswith("process ") and name.isprintable() else "another process"


def _drop_in_child() -> None:
    for lock in list(_held):
        lock._forget()


os.register_at_fork(after_in_child=_drop_in_child)


MARK_FILE = ".ding_run.json"
_LISTS = ("made", "buffers", "weights")


class RunMark:
    """The mark of a run in a folder that its parts share.

    It contains the run, its supervising process, and the names of its buffers and weights. At the
    end of the run, only files with such names are removed, and the folder only if the run created
    it.

    Args:
        folder: The marked folder.
        exp_name: The run's folder.
    """

    def __init__(self, folder: str, exp_name: str) -> None:
        self.folder = os.path.realpath(folder)
        self._path = os.path.join(self.folder, MARK_FILE)
        self._run = os.path.realpath(exp_name)

    def set(self, made: Iterable[str], key: str) -> None:
        """Mark the folder, until `remove`.

        Args:
            made: The folders that were created for this run: this one, if so, and its parents.
            key: The folder's key in the config, for errors.

        Raises:
            ConfigError: Another run uses the folder.
            OSError: The mark cannot be written.
        """
        before = self._read()
        if before.get("run") not in (None, self._run):
            self._check_gone(before, key)
            before = {}  # keep the other run's files, so that it can be resumed
        mark = {kind: before.get(kind, []) for kind in _LISTS}
        mark["made"] = sorted({*mark["made"], *made})
        self._write({"run": self._run, **process_identity(), **mark})

    def note(self, kind: str, names: Iterable[str]) -> None:
        """Add names of this run's buffers or weights, if the mark is that of this run.

        Raises:
            OSError: The mark cannot be written.
        """
        mark = self.own
        if mark is not None and not set(names) <= set(mark[kind]):
            self._write({**mark, kind: sorted({*mark[kind], *names})})

    @property
    def own(self) -> JsonObject | None:
        """The mark's content (``made``, ``buffers``, ``weights``); ``None`` if it is not this run's
        mark."""
        mark = self._read()
        return mark if mark.get("run") == self._run else None

    def remove(self) -> None:
        """Remove the mark.

        Raises:
            OSError: The mark cannot be removed.
        """
        os.unlink(self._path)

    def _check_gone(self, mark: Mapping[str, Json], key: str) -> None:
        runs = still_runs(mark)
        if runs is False:
            return
        where = f"process {mark.get('pid')}" + ("" if runs else f" on {mark.get('host')}")
        cure = "" if runs else f"; if that is not there any more, remove {self._path}"
        raise ConfigError(
            f"{key}: the folder {self.folder!r} is in use by the run {mark['run']!r} ({where}): "
            f"give each run its own folder{cure}"
        )

    def _read(self) -> JsonObject:
        try:
            if os.path.islink(self._path):
                return {}
            mark = read_facts(self._path)
            lists = [mark[kind] for kind in _LISTS]
            whole = all(isinstance(name, str) for one in lists for name in one)
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return mark if whole and isinstance(mark.get("run"), str) else {}

    def _write(self, mark: Mapping[str, Json]) -> None:
        write_facts(self._path, mark)


KEY_FILE = "run.key"
KEY_VARIABLE = "DING_RUN_KEY"
#: 128 random bits as hexadecimal digits; the run's certificate permits guessing keys offline.
_MIN_LENGTH = 32
_MAX_LENGTH = 512


def make_run_key(exp_name: str) -> str:
    """The run's key from the environment or the run's folder; if there is none, write a new one.

    Only the owner can read the file.

    Raises:
        ConfigError: The folder cannot be written, or other users can read its key file.
    """
    key = read_run_key(exp_name)
    if key is not None:
        return key
    path = os.path.join(exp_name, KEY_FILE)
    key = secrets.token_urlsafe(32)
    try:
        os.makedirs(exp_name, exist_ok=True)
        is_mine = write_secret(path, key + "\n")
    except OSError as error:
        raise ConfigError(
            f"cannot write the run's key {path!r}: {error.strerror or error}; choose another "
            f"exp_name, or set {KEY_VARIABLE}"
        ) from error
    return key if is_mine else make_run_key(exp_name)  # another part has just written one


def read_run_key(exp_name: str) -> str | None:
    """The key from the environment (``DING_RUN_KEY``) or the run's folder; ``None`` if none.

    Raises:
        ConfigError: Other users can read the file, it cannot be read, or it is not a valid key.
    """
    key = os.environ.get(KEY_VARIABLE)
    if key:
        return _checked(key, f"the environment variable {KEY_VARIABLE}")
    path = os.path.join(exp_name, KEY_FILE)
    try:
        # Do not block at a FIFO, and do not follow a link.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"cannot read the run's key {path!r}: {error.strerror or error}"
        ) from error
    with os.fdopen(fd, encoding="ascii", errors="replace") as file:
        mode = stat.S_IMODE(os.fstat(fd).st_mode)
        if mode & 0o077:
            raise ConfigError(
                f"the run's key {path!r} can be read by others (mode {mode:04o}): remove it and "
                f"start again for a new key, or `chmod 600` it if it was not exposed"
            )
        text = file.read(_MAX_LENGTH + 1)
    return _checked(text.strip(), repr(path))


def remove_run_key(exp_name: str) -> None:
    """Remove the key's file, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(exp_name, KEY_FILE))


def _checked(key: str, where: str) -> str:
    key = key.strip()
    if not _MIN_LENGTH <= len(key) <= _MAX_LENGTH or not key.isascii() or not key.isprintable():
        raise ConfigError(
            f"{where} holds no run key: expected {_MIN_LENGTH} to {_MAX_LENGTH} random printable "
            f"ASCII characters, got {len(key)}; remove it for a new one, or make one with "
            "`openssl rand -hex 32`"
        )
    return key


class FolderWatch:
    """Checks that a run's path still leads to the folder in which it began, which must exist."""

    def __init__(self, exp_name: str) -> None:
        self._name, self._id, self._place = exp_name, _folder_id(exp_name), os.getcwd()

    def check(self) -> None:
        """Raise if the run's path no longer leads to the folder in which the run began.

        Raises:
            RunError: The folder was renamed or removed, or the working directory has changed.
                Progress since the last save is lost.
        """
        try:
            if self._id is None or _folder_id(self._name) == self._id:
                return
        except OSError:
            return  # the file system does not respond: the folder may exist
        if os.getcwd() != self._place and not os.path.isabs(self._name):
            raise RunError(
                f"the working directory was changed from {self._place!r} to {os.getcwd()!r}, where "
                f"the run's folder {self._name!r} is not: where an environment has to do so, give "
                "exp_name as a whole path"
            )
        raise RunError(
            f"the run's folder {self._name!r} was renamed or removed, so the run has ended: if "
            "it has another name now, ding resume NAME continues it"
        )


def _folder_id(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino

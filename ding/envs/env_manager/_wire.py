"""What the processes of a subprocess manager say to each other, and the memory they share.

A request is its name and its arguments, and has one answer. All of it is pickled, but for the one
message that follows no request. The pipes lie between processes of one program: nothing from
outside is ever unpickled.
"""

import mmap
import os
import pickle
import socket
import tempfile
import traceback
import weakref
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from ding.utils.errors import DingError, EnvError

#: What follows may take any time: no time limit is set for it.
UNLIMITED = b"unlimited"

HAS_SHARED_MEMORY = os.name == "posix" and hasattr(socket, "send_fds")


def send(connection: Connection, message: Any) -> None:
    """Send anything that pickle or cloudpickle can take."""
    try:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    except Exception:  # pickle raises nearly anything; cloudpickle says what it cannot take
        data = cloudpickle.dumps(message)
    connection.send_bytes(data)


class Failure:
    """An exception on its way to the parent: what it says, its traceback, itself if it can."""

    def __init__(self, error: BaseException) -> None:
        cause = error.__cause__ or error
        self.kind = type(error) if isinstance(error, DingError) else EnvError
        self.message = str(error) if isinstance(error, DingError) else repr(error)
        self.env_id = getattr(error, "env_id", None)
        self.trace = "".join(traceback.format_exception(cause)).rstrip()
        self.cause = cause if _survives_pickling(cause) else None

    def to_raise(self) -> tuple[DingError, BaseException | None]:
        """The error and its cause, for ``raise error from cause``."""
        text = f"{self.message}\n\nIn the environment's process:\n{self.trace}"
        if issubclass(self.kind, EnvError):
            return self.kind(text, self.env_id), self.cause
        return self.kind(text), self.cause


def _survives_pickling(error: BaseException) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        return False


# ---- shared memory ----------------------------------------------------------------------------


class SharedBlock:
    """Anonymous memory that is handed to other processes through their pipe.

    It has no name, so that nothing is left behind however the processes end.
    """

    def __init__(self, size: int) -> None:
        self.size = max(size, 1)
        if hasattr(os, "memfd_create"):
            self._fd = os.memfd_create("observations")
        else:
            with tempfile.TemporaryFile() as file:
                self._fd = os.dup(file.fileno())
        #: Gives up the handle; the memory lasts as long as arrays in it are in use.
        self.close = weakref.finalize(self, os.close, self._fd)
        os.ftruncate(self._fd, self.size)
        self.memory = mmap.mmap(self._fd, self.size)

    def send_to(self, connection: Connection, pid: int) -> None:
        """Follows a message that announces it and its size."""
        reduction.send_handle(connection, self._fd, pid)


def receive_memory(connection: Connection, size: int) -> mmap.mmap:
    """The other end of `SharedBlock.send_to`."""
    fd = reduction.recv_handle(connection)
    try:
        return mmap.mmap(fd, size)
    finally:
        os.close(fd)

"""What the processes of a subprocess manager send each other, and the memory that they share.

A request is its name and its arguments, and has one answer. All of it is pickled, but for the one
message that follows no request. The pipes connect processes of one program: nothing from outside is
ever unpickled.
"""

import mmap
import os
import pickle
import socket
import traceback
import weakref
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from ding.utils.errors import DingError, EnvError

#: What follows may take any time: no time limit is set for it.
UNLIMITED = b"unlimited"

HAS_SHARED_MEMORY = hasattr(os, "memfd_create") and hasattr(socket, "send_fds")


def send(connection: Connection, message: object) -> None:
    """Send anything that pickle or cloudpickle can take."""
    try:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    except Exception:  # pickle raises nearly anything; cloudpickle says what it cannot take
        data = cloudpickle.dumps(message)
    connection.send_bytes(data)


def received(data: bytes) -> Any:
    """The message.

    Raises:
        DingError: The other process sent a `Failure`.
    """
    message = pickle.loads(data)
    if isinstance(message, Failure):
        message.reraise()
    return message


class InWorkerError(Exception):
    """The traceback of an error in a worker process, as the cause of that error."""


class Failure:
    """An exception on its way to the parent: its message, its traceback, itself if it can."""

    def __init__(self, error: BaseException) -> None:
        cause = error.__cause__ or error
        self.kind = type(error) if isinstance(error, DingError) else EnvError
        self.message = str(error) if isinstance(error, DingError) else repr(error)
        self.env_id = getattr(error, "env_id", None)
        # A `DingError` without a cause needs no traceback.
        own = isinstance(cause, DingError)
        self.trace = "" if own else "".join(traceback.format_exception(cause)).rstrip()
        try:
            survives = type(pickle.loads(pickle.dumps(cause))) is type(cause)
        except Exception:
            survives = False
        self.cause = cause if survives else None

    def reraise(self) -> None:
        ids = (self.env_id,) if issubclass(self.kind, EnvError) else ()
        error = self.kind(self.message, *ids)
        if not self.trace:
            raise error
        there = InWorkerError(f"in the environment's process:\n{self.trace}")
        if self.cause is None:
            raise error from there
        self.cause.__cause__ = there
        raise error from self.cause


class SharedBlock:
    """Anonymous memory that is handed to other processes through their pipe.

    It has no name, so that nothing is left behind however the processes end.
    """

    def __init__(self, size: int) -> None:
        self.size = max(size, 1)
        self._fd = os.memfd_create("observations")
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

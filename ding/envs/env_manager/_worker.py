"""A worker process with some environments of a subprocess manager, and what it exchanges with it.

A request is its name and its arguments, and has one answer. All of it is pickled. The pipes connect
processes of one program: nothing from outside is ever unpickled.
"""

import logging
import mmap
import os
import pickle
import random
import select
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from multiprocessing import reduction
from multiprocessing.connection import Connection

import cloudpickle
import numpy as np

from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import GroupSpec
from ding.envs.env_manager._obs_store import Layout, as_columns, columns_in_memory, put_rows
from ding.envs.env_manager._runner import Answer, GroupStep, reward_column
from ding.envs.vector_step import Actions, Obs
from ding.utils import durations
from ding.utils.errors import DingError, EnvError


def serve(connection: Connection, spec: GroupSpec) -> None:
    """Run environments until the parent closes them or ends."""
    _isolate(spec)
    closing = threading.Event()
    threading.Thread(
        target=_die_with_parent, args=(connection, os.getppid(), closing), daemon=True
    ).start()
    worker = _Worker(connection, spec)
    try:
        worker.run()
    except (EOFError, OSError):
        pass  # the parent has ended
    finally:
        closing.set()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        # The parent may not be there to end a process that hangs here.
        signal.alarm(int(durations.ENV_CLOSE_LIMIT))
        worker.group.stop()


class _Worker:
    def __init__(self, connection: Connection, spec: GroupSpec) -> None:
        self.group = EnvGroup(spec)
        self.group.has_process = True
        self._connection = connection
        self._layout: Layout
        self._shared: Obs = None  # columns in shared memory

    def run(self) -> None:
        """Answer requests for the group's methods: each has one reply, but `attach` has none."""
        is_started = self._reply(self.group.start)
        while is_started:
            name, *args = pickle.loads(self._connection.recv_bytes())
            if name == "close":
                return
            if name == "attach":
                self._layout, env_num, size = args
                memory = receive_memory(self._connection, size)
                self._shared = columns_in_memory(self._layout, env_num, memory)
            else:
                self._reply(self._step if name == "step" else getattr(self.group, name), *args)

    def _step(self, ids: list[int], actions: Actions, rows: bool) -> GroupStep | list[float]:
        """The rewards alone, if the answer has nothing else that matters."""
        step = self.group.step(ids, actions, rows)
        if self._shared is not None:
            put_rows(self._shared, ids, as_columns(self._layout, ids, step.obs))
            if not step.ended and not step.abnormal and not rows:
                return reward_column(ids, step.rewards).tolist()
            step.obs = ()
        if not rows:
            ends = (*step.ended, *step.abnormal)
            step.infos = [info if i in ends else {} for i, info in zip(ids, step.infos)]
        return step

    def _reply(self, request: Callable[..., object], *args: object) -> bool:
        """Whether the request succeeded; the edge at which the process meets any error."""
        try:
            value = request(*args)
        except Exception as error:
            value = Failure(error)
        try:
            send(self._connection, value)
        except (EOFError, OSError):
            raise
        except Exception as error:
            ids = list(self.group.envs)
            what = f"what env {ids} answered cannot be sent to the main process: {error}"
            send(self._connection, Failure(EnvError(what, ids[0])))
        return not isinstance(value, Failure)


# ---- the process ------------------------------------------------------------------------------


def _isolate(spec: GroupSpec) -> None:
    """Undo what a forked process takes over from its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)  # it would wake the parent
    # Replaced or buffered streams and log handlers may hold locks of the parent's threads.
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    root = logging.getLogger()
    root.handlers = [logging.StreamHandler(sys.__stderr__)] if sys.__stderr__ else []
    if "torch" in sys.modules:
        # The pool of threads did not survive the fork; one thread per process is right anyway.
        sys.modules["torch"].set_num_threads(1)
    # Forked processes would all draw the same numbers.
    entropy = [seed for env_id, (seed, _) in spec.seeds.items() if env_id in spec.env_fns]
    numbers = np.random.SeedSequence([*entropy, spec.renewals] if entropy else None)
    random.seed(int(numbers.generate_state(1)[0]))
    np.random.seed(numbers.generate_state(4))


def _die_with_parent(connection: Connection, parent_pid: int, closing: threading.Event) -> None:
    """End the process when the parent does, even while an environment hangs."""
    hangup = select.poll()
    hangup.register(connection.fileno(), 0)  # hang-up and errors are always reported
    # Another child of the parent may hold the pipe open, hence the second look now and then.
    while os.getppid() == parent_pid:
        if hangup.poll(int(1000 * durations.ENV_PARENT_LOOK)):
            break
    if not closing.is_set():
        os._exit(1)


# ---- messages -----------------------------------------------------------------------------------

HAS_SHARED_MEMORY = hasattr(os, "memfd_create")  # on Linux


def send(connection: Connection, message: object) -> None:
    """Send anything that pickle or cloudpickle can take."""
    try:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    except Exception:  # pickle raises nearly anything; cloudpickle says what it cannot take
        data = cloudpickle.dumps(message)
    connection.send_bytes(data)


def received(data: bytes) -> Answer:
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
    """An exception on its way to the parent, with its traceback and, if it can, its cause."""

    def __init__(self, error: Exception) -> None:
        cause = error.__cause__ or error
        self.error = error if isinstance(error, DingError) else EnvError(repr(error))
        # A `DingError` without a cause needs no traceback.
        own = isinstance(cause, DingError)
        self.trace = "" if own else "".join(traceback.format_exception(cause)).rstrip()
        try:
            # Tried here: an exception whose constructor takes other arguments can be written, not
            # read.
            self.cause = pickle.loads(pickle.dumps(cause))
        except Exception:
            self.cause = None

    def reraise(self) -> None:
        if not self.trace:
            raise self.error
        there = InWorkerError(f"in the environment's process:\n{self.trace}")
        if not isinstance(self.cause, BaseException):
            raise self.error from there
        self.cause.__cause__ = there
        raise self.error from self.cause


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

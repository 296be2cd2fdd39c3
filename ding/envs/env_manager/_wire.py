"""What the processes of a subprocess manager say to each other, and the memory they share.

One message each way per worker and step. A step of all of a worker's environments with actions
that are columns, and an answer in which no episode ended, are bare bytes; all else is pickled.
The pipes lie between processes of one program: nothing from outside is ever unpickled.
"""

import mmap
import os
import pickle
import socket
import tempfile
import traceback
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle
import numpy as np

from ding.envs.env_manager._env_types import EnvState, GroupStep
from ding.utils.errors import DingError, EnvError

STEP = b"S"  # + the slot for observations + the actions' bytes
REWARDS = b"R"  # + float32 rewards
PICKLE = b"P"
UNLIMITED = b"U"  # what follows may take any time: no time limit is set for it

HAS_SHARED_MEMORY = os.name == "posix" and hasattr(socket, "send_fds")


@dataclass(slots=True)
class StepReply:
    """What environments answered to a step, by env id: those of a worker, or of several.

    Attributes:
        rewards: ``None`` of those whose worker was lost.
        infos: All of them if rows are wanted, else those of `ended` and `abnormal`.
        obs: Unless there is shared memory, all; else the last ones, which it holds no longer.
        first_obs: Of the next episodes, unless there is shared memory.
        states: Those that changed.
    """

    rewards: dict[int, Any]
    infos: dict[int, dict[str, Any]]
    ended: set[int] = field(default_factory=set)
    abnormal: set[int] = field(default_factory=set)
    obs: dict[int, Any] = field(default_factory=dict)
    first_obs: dict[int, Any] = field(default_factory=dict)
    states: dict[int, EnvState] = field(default_factory=dict)

    def add(self, other: "StepReply") -> None:
        """Take in what other environments answered."""
        for name in self.__slots__:
            getattr(self, name).update(getattr(other, name))

    def in_order(self, ids: Sequence[int]) -> GroupStep:
        """Everything but the observations."""
        rewards = [self.rewards[env_id] for env_id in ids]
        shape = next((np.shape(reward) for reward in rewards if reward is not None), ())
        zero: Any = np.zeros(shape, np.float32) if shape else 0.0
        return GroupStep(
            obs=(),
            rewards=[zero if reward is None else reward for reward in rewards],
            infos=[self.infos.get(env_id, {}) for env_id in ids],
            ended=[p for p, env_id in enumerate(ids) if env_id in self.ended],
            abnormal=[p for p, env_id in enumerate(ids) if env_id in self.abnormal],
        )


#: Environments of one worker, and what it answered about them; bytes if that is rewards alone.
Answer = tuple[Sequence[int], StepReply | bytes]


def mere_rewards(answers: Sequence[Answer], ids: list[int]) -> np.ndarray | None:
    """The rewards of `ids`, if those answered just that, in that order; the common case."""
    joined = b""
    answered: list[int] = []
    for part, reply in answers:
        if not isinstance(reply, bytes):
            return None
        joined += reply[1:]
        answered += part
    if answered != ids:
        return None
    rewards = np.frombuffer(bytearray(joined), np.float32)
    return rewards if len(rewards) == len(ids) else rewards.reshape(len(ids), -1)


def merged(answers: Sequence[Answer]) -> StepReply:
    """All answers in one."""
    whole = StepReply({}, {})
    for part, reply in answers:
        if isinstance(reply, bytes):
            rewards = np.frombuffer(reply, np.float32, offset=1)
            players = len(rewards) // len(part)
            # Numbers as such, as in the answers that are pickled.
            values = rewards.reshape(-1, players) if players > 1 else rewards.tolist()
            whole.rewards.update(zip(part, values))
        else:
            whole.add(reply)
    return whole


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


def send(connection: Connection, message: Any) -> None:
    """Send anything that pickle or cloudpickle can take."""
    try:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    except Exception:  # pickle raises nearly anything; cloudpickle says what it cannot take
        data = cloudpickle.dumps(message)
    connection.send_bytes(PICKLE + data)


def unpickled(data: bytes) -> Any:
    """The message in bytes that start with ``PICKLE``."""
    return pickle.loads(memoryview(data)[1:])


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

"""The life of a worker process: some environments of a subprocess manager."""

import copy
import logging
import os
import random
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import SPACES, GroupSettings, Seed, find_space
from ding.envs.env_manager._obs_store import ObsColumns
from ding.envs.env_manager._steps import reward_column
from ding.envs.env_manager._wire import (
    PICKLE,
    REWARDS,
    UNLIMITED,
    Failure,
    StepReply,
    receive_memory,
    send,
    unpickled,
)
from ding.utils import durations
from ding.utils.errors import EnvError


@dataclass(frozen=True)
class EnvWorkerSpec:
    """What a worker runs.

    Attributes:
        env_fns: By env id.
        env_num: Number of environments of the whole manager.
        renewals: How many workers before this one were lost.
        episode_count: Of those, by env id.
    """

    env_fns: Mapping[int, Callable]
    env_num: int
    settings: GroupSettings
    parent_pid: int
    seeds: Mapping[int, Seed] = field(default_factory=dict)
    replay_paths: Mapping[int, str] = field(default_factory=dict)
    renewals: int = 0
    episode_count: Mapping[int, int] = field(default_factory=dict)


def serve(connection: Connection, spec: EnvWorkerSpec) -> None:
    """Run environments until the parent says so, or is gone."""
    _isolate(spec)
    closing = threading.Event()
    threading.Thread(
        target=_die_with_parent, args=(connection, spec.parent_pid, closing), daemon=True
    ).start()
    worker = _Worker(connection, spec)
    try:
        worker.run()
    except (EOFError, OSError):
        pass  # the parent is gone
    finally:
        closing.set()
        if hasattr(signal, "alarm"):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            # Nobody may be left to end a process that hangs here.
            signal.alarm(int(durations.ENV_CLOSE_LIMIT))
        worker.group.close()


class _Worker:
    def __init__(self, connection: Connection, spec: EnvWorkerSpec) -> None:
        self.group = EnvGroup(spec.env_fns, spec.settings, spec.seeds, spec.replay_paths)
        self.group.has_process = True
        self._connection = connection
        self._spec = spec
        self._ids = list(spec.env_fns)
        self._store: ObsColumns | None = None
        self._action_layout: tuple[np.dtype, tuple[int, ...], type[np.ndarray]]
        if spec.settings.step_timeout is not None and spec.settings.reset_timeout is None:
            # The limit on steps must not cut short a reset that has none.
            self.group.before_reset = lambda: connection.send_bytes(UNLIMITED)

    def run(self) -> None:
        """Answer requests: each has exactly one reply, but those that set something have none."""
        if not self._reply(self._build):
            return
        while True:
            data = self._connection.recv_bytes()
            if data[:1] != PICKLE:
                self._reply(self._step_columns, data)
                continue
            name, *args = unpickled(data)
            if name == "close":
                return
            if name in ("attach", "set_action_layout"):
                getattr(self, name)(*args)
            else:
                self._reply(getattr(self, name), *args)

    # ---- requests -----------------------------------------------------------------------------

    def ask(self, method: str, *args: Any) -> Any:
        value = self.group.ask(method, *args)
        if method == "attribute" and callable(value[1]):
            raise EnvError(f"{args[1]!r} is a method of environments in other processes")
        return value

    def attach(self, layout: Any, size: int) -> None:
        memory = receive_memory(self._connection, size)
        self._store = ObsColumns(layout, self._spec.env_num, memory)

    def set_action_layout(self, dtype: str, shape: tuple[int, ...], kind: type[np.ndarray]) -> None:
        """Of the actions whose bytes will come: of all environments."""
        self._action_layout = np.dtype(dtype), shape, kind

    def restart(
        self, params: Mapping[int, dict | None], recount: bool, slot: int
    ) -> dict[int, Any]:
        """First observations, unless they are in shared memory."""
        first = {}
        for env_id, kwargs in params.items():
            obs = self.group.restart(env_id, kwargs, recount)
            if self._store is None:
                first[env_id] = copy.deepcopy(obs)  # environments may share what they hand out
            else:
                self._store.write(env_id, obs, slot)
        return first

    def step(
        self, ids: Sequence[int], actions: Any, slot: int, want_rows: bool
    ) -> bytes | StepReply:
        group, store = self.group, self._store
        step = group.step(ids, actions, want_rows)
        if store is not None:
            for env_id, obs in zip(ids, step.obs):
                store.write(env_id, obs, slot)
            if not step.ended and not step.abnormal and not want_rows:
                return REWARDS + reward_column(step.rewards, strict=True).tobytes()
        told = range(len(ids)) if want_rows else (*step.ended, *step.abnormal)
        reply = StepReply(dict(zip(ids, step.rewards)), {ids[p]: step.infos[p] for p in told})
        reply.ended.update(ids[p] for p in step.ended)
        reply.abnormal.update(ids[p] for p in step.abnormal)
        if store is None:
            # The environments may write over them when they are reset.
            reply.obs.update(zip(ids, copy.deepcopy(step.obs) if step.ended else step.obs))
        else:
            reply.obs.update({env_id: store.row(env_id, slot=slot) for env_id in reply.ended})
        for position, obs in group.start_next(ids, step).items():
            if store is None:
                reply.first_obs[ids[position]] = obs
            else:
                store.write(ids[position], obs, slot)
        reply.states.update({env_id: group.states[env_id] for env_id in reply.ended})
        return reply

    def _step_columns(self, data: bytes) -> bytes | StepReply:
        dtype, shape, kind = self._action_layout
        # A copy: environments may change what they are given.
        actions = np.frombuffer(bytearray(data), dtype, offset=2).reshape(shape).view(kind)
        return self.step(self._ids, actions, data[1], want_rows=False)

    # ---- inside -------------------------------------------------------------------------------

    def _build(self) -> dict[str, Any]:
        group, spec = self.group, self._spec
        group.build()
        group.replace(spec.renewals, spec.episode_count)
        if self._ids[0] != 0:
            return {}
        return {name: find_space(group.envs[0], name) for name in SPACES}

    def _reply(self, request: Callable, *args: Any) -> bool:
        """Whether the request succeeded; the edge at which the process meets any error."""
        try:
            value = request(*args)
        except Exception as error:
            send(self._connection, Failure(error))
            return False
        if isinstance(value, bytes):
            self._connection.send_bytes(value)
            return True
        try:
            send(self._connection, value)
        except (EOFError, OSError):
            raise
        except Exception as error:
            what = f"what env {self._ids} answered cannot be sent to the main process: {error}"
            send(self._connection, Failure(EnvError(what, self._ids[0])))
        return True


# ---- the process ------------------------------------------------------------------------------


def _isolate(spec: EnvWorkerSpec) -> None:
    """Undo what a forked process takes over from its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)  # it would wake the parent
    # Replaced or buffered streams and log handlers may hold locks of threads that are not here.
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    root = logging.getLogger()
    root.handlers = [logging.StreamHandler(sys.__stderr__)] if sys.__stderr__ else []
    if "torch" in sys.modules:
        # The pool of threads did not survive the fork; one thread per process is right anyway.
        sys.modules["torch"].set_num_threads(1)
    # Forked processes would all draw the same numbers.
    entropy = [seed for seed, _ in spec.seeds.values()] or None
    numbers = np.random.SeedSequence([*entropy, spec.renewals] if entropy else None)
    random.seed(int(numbers.generate_state(1)[0]))
    np.random.seed(numbers.generate_state(4))


def _die_with_parent(connection: Connection, parent_pid: int, closing: threading.Event) -> None:
    """End the process when the parent does, even while an environment hangs."""
    if not hasattr(select, "poll"):
        return
    hangup = select.poll()
    hangup.register(connection.fileno(), 0)  # hang-up and errors are always reported
    # Another child of the parent may hold the pipe open, hence the second look now and then.
    while os.getppid() == parent_pid:
        if hangup.poll(int(1000 * durations.ENV_PARENT_LOOK)):
            break
    if not closing.is_set():
        os._exit(1)

"""The tasks of a run: where each is, and how it comes from the commander to a worker."""

import os
import threading
import time
from collections.abc import Callable, Mapping

from ding.worker.messages import Kind, Task
from ding.worker.seams import Workers

from ._types import Config, StateDict
from .guarded_commander import GuardedCommander
from .run_buffers import RunBuffers
from .run_files import RunFiles

#: Learners first: without one there is no buffer that samples could go to.
KINDS: tuple[Kind, ...] = ("learner", "collector")

#: The moves that a task may make.
MOVES = {
    "queued": ("assigned", "timed_out", "failed"),
    "assigned": ("running", "queued", "failed"),
    "running": ("closing", "failed"),
    "closing": ("done", "failed"),
    "done": (),
    "failed": (),
    "timed_out": (),
}
STAGES = tuple(MOVES)
#: A task in one of these has not ended.
LIVE = ("queued", "assigned", "running", "closing")
#: Ended tasks that are remembered, to know answers that come late.
MEMORY = 1000


class TaskState:
    """One task.

    Args:
        task_id: Its name in all messages.
        kind: ``collector`` or ``learner``.
        task: What the worker is given.

    Attributes:
        stage: One of `STAGES`.
        created: When it was queued first, seconds of the monotonic clock.
        since: When it came where it is.
        worker: Who works on it, or did last.
        cause: Why it failed last.
    """

    def __init__(self, task_id: str, kind: Kind = "collector", task: Task | None = None) -> None:
        self.task_id, self.kind = task_id, kind
        self.task: Task = {"task_id": task_id} if task is None else task
        self.stage = "queued"
        self.created = self.since = time.monotonic()
        self.worker: str | None = None
        self.cause: str | None = None

    @property
    def buffer_id(self) -> str | None:
        buffer_id = self.task.get("buffer_id")
        return buffer_id if isinstance(buffer_id, str) else None

    @property
    def policy_id(self) -> str:
        """What a learner publishes its weights as."""
        return str(self.task.get("policy_id", ""))

    @property
    def has_priorities(self) -> bool:
        """Whether the policy wants samples to be drawn by priority."""
        return bool(self._part("policy").get("priority"))

    @property
    def is_eval(self) -> bool:
        """Whether a collector evaluates instead of collecting."""
        return bool(self._part("collector_cfg").get("eval_flag", False))

    @property
    def weights_names(self) -> list[str]:
        """The weights that a collector plays with."""
        names = self._part("collector_cfg").get("policy_update_path")
        return [names] if isinstance(names, str) else list(names or [])

    def _part(self, key: str) -> Config:
        part = self.task.get(key)
        return part if isinstance(part, Mapping) else {}


class TaskTable:
    """All tasks of a run. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._live: dict[str, TaskState] = {}
        self._ended: dict[str, TaskState] = {}
        self._totals = dict.fromkeys(("done", "failed", "timed_out"), 0)

    def add(self, kind: Kind, task: Task) -> TaskState:
        """Queue a task.

        Raises:
            ValueError: It has no id, or the id of a task that has not ended.
        """
        task_id = task.get("task_id")
        if not isinstance(task_id, str) or not task_id:
            raise ValueError(
                f"the commander gave a {kind} task with task_id {task_id!r}, expected a string"
            )
        with self._lock:
            if task_id in self._live:
                stage = self._live[task_id].stage
                raise ValueError(f"the commander gave task {task_id} again: it is {stage}")
            self._ended.pop(task_id, None)
            state = self._live[task_id] = TaskState(task_id, kind, task)
            return state

    def get(self, task_id: str, kind: Kind | None = None) -> TaskState | None:
        """A task of that kind, also one that has ended lately."""
        with self._lock:
            state = self._find(task_id)
        return state if state is not None and kind in (None, state.kind) else None

    def move(
        self, task_id: str, stage: str, worker: str | None = None, cause: str | None = None
    ) -> bool:
        """Whether the task was where that move is allowed; only then it is made."""
        with self._lock:
            state = self._find(task_id)
            if state is None or stage not in MOVES[state.stage]:
                return False
            state.stage, state.since = stage, time.monotonic()
            if worker is not None:
                state.worker = worker
            if cause is not None:
                state.cause = cause
            if stage == "queued":
                state.worker = None
            elif stage in self._totals:
                self._totals[stage] += 1
                self._ended[task_id] = self._live.pop(task_id)
                if len(self._ended) > MEMORY:
                    del self._ended[next(iter(self._ended))]
            return True

    def live(self, kind: Kind | None = None, stage: str | None = None) -> list[TaskState]:
        """The tasks that have not ended, oldest first."""
        with self._lock:
            return [
                state
                for state in self._live.values()
                if kind in (None, state.kind) and stage in (None, state.stage)
            ]

    def counts(self) -> dict[str, int]:
        """How many tasks are in each stage; of those that ended, how many ever came there."""
        with self._lock:
            counts = dict.fromkeys(LIVE, 0) | self._totals
            for state in self._live.values():
                counts[state.stage] += 1
            return counts

    def state_dict(self) -> StateDict:
        with self._lock:
            live = [
                {"task_id": state.task_id, "kind": state.kind, "buffer_id": state.buffer_id or ""}
                for state in self._live.values()
            ]
            return {"live": live, "totals": dict(self._totals)}

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Tasks that were open when the state was taken have failed: their answers are stale."""
        with self._lock:
            self._live.clear()
            self._ended.clear()
            self._totals.update(state_dict["totals"])
            for saved in state_dict["live"]:
                self.add(saved["kind"], {k: saved[k] for k in ("task_id", "buffer_id")})
                self.move(saved["task_id"], "failed", cause="the coordinator was started again")

    def _find(self, task_id: object) -> TaskState | None:
        if not isinstance(task_id, str):
            return None
        return self._live.get(task_id) or self._ended.get(task_id)


class TaskScheduler:
    """Takes tasks of the commander, gives them to workers, and takes back those that nobody took.

    Args:
        commander: Makes the tasks.
        is_over: Whether no more tasks are to be given.
        workers: Those who do them.
        table: Where each task is.
        buffers: Opened for learners' tasks.
        files: Told the names of what the tasks' workers will write.
        exp_name: The run's folder, where learners keep their state.
        limits: Seconds in which somebody has to take a task, by kind.
        warn: Shows a line to the operator.

    Attributes:
        policy_ids: Names of weights that learners were told to publish.
        state_paths: Files that learners were told to keep their state in.
    """

    def __init__(
        self,
        commander: GuardedCommander,
        is_over: Callable[[], bool],
        workers: Workers,
        table: TaskTable,
        buffers: RunBuffers,
        files: RunFiles,
        exp_name: str,
        limits: Mapping[Kind, float],
        warn: Callable[[str], object],
    ) -> None:
        self._commander, self._is_over, self._workers = commander, is_over, workers
        self._table, self._buffers, self._files = table, buffers, files
        self._exp_name, self._limits, self._warn = exp_name, limits, warn
        self.policy_ids: set[str] = set()
        self.state_paths: set[str] = set()

    def schedule(self) -> None:
        """Give out what can be given out now."""
        for kind in KINDS:
            while self._assign_one(kind):
                pass
            self._expire(kind)

    def _assign_one(self, kind: Kind) -> bool:
        """Whether a worker got a task."""
        queued = self._table.live(kind, "queued") or self._next_task(kind)
        if not queued:
            return False
        state = queued[0]
        # Before it is sent: the worker may be quick.
        self._table.move(state.task_id, "assigned")
        if kind == "learner":
            is_sent = self._workers.send_learner_task(state.task)
        else:
            is_sent = self._workers.send_collector_task(state.task)
        if not is_sent:
            self._table.move(state.task_id, "queued")
        return is_sent

    def _next_task(self, kind: Kind) -> list[TaskState]:
        """A new task of the commander, queued, if there is one."""
        # A commander is asked when there is somebody to work, or nobody ever: then the task's time
        # runs out, and that is shown.
        waits = self._workers.free(kind) or not self._workers.present(kind)
        task = self._commander.get_task(kind) if waits and not self._is_over() else None
        if task is None:
            return []
        if kind == "learner":
            task = self._prepare(task)
        return [self._table.add(kind, task)]

    def _prepare(self, task: Task) -> Task:
        """Make ready what a learner's task needs; returns the task with its ``state_path``."""
        policy_id, buffer_id = task.get("policy_id"), task.get("buffer_id")
        if policy_id:
            self.policy_ids.add(str(policy_id))
            self._files.note("weights", [str(policy_id)])
            name = f"learner_{str(policy_id).replace(os.sep, '_')}.pth.tar"
            path = task.get("state_path") or os.path.join(self._exp_name, "ckpt", name)
            self.state_paths.add(str(path))
            task = {**task, "state_path": path}
        if isinstance(buffer_id, str):
            self._files.note("buffers", [buffer_id])
            cfg = task.get("replay_buffer_cfg")
            self._buffers.open(buffer_id, cfg if isinstance(cfg, Mapping) else {})
        return task

    def _expire(self, kind: Kind) -> None:
        limit = self._limits[kind]
        for state in self._table.live(kind, "queued"):
            if time.monotonic() - state.created > limit:
                cause = f"no {kind} took it within {limit:g} s"
                if self._table.move(state.task_id, "timed_out", cause=cause):
                    self._warn(f"task {state.task_id}: {cause}")
                    self._commander.task_failed(kind, state.task, cause)

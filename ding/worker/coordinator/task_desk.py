"""Takes tasks of the commander, gives them to workers, and takes back those that nobody took."""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from ding.worker.messages import Kind

from .comm_coordinator import CommCoordinator
from .run_buffers import RunBuffers
from .run_files import RunFiles
from .task_table import TaskState, TaskTable

KINDS: tuple[Kind, ...] = ("learner", "collector")


class TaskDesk:
    """The way of tasks from the commander to the workers.

    Args:
        commanded: Calls a method of the commander.
        comm: Gives tasks to workers.
        table: Knows where each task is.
        buffers: Opened for learners' tasks.
        files: Told the names of what the tasks' workers will write.
        exp_name: The run's folder, where learners keep their state.
        limits: Seconds in which somebody has to take a task, by kind.
        tell: Shows a line to the operator.

    Attributes:
        policy_ids: Names of weights that learners were told to publish.
        state_paths: Files that learners were told to keep their state in.
    """

    def __init__(
        self,
        commanded: Callable[..., Any],
        comm: CommCoordinator,
        table: TaskTable,
        buffers: RunBuffers,
        files: RunFiles,
        exp_name: str,
        limits: Mapping[str, float],
        tell: Callable[[str], object],
    ) -> None:
        self._commanded, self._comm = commanded, comm
        self._table, self._buffers, self._files = table, buffers, files
        self._exp_name, self._limits, self._tell = exp_name, limits, tell
        self.policy_ids: set[str] = set()
        self.state_paths: set[str] = set()

    def serve(self) -> None:
        """Give out what can be given out now."""
        for kind in KINDS:
            while self._give_one(kind):
                pass
            self._expire(kind)

    def give_back(self, state: TaskState, cause: str) -> None:
        """Tell the commander that a task failed."""
        self._commanded(f"notify_fail_{state.kind}_task", {**state.task, "message": cause})

    def _give_one(self, kind: Kind) -> bool:
        """Whether a worker got a task."""
        queued = self._table.live(kind, "queued")
        if not queued:
            # A commander is asked when there is somebody to work, or nobody ever: then the task's
            # time runs out, and that is told.
            if not self._comm.free(kind) and self._comm.present(kind):
                return False
            task = self._commanded(f"get_{kind}_task")
            if task is None:
                return False
            queued = [self._accept(kind, task)]
        state = queued[0]
        # Before it is sent: the worker may be quick.
        self._table.move(state.task_id, "assigned")
        if getattr(self._comm, f"send_{kind}_task")(state.task):
            return True
        self._table.move(state.task_id, "queued")
        return False

    def _accept(self, kind: Kind, task: dict[str, Any]) -> TaskState:
        if kind == "learner":
            policy_id = task.get("policy_id")
            if policy_id:
                self.policy_ids.add(policy_id)
                self._files.note("weights", [policy_id])
                name = f"learner_{str(policy_id).replace(os.sep, '_')}.pth.tar"
                path = task.setdefault("state_path", os.path.join(self._exp_name, "ckpt", name))
                self.state_paths.add(path)
            buffer_id = task.get("buffer_id")
            if isinstance(buffer_id, str):
                self._files.note("buffers", [buffer_id])
            self._buffers.open(buffer_id, task.get("replay_buffer_cfg", {}))
        return self._table.add(kind, task)

    def _expire(self, kind: Kind) -> None:
        limit = self._limits[kind]
        for state in self._table.live(kind, "queued"):
            if time.monotonic() - state.created > limit:
                cause = f"no {kind} took it within {limit:g} s"
                if self._table.move(state.task_id, "timed_out", cause=cause):
                    self._tell(f"task {state.task_id}: {cause}")
                    self.give_back(state, cause)

"""Brings tasks from the commander to workers."""

import os
from collections.abc import Mapping

from ding.worker.messages import Kind, Task

from .core import Core
from .run import Run
from .run_buffers import RunBuffers
from .run_files import RunFiles
from .task_table import TaskState

#: Learners first: without one there is no buffer that samples could go to.
KINDS: tuple[Kind, ...] = ("learner", "collector")


class TaskScheduler:
    """Takes tasks of the commander, gives them to workers, and takes back those that nobody took.

    Args:
        run: The run.
        buffers: Opened for learners' tasks.
        files: Told the names of what the tasks' workers will write.
        limits: Seconds in which somebody has to take a task, by kind.
    """

    def __init__(
        self,
        run: Run,
        buffers: RunBuffers,
        files: RunFiles,
        limits: Mapping[Kind, float],
    ) -> None:
        self._run, self._buffers, self._files = run, buffers, files
        self._limits = limits

    def schedule(self, core: Core, now: float) -> None:
        """Give the core's workers what can be given out now."""
        for kind in KINDS:
            while self._assign_one(core, kind):
                pass
            self._expire(kind, now)

    def _assign_one(self, core: Core, kind: Kind) -> bool:
        """Whether a worker got a task."""
        table = self._run.table
        queued = table.queued(kind) or self._next_task(core, kind)
        if not queued:
            return False
        state = queued[0]
        # Before it is sent: the worker may be quick.
        table.move(state.task_id, "assigned")
        is_sent = core.send(kind, state.task)
        if not is_sent:
            table.move(state.task_id, "queued")
        return is_sent

    def _next_task(self, core: Core, kind: Kind) -> list[TaskState]:
        """A new task of the commander, queued, if there is one."""
        # A commander is asked when there is somebody to work, or nobody ever: then the task's time
        # runs out, and that is shown.
        waits = core.free(kind) or not core.present(kind)
        if not waits or self._run.verdict is not None:
            return []
        commander = self._run.commander
        if kind == "collector":
            task: Task | None = self._run.ask(commander.get_collector_task)
        else:
            task = self._run.ask(commander.get_learner_task)
        if task is None:
            return []
        if kind == "learner":
            task = self._prepare(task)
        return [self._run.table.add(kind, task)]

    def _prepare(self, task: Task) -> Task:
        """Make ready what a learner's task needs; returns the task with its ``state_path``."""
        policy_id, buffer_id = task.get("policy_id"), task.get("buffer_id")
        if policy_id:
            self._files.note("weights", [str(policy_id)])
            name = f"learner_{str(policy_id).replace(os.sep, '_')}.pth.tar"
            path = task.get("state_path") or os.path.join(self._run.exp_name, "ckpt", name)
            self._files.note("states", [str(path)])
            task = {**task, "state_path": path}
        if isinstance(buffer_id, str):
            self._files.note("buffers", [buffer_id])
            cfg = task.get("replay_buffer_cfg")
            self._buffers.open(buffer_id, cfg if isinstance(cfg, Mapping) else {})
        return task

    def _expire(self, kind: Kind, now: float) -> None:
        limit = self._limits[kind]
        for state in self._run.table.queued(kind):
            if now - state.created > limit:
                cause = f"no {kind} took it within {limit:g} s"
                if self._run.table.move(state.task_id, "timed_out"):
                    self._run.warn(f"task {state.task_id}: {cause}")
                    self._run.give_back(kind, state.task, cause)

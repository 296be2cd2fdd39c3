"""Brings tasks from the commander to workers."""

import os
from collections.abc import Mapping

from ding.worker.messages import Kind, Task

from .core import Core
from .run import Run
from .task_table import TaskState

#: Learners first: without one there is no buffer that samples could go to.
KINDS: tuple[Kind, ...] = ("learner", "collector")


class TaskScheduler:
    """Takes tasks of the commander, gives them to workers, and takes back those that none took
    within the limit of their kind, in seconds."""

    def __init__(self, run: Run, limits: Mapping[Kind, float]) -> None:
        self._run, self._limits = run, limits

    def schedule(self, core: Core, now: float) -> None:
        """Give the core's workers what can be given out now."""
        for kind in KINDS:
            while self._assign_one(core, kind, now):
                pass
            self._expire(kind, now)

    def _assign_one(self, core: Core, kind: Kind, now: float) -> bool:
        """Whether a worker got a task."""
        table = self._run.table
        queued = table.queued(kind) or self._next_task(core, kind, now)
        if not queued:
            return False
        state = queued[0]
        # Before it is sent: the worker may be quick.
        table.move(state.task_id, "assigned")
        is_sent = core.send(kind, state.task)
        if not is_sent:
            table.move(state.task_id, "queued")
        return is_sent

    def _next_task(self, core: Core, kind: Kind, now: float) -> list[TaskState]:
        """A new task of the commander, queued, if there is one."""
        # A commander is asked when a worker is free, or none is there at all: then the task's time
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
        return [self._run.table.add(kind, task, now)]

    def _prepare(self, task: Task) -> Task:
        """Make ready what a learner's task needs; returns the task with its ``state_path``."""
        run = self._run
        policy_id, buffer_id = task.get("policy_id"), task.get("buffer_id")
        if policy_id:
            run.files.note("weights", [str(policy_id)])
            name = f"learner_{str(policy_id).replace(os.sep, '_')}.pth.tar"
            path = task.get("state_path") or os.path.join(run.exp_name, "ckpt", name)
            run.files.note("states", [str(path)])
            task = {**task, "state_path": path}
        if isinstance(buffer_id, str):
            run.files.note("buffers", [buffer_id])
            cfg = task.get("replay_buffer_cfg")
            run.open_buffer(buffer_id, cfg if isinstance(cfg, Mapping) else {})
        return task

    def _expire(self, kind: Kind, now: float) -> None:
        limit = self._limits[kind]
        for state in self._run.table.queued(kind):
            if now - state.created > limit and self._run.table.move(state.task_id, "timed_out"):
                cause = f"no {kind} took it within {limit:g} s"
                self._run.error(f"task {state.task_id}: {cause}")
                self._run.give_back(kind, state.task, cause)

"""The tasks of a run and their stages."""

from collections.abc import Mapping

from ding.utils.types import Settings, State
from ding.worker.messages import Kind, Task

#: The allowed transitions between stages.
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
#: Stages of tasks that have not ended.
LIVE = ("queued", "assigned", "running", "closing")
#: Number of ended tasks that are stored, to recognise late answers.
MEMORY = 1000


class TaskState:
    """A task: its dict for the worker, the time it was first queued (seconds), its stage (one of
    `STAGES`), and its current or last worker."""

    def __init__(
        self,
        task_id: str,
        kind: Kind = "collector",
        task: Task | None = None,
        created: float = 0.0,
    ) -> None:
        self.task_id, self.kind, self.created = task_id, kind, created
        self.task: Task = {"task_id": task_id} if task is None else task
        self.stage = "queued"
        self.worker: str | None = None

    @property
    def buffer_id(self) -> str | None:
        """Buffer that the task reads or fills; None if the task names none."""
        buffer_id = self.task.get("buffer_id")
        return buffer_id if isinstance(buffer_id, str) else None

    @property
    def policy_id(self) -> str:
        """Name under which a learner publishes its weights."""
        return str(self.task.get("policy_id", ""))

    @property
    def has_priorities(self) -> bool:
        """Whether the policy uses prioritised sampling."""
        return bool(self._part("policy").get("priority"))

    @property
    def is_eval(self) -> bool:
        """Whether a collector evaluates instead of collecting."""
        return bool(self._part("collector_cfg").get("eval_flag", False))

    @property
    def eval_stage(self) -> int:
        """How hard an evaluation is: returns of two stages are not comparable."""
        stage = self._part("collector_cfg").get("eval_stage", 0)
        return stage if isinstance(stage, int) else 0

    @property
    def weights_names(self) -> list[str]:
        """Names of the weights that a collector uses."""
        names = self._part("collector_cfg").get("policy_update_path")
        return [names] if isinstance(names, str) else list(names or [])

    def _part(self, key: str) -> Settings:
        part = self.task.get(key)
        return part if isinstance(part, Mapping) else {}


class TaskTable:
    """All tasks of a run."""

    def __init__(self) -> None:
        self._live: dict[str, TaskState] = {}
        # Separate, so that a worker that becomes idle need not search all tasks.
        self._queued: dict[str, TaskState] = {}
        self._ended: dict[str, TaskState] = {}
        self._totals = dict.fromkeys(("done", "failed", "timed_out"), 0)

    def add(self, kind: Kind, task: Task, now: float = 0.0) -> TaskState:
        """Queue a task; its id must exist and not be that of a live task."""
        task_id = task.get("task_id")
        if not isinstance(task_id, str) or not task_id:
            raise ValueError(
                f"the commander gave a {kind} task with task_id {task_id!r}, expected a string"
            )
        if task_id in self._live:
            stage = self._live[task_id].stage
            raise ValueError(f"the commander gave task {task_id} again: it is {stage}")
        # A commander may queue a failed task again under its id.
        self._ended.pop(task_id, None)
        state = TaskState(task_id, kind, task, now)
        self._live[task_id] = self._queued[task_id] = state
        return state

    def get(self, task_id: str, kind: Kind | None = None) -> TaskState | None:
        """A task of that kind, including recently ended ones."""
        state = self._find(task_id)
        return state if state is not None and kind in (None, state.kind) else None

    def move(self, task_id: str, stage: str, worker: str | None = None) -> bool:
        """Change a task's stage if the transition is allowed; returns whether it was."""
        state = self._find(task_id)
        if state is None or stage not in MOVES[state.stage]:
            return False
        state.stage = stage
        self._queued.pop(task_id, None)
        if worker is not None:
            state.worker = worker
        if stage == "queued":
            state.worker = None
            self._queued[task_id] = state
        elif stage in self._totals:
            self._totals[stage] += 1
            self._ended[task_id] = self._live.pop(task_id)
            if len(self._ended) > MEMORY:
                del self._ended[next(iter(self._ended))]
        return True

    def queued(self, kind: Kind) -> list[TaskState]:
        """The tasks that wait for a worker, in queue order."""
        return [state for state in self._queued.values() if state.kind == kind]

    def live(self, kind: Kind | None = None) -> list[TaskState]:
        """The tasks that have not ended, oldest first."""
        return [state for state in self._live.values() if kind in (None, state.kind)]

    def counts(self) -> dict[str, int]:
        """Number of tasks in each stage; of ended tasks, the total number so far."""
        counts = dict.fromkeys(LIVE, 0) | self._totals
        for state in self._live.values():
            counts[state.stage] += 1
        return counts

    def state_dict(self) -> State:
        live = [
            {"task_id": state.task_id, "kind": state.kind, "buffer_id": state.buffer_id or ""}
            for state in self._live.values()
        ]
        return {"live": live, "totals": dict(self._totals)}

    def load_state_dict(self, state_dict: State) -> None:
        """Restore a state: tasks that were open have failed, since their answers are stale."""
        self._live.clear()
        self._queued.clear()
        self._ended.clear()
        self._totals.update(state_dict["totals"])
        for saved in state_dict["live"]:
            self.add(saved["kind"], {k: saved[k] for k in ("task_id", "buffer_id")})
            self.move(saved["task_id"], "failed")

    def _find(self, task_id: object) -> TaskState | None:
        if not isinstance(task_id, str):
            return None
        return self._live.get(task_id) or self._ended.get(task_id)

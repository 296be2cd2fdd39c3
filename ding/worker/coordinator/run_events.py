"""Processes the reports of workers' sessions."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import cast

from ding.envs.running_statistics import Statistics
from ding.utils.callbacks import CheckpointSaved, Collected, EpisodeDone, Evaluated
from ding.utils.errors import RunError
from ding.worker.messages import Json, Kind, Task
from ding.worker.seams import TaskFailure
from ding.worker.tasks import (
    ChunkMeta,
    CollectorCounts,
    CollectorInfo,
    CollectorReport,
    LearnerInfo,
    LearnerNews,
)

from .chunk_buffer import ChunkBuffer
from .run import Run
from .run_facts import as_count, as_number, mean_return
from .run_files import BEST_NAME
from .task_table import LIVE, TaskState
from .turn import in_turn

_logger = logging.getLogger(__name__)


class RunEvents(Run):
    """Processes the reports of workers' sessions, and changes the run accordingly."""

    # ------------------------------------------------------------------ collectors

    @in_turn
    def deal_with_collector_send_data(
        self, task_id: str, buffer_id: str, data_id: str, data: ChunkMeta
    ) -> None:
        """A chunk of samples was stored in the sample store; ``data`` is its metadata."""
        state, buffer = self._collector_task(task_id), self.learner_buffer(buffer_id)
        if state is None or buffer is None or state.stage not in LIVE:
            _logger.debug("data %s of task %s has no buffer", data_id, task_id)
            # No buffer knows the chunk: it would stay in the store until the run's end.
            self.turn.later(partial(self.files.discard, data_id))
            return
        samples = as_count(data.get("sample_num", 1))
        envstep = self._count_steps(state, data)
        meta = {name: value for name, value in data.items() if name != "env_statistics"}
        # Without the statistics, since the metadata are kept as long as the chunk.
        buffer.push({**meta, "data_id": data_id}, envstep)
        self.facts.collected(state.worker, samples, as_count(data.get("size")))
        if "env_statistics" in data:
            problem = self.facts.observed(data["env_statistics"])
            if problem is not None:
                self.error(problem)
        if "policy_iter" in data:
            for policy_id in state.weights_names[:1]:  # the first player reports
                self.facts.used(policy_id, data["policy_iter"])
        self.retries.progress("collector")
        self.notify(Collected, sample_count=samples)

    @in_turn
    def deal_with_collector_judge_finish(self, task_id: str, data: CollectorInfo) -> bool:
        """Process a collector's progress; returns whether its task must be closed. Unknown tasks
        are not closed."""
        state = self._collector_task(task_id)
        if state is None:
            return False
        if state.stage in LIVE:
            self._count_steps(state, data)
        return bool(self.ask(self.commander.judge_collector_finish, task_id, data))

    @in_turn
    def deal_with_collector_finish_task(self, task_id: str, finished_task: CollectorReport) -> None:
        """A collector's task is done; process its report."""
        state = self._collector_task(task_id)
        if state is None or not self._done(state):
            return
        is_eval = state.is_eval
        is_best = self.facts.finished(task_id, is_eval, finished_task, state.eval_stage)
        converged = self.ask(self.commander.finish_collector_task, task_id, finished_task)
        if as_count(finished_task.get("real_episode_count")):
            self.retries.progress("evaluation" if is_eval else "collector")
        # After the turn, since it writes a checkpoint and calls custom code, for which all workers
        # would wait.
        self.turn.later(partial(self._show_report, state, finished_task, is_best, bool(converged)))

    def _show_report(
        self, state: TaskState, info: CollectorReport, is_best: bool, converged: bool
    ) -> None:
        """Log and show a collector's final report."""
        is_eval = state.is_eval
        returns = self._take_episodes(state, info)
        if self.files.take_evaluated(info, is_eval and is_best):
            self.notify(CheckpointSaved, path=os.path.join(self.exp_name, "ckpt", BEST_NAME))
        reward = mean_return(info, is_eval)
        if is_eval and reward is not None:
            self.view.evaluated(reward)
            self.notify(Evaluated, result=reward, returns=returns, is_best=is_best)
        if converged:
            said = f"the commander says so after task {state.task_id}"
            self.stop(self.commander.converged_reason or said, "converged")
        self.stop_at_goal()

    def _take_episodes(self, state: TaskState, info: CollectorReport) -> tuple[float, ...]:
        """Log the episodes of a report; returns their returns."""
        returns: list[float] = []
        source = f"{state.worker}_eval" if state.is_eval else str(state.worker)
        episodes = info.get("episode_info")
        for entry in episodes if isinstance(episodes, list) else []:
            if isinstance(entry, list) and len(entry) == 3 and None not in map(as_number, entry):
                env_id, episode_return, length = cast("list[int]", entry)
                returns.append(float(episode_return))
                if self.log is not None:
                    counts = self.facts.envstep, self.facts.train_iter
                    self.log.episode(source, env_id, episode_return, length, *counts)
                facts = {"env_id": env_id, "episode_return": returns[-1], "length": length}
                self.notify(EpisodeDone, source=source, **facts)
        return tuple(returns)

    def _count_steps(self, state: TaskState, info: CollectorCounts) -> int:
        """Report a collect task's env steps to commander and facts; returns the run's total."""
        self.ask(self.commander.update_collect_progress, state.task_id, info)
        if state.is_eval:
            return self.facts.envstep
        return self.facts.stepped(state.task_id, info.get("cur_step"))

    # ------------------------------------------------------------------ learners

    @in_turn
    def deal_with_learner_get_data(
        self, task_id: str, buffer_id: str, batch_size: int, cur_learner_iter: int
    ) -> Sequence[Mapping[str, Json]] | None:
        """One batch for a foreign learner, one dict per sample; ``None`` if there is none yet.

        Raises:
            RunError: There is no such task; holds for all calls for learners.
        """
        self._learner_task(task_id)
        buffer = self.learner_buffer(buffer_id)
        return None if buffer is None else buffer.sample_rows(batch_size, cur_learner_iter)

    @in_turn
    def deal_with_learner_send_info(self, task_id: str, buffer_id: str, info: LearnerNews) -> None:
        """Process a learner's report on its training."""
        state = self._learner_task(task_id)
        worker, buffer = str(state.worker), self.learner_buffer(buffer_id)
        if buffer is not None:
            # Learners report priorities even if the config does not use them.
            priorities = info.get("priority_info")
            if isinstance(priorities, Mapping) and state.has_priorities:
                buffer.update(priorities)
            for data_id, cause in info.get("bad_chunks", []):
                count = buffer.drop_chunk(data_id, cause)
                self.warn(worker, f"{count} samples of {data_id} were dropped: {cause}")
        for warning in info.get("warnings", []):
            self.warn(worker, warning)
        trouble = self.facts.note_trouble(worker, info.get("trouble"))
        if trouble is not None:
            self.warn(worker, trouble)
        self.retries.trained(self.facts.trained(state.policy_id, info), state.policy_id)
        self.ask(self.commander.update_learner_info, task_id, info)

    @in_turn
    def deal_with_learner_judge_finish(self, task_id: str, info: LearnerInfo) -> bool:
        """Whether a learner's task must be closed, according to its report."""
        self._learner_task(task_id)
        return bool(self.ask(self.commander.judge_learner_finish, task_id, info))

    @in_turn
    def deal_with_learner_finish_task(self, task_id: str, finished_task: LearnerInfo) -> None:
        """A learner's task is done; process its report, and close its buffer."""
        state = self._learner_task(task_id)
        if not self._done(state):
            return
        # The final report may contain updates after the last progress report.
        self.facts.trained(state.policy_id, finished_task)
        unused = self.ask(self.commander.finish_learner_task, task_id, finished_task)
        self.stop_at_goal()
        buffer_id = unused or state.buffer_id
        # Two learners of a run may share a buffer.
        used = any(other.buffer_id == buffer_id for other in self.table.live("learner"))
        if buffer_id and not used and self.verdict is None:
            closed = self.buffers.pop(buffer_id, None)
            if closed is not None:
                self.turn.later(partial(closed.close, remove_files=True))

    # ------------------------------------------------------------------ data

    def learner_buffer(self, buffer_id: str | None) -> ChunkBuffer | None:
        """The buffer with that id, if it exists."""
        return self.buffers.get(buffer_id) if isinstance(buffer_id, str) else None

    def collected(self) -> tuple[int, Statistics]:
        """Env steps of all collectors so far, and the statistics of their normalising environments;
        each change of the statistics creates a new object."""
        return self.facts.envstep, self.facts.env_statistics

    # ------------------------------------------------------------------ tasks

    def next_task(self, kind: Kind, may_be_new: bool, now: float) -> Task | None:
        """The next task to assign: a queued one, or, if allowed, a new one."""
        for waiting in self.table.queued(kind):
            return waiting.task
        if not may_be_new or self.verdict is not None:
            return None
        is_learner, commander = kind == "learner", self.commander
        get = commander.get_learner_task if is_learner else commander.get_collector_task
        task: Task | None = self.ask(get)
        if task is None:
            return None
        return self.table.add(kind, self._prepare(task) if is_learner else task, now).task

    def _prepare(self, task: Task) -> Task:
        """Open a learner task's buffer; returns the task with its ``state_path``."""
        policy_id, buffer_id = task.get("policy_id"), task.get("buffer_id")
        if policy_id:
            self.files.note("weights", [str(policy_id)])
            name = f"learner_{str(policy_id).replace(os.sep, '_')}.pth.tar"
            path = task.get("state_path") or os.path.join(self.exp_name, "ckpt", name)
            task = {**task, "state_path": path}
        if isinstance(buffer_id, str):
            self.files.note("buffers", [buffer_id])
            cfg = task.get("replay_buffer_cfg")
            self.open_buffer(buffer_id, cfg if isinstance(cfg, Mapping) else {})
        return task

    def expire_tasks(self, kind: Kind, now: float) -> None:
        """Fail the tasks that no worker took within the time limit of their kind."""
        limit = self.task_limits[kind]
        for state in self.table.queued(kind):
            if now - state.created > limit and self.table.move(state.task_id, "timed_out"):
                cause = f"no {kind} took it within {limit:g} s"
                self.error(f"task {state.task_id}: {cause}")
                self.give_back(kind, state.task, cause)

    def task_moved(self, task_id: str, stage: str, worker: str | None = None) -> None:
        """A task has reached another stage, at the worker."""
        self.table.move(task_id, stage, worker)

    def task_failed(self, failure: TaskFailure) -> None:
        """A task failed and must be assigned again."""
        task_id = failure.task_id or ""
        state = self.table.get(task_id)
        # A task fails once: the loss of its worker may be reported by its session and by its
        # control.
        if state is None or not self.table.move(task_id, "failed", failure.worker):
            return
        if self.verdict is None:
            self._show_failure(failure)
            group = "evaluation" if state.is_eval else state.kind
            policy_id = state.policy_id if state.kind == "learner" else ""
            now, created = self.facts.clock(), state.created
            reason = self.retries.failed(group, failure, now, created, policy_id)
            if reason is not None:
                self.stop(self.facts.with_root(reason), "failed")
        self.give_back(state.kind, state.task, failure.cause)
        self.wake.set()

    # ------------------------------------------------------------------ workers

    @in_turn
    def deal_with_increase_collector(self) -> None:
        """A collector beyond the configured number has joined."""
        self.ask(self.commander.increase_collector_task_space)
        self.wake.set()

    @in_turn
    def deal_with_decrease_collector(self) -> None:
        """A collector beyond the configured number has left."""
        self.ask(self.commander.decrease_collector_task_space)

    def workers_changed(self) -> None:
        """A worker joined, left, or became idle."""
        self.wake.set()

    def failed_worker(self, failure: TaskFailure) -> None:
        """A worker without a task was lost."""
        if self.verdict is None:
            self._show_failure(failure)

    def worker_left(self, worker: str) -> None:
        """A worker was lost, or replaced by another of its name."""
        self.facts.forget_worker(worker)
        for buffer in self.buffers.values():
            self.turn.later(partial(buffer.forget_worker, worker))

    def warn(self, worker: str, text: str) -> None:
        """Pass a worker's warning to the operator."""
        self.error(f"{worker}: {text}")

    def fatal(self, cause: str) -> None:
        """The run cannot continue."""
        self.stop(cause, "failed")

    # ------------------------------------------------------------------ helpers

    def _show_failure(self, failure: TaskFailure) -> None:
        self.facts.failed(failure)
        self.view.failed(failure)

    def _collector_task(self, task_id: str) -> TaskState | None:
        """A collector's task; an unknown one is reported to the operator."""
        state = self.table.get(task_id, "collector")
        if state is None:
            self.error(f"there is no collector task {task_id!r}")
        return state

    def _learner_task(self, task_id: str) -> TaskState:
        """A learner's task; an unknown one raises `RunError`."""
        state = self.table.get(task_id, "learner")
        if state is None:
            raise RunError(
                f"there is no learner task {task_id!r}; expected one that this coordinator has "
                "handed out"
            )
        return state

    def _done(self, state: TaskState) -> bool:
        """Mark a task as done; returns whether it was open."""
        self.table.move(state.task_id, "closing")
        done = self.table.move(state.task_id, "done")
        self.wake.set()
        return done


# ---------------------------------------------------------------------- events as functions

#: Names of the functions that a custom coordinator provides.
CALLBACKS = tuple(name for name in vars(RunEvents) if name.startswith("deal_with_"))
Callbacks = Mapping[str, Callable[..., object]]


def events_of(callbacks: Callbacks) -> RunEvents:
    """Build `RunEvents` from functions: all of `CALLBACKS`, with the methods' parameters; other
    events are ignored."""
    missing = [name for name in CALLBACKS if name not in callbacks]
    if missing:
        raise KeyError(f"callback_fn lacks {', '.join(missing)}")
    events = {name: _pass_over for name in vars(RunEvents) if not name.startswith("_")}
    known: Callbacks = {"collected": lambda: (0, {})}
    return cast(RunEvents, SimpleNamespace(**{**events, **known, **callbacks}))


def _pass_over(*news: object) -> None:
    """Default of other events; for `learner_buffer` it means that there is no buffer."""

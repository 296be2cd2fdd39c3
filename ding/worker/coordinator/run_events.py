"""What the sessions of workers report, and what that changes in a run."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import cast

from ding.envs.running_statistics import Statistics
from ding.utils.callbacks import CheckpointSaved, Collected, EpisodeDone, Evaluated
from ding.utils.errors import RunError
from ding.worker.messages import Json, Kind
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
from .reported_values import as_count, as_number, mean_return
from .retry_limit import RetryLimit
from .run import Run
from .run_buffers import RunBuffers
from .run_files import BEST_NAME, RunFiles
from .task_table import LIVE, TaskState
from .turn import in_turn

_logger = logging.getLogger(__name__)


class RunEvents:
    """What the sessions of workers tell and ask the coordinator. Its methods are for any thread.

    Args:
        run: The run.
        buffers: Take in what collectors have stored.
        files: Makes the best checkpoint, and removes what nobody wants.
        max_task_retry: Failures in a row without progress that are tried again.
    """

    def __init__(self, run: Run, buffers: RunBuffers, files: RunFiles, max_task_retry: int) -> None:
        self._run, self._buffers, self._files = run, buffers, files
        self.commander, self.turn = run.commander, run.turn
        self._retries = RetryLimit(max_task_retry)

    # ------------------------------------------------------------------ collectors

    @in_turn
    def deal_with_collector_send_data(
        self, task_id: str, buffer_id: str, data_id: str, data: ChunkMeta
    ) -> None:
        """A chunk of samples is in the sample store; ``data`` is its metadata."""
        run, state = self._run, self._known(task_id, "collector")
        buffer = self._buffers.get(buffer_id)
        if state is None or buffer is None or state.stage not in LIVE:
            _logger.debug("data %s of task %s has no buffer", data_id, task_id)
            discard = partial(self._buffers.discard, data_id)
            self.turn.later(partial(self._files.remove, f"data {data_id}", discard))
            return
        samples = as_count(data.get("sample_num", 1))
        envstep = self._count_steps(state, data)
        meta = {name: value for name, value in data.items() if name != "env_statistics"}
        buffer.push({**meta, "data_id": data_id}, envstep)
        run.facts.collected(state.worker, samples, as_count(data.get("size")))
        if "env_statistics" in data:
            problem = run.facts.observed(data["env_statistics"])
            if problem is not None:
                run.warn(problem)
        if "policy_iter" in data:
            for policy_id in state.weights_names:
                run.facts.used(policy_id, data["policy_iter"])
        self._retries.progress("collector")
        run.tell(Collected, sample_count=samples)

    @in_turn
    def deal_with_collector_judge_finish(self, task_id: str, data: CollectorInfo) -> bool:
        """Whether a collector's task shall be closed, by the progress that it reports; an unknown
        one is left alone."""
        if self._known(task_id, "collector") is None:
            return False
        return bool(self._run.ask(self.commander.judge_collector_finish, task_id, data))

    @in_turn
    def deal_with_collector_finish_task(self, task_id: str, finished_task: CollectorReport) -> None:
        """A collector's task is done; its report."""
        run, state = self._run, self._known(task_id, "collector")
        if state is None or not self._done(state):
            return
        is_eval = state.is_eval
        is_best = run.facts.finished(task_id, is_eval, finished_task)
        converged = run.ask(self.commander.finish_collector_task, task_id, finished_task)
        if as_count(finished_task.get("real_episode_count")):
            self._retries.progress("evaluation" if is_eval else "collector")
        reason = None
        if converged:
            reason = (
                self.commander.converged_reason or f"the commander says so after task {task_id}"
            )
        self.turn.later(partial(self._show_report, state, finished_task, is_best, reason))

    def _show_report(
        self, state: TaskState, info: CollectorReport, is_best: bool, converged: str | None
    ) -> None:
        """Write down and show what a collector has reported at the end of its task."""
        run, is_eval = self._run, state.is_eval
        returns = self._take_episodes(state, info)
        if self._files.take_evaluated(info, is_eval and is_best):
            path = os.path.join(run.exp_name, "ckpt", BEST_NAME)
            run.tell(CheckpointSaved, path=path)
        reward = mean_return(info, is_eval)
        if is_eval and reward is not None:
            run.view.evaluated(reward)
            facts = {"result": reward, "returns": returns, "is_best": is_best}
            run.tell(Evaluated, **facts)
        if converged is not None:
            run.stop(converged, "converged")
        run.stop_at_goal()

    def _take_episodes(self, state: TaskState, info: CollectorReport) -> tuple[float, ...]:
        """Write the episodes of a report down; returns their returns."""
        run = self._run
        returns: list[float] = []
        source = f"{state.worker}_eval" if state.is_eval else str(state.worker)
        episodes = info.get("episode_info")
        for entry in episodes if isinstance(episodes, list) else []:
            if isinstance(entry, list) and len(entry) == 3 and None not in map(as_number, entry):
                env_id, episode_return, length = cast("list[int]", entry)
                returns.append(float(episode_return))
                if run.log is not None:
                    counts = run.facts.envstep, run.facts.train_iter
                    run.log.episode(source, env_id, episode_return, length, *counts)
                facts = {"env_id": env_id, "episode_return": returns[-1], "length": length}
                run.tell(EpisodeDone, source=source, **facts)
        return tuple(returns)

    def collector_progress(self, task_id: str, info: CollectorInfo) -> None:
        """Counts that a collector told."""
        state = self._run.table.get(task_id, "collector")
        if state is not None and state.stage in LIVE:
            self._count_steps(state, info)

    def _count_steps(self, state: TaskState, info: CollectorCounts) -> int:
        """Count the env steps of a collector's task, in two books at once; returns the run's."""
        run = self._run
        run.ask(self.commander.update_collect_progress, state.task_id, info)
        if state.is_eval:
            return run.facts.envstep
        return run.facts.stepped(state.task_id, info.get("cur_step"))

    # ------------------------------------------------------------------ learners

    @in_turn
    def deal_with_learner_get_data(
        self, task_id: str, buffer_id: str, batch_size: int, cur_learner_iter: int
    ) -> Sequence[Mapping[str, Json]] | None:
        """One batch for a foreign learner, a dict for each sample; ``None``: there is none yet.

        Raises:
            RunError: There is no such task; as for all that learners do.
        """
        self._learner_task(task_id)
        buffer = self._buffers.get(buffer_id)
        return None if buffer is None else buffer.sample_rows(batch_size, cur_learner_iter)

    @in_turn
    def deal_with_learner_send_info(self, task_id: str, buffer_id: str, info: LearnerNews) -> None:
        """What a learner tells of its training."""
        run, state = self._run, self._learner_task(task_id)
        worker, buffer = str(state.worker), self._buffers.get(buffer_id)
        if buffer is not None:
            # Learners tell of priorities whether or not the config wants them to be used.
            priorities = info.get("priority_info")
            if isinstance(priorities, Mapping) and state.has_priorities:
                buffer.update(priorities)
            for data_id, cause in info.get("bad_chunks", []):
                count = buffer.drop_chunk(data_id, cause)
                self.warn(worker, f"{count} samples of {data_id} were dropped: {cause}")
        for warning in info.get("warnings", []):
            self.warn(worker, warning)
        trouble = run.facts.note_trouble(worker, info.get("trouble"))
        if trouble is not None:
            self.warn(worker, trouble)
        self._retries.trained(run.facts.trained(state.policy_id, info))
        run.ask(self.commander.update_learner_info, task_id, info)

    @in_turn
    def deal_with_learner_judge_finish(self, task_id: str, info: LearnerInfo) -> bool:
        """Whether a learner's task shall be closed, by what it tells."""
        self._learner_task(task_id)
        return bool(self._run.ask(self.commander.judge_learner_finish, task_id, info))

    @in_turn
    def deal_with_learner_finish_task(self, task_id: str, finished_task: LearnerInfo) -> None:
        """A learner's task is done; its report. Its buffer is closed."""
        run, state = self._run, self._learner_task(task_id)
        if not self._done(state):
            return
        # An update may have come after the last that it told of while it trained.
        run.facts.trained(state.policy_id, finished_task)
        unused = run.ask(self.commander.finish_learner_task, task_id, finished_task)
        run.stop_at_goal()
        buffer_id = unused or state.buffer_id
        used = any(other.buffer_id == buffer_id for other in run.table.live("learner"))
        if buffer_id and not used and run.verdict is None:
            closed = self._buffers.take_out(buffer_id)
            if closed is not None:
                self.turn.later(partial(closed.close, remove_files=True))

    # ------------------------------------------------------------------ data

    def learner_buffer(self, buffer_id: str | None) -> ChunkBuffer | None:
        """The buffer of that id, if there is one here."""
        return self._buffers.get(buffer_id)

    def envstep(self) -> int:
        """Env steps of all collectors so far."""
        return self._run.facts.envstep

    def env_statistics(self) -> Statistics:
        """What the normalising environments of all collectors have seen; another object when that
        is news."""
        return self._run.facts.env_statistics

    # ------------------------------------------------------------------ tasks

    def task_running(self, task_id: str, worker: str) -> None:
        """A worker has begun it."""
        state = self._run.table.get(task_id)
        if self._run.table.move(task_id, "running", worker) and state is not None:
            self._run.view.given(state.kind, worker)

    def task_closing(self, task_id: str) -> None:
        """Its worker is asked to end it."""
        self._run.table.move(task_id, "closing")

    def task_failed(self, failure: TaskFailure) -> None:
        """It has to be given out again."""
        run, task_id = self._run, failure.task_id or ""
        state = run.table.get(task_id)
        if state is None or not run.table.move(task_id, "failed", failure.worker):
            return
        run.facts.forget(task_id)
        if run.verdict is None:
            self._show_failure(state.kind, failure)
            group = "evaluation" if state.is_eval else state.kind
            reason = self._retries.failed(group, failure)
            if reason is not None:
                run.stop(run.facts.with_root(reason), "failed")
        run.give_back(state.kind, state.task, failure.cause)
        run.wake.set()

    # ------------------------------------------------------------------ workers

    @in_turn
    def deal_with_increase_collector(self) -> None:
        """There is a collector more than the config has."""
        self._run.ask(self.commander.increase_collector_task_space)
        self._run.wake.set()

    @in_turn
    def deal_with_decrease_collector(self) -> None:
        """One of the collectors beyond those of the config has left."""
        self._run.ask(self.commander.decrease_collector_task_space)

    def workers_changed(self) -> None:
        """A worker came, left, or became free."""
        self._run.wake.set()

    def failed_worker(self, failure: TaskFailure) -> None:
        """A worker without a task was lost."""
        if self._run.verdict is None:
            self._show_failure("worker", failure)

    def worker_left(self, worker: str) -> None:
        """A worker is gone, or was replaced by another of its name."""
        self._run.facts.forget_worker(worker)
        self.turn.later(partial(self._buffers.forget_worker, worker))

    def warn(self, worker: str, text: str) -> None:
        """Something that a worker wants to be known."""
        self._run.warn(f"{worker}: {text}")

    def fatal(self, cause: str) -> None:
        """The run cannot go on."""
        self._run.stop(cause, "failed")

    # ------------------------------------------------------------------ small things

    def _show_failure(self, kind: str, failure: TaskFailure) -> None:
        self._run.facts.failed(failure)
        self._run.view.failed(kind, failure)

    def _known(self, task_id: str, kind: Kind) -> TaskState | None:
        state = self._run.table.get(task_id, kind)
        if state is None:
            self._run.warn(f"there is no {kind} task {task_id!r}")
        return state

    def _learner_task(self, task_id: str) -> TaskState:
        """A learner's task.

        Raises:
            RunError: There is none of that id.
        """
        state = self._run.table.get(task_id, "learner")
        if state is None:
            raise RunError(
                f"there is no learner task {task_id!r}; expected one that this coordinator has "
                "handed out"
            )
        return state

    def _done(self, state: TaskState) -> bool:
        """Whether a task that has been reported done was open."""
        self._run.table.move(state.task_id, "closing")
        done = self._run.table.move(state.task_id, "done")
        self._run.wake.set()
        return done


# ---------------------------------------------------------------------- the same as functions

#: Functions that a coordinator of another kind gives.
CALLBACKS = tuple(name for name in vars(RunEvents) if name.startswith("deal_with_"))
Callbacks = Mapping[str, Callable[..., object]]


def events_of(callbacks: Callbacks) -> RunEvents:
    """The methods of `RunEvents`: the functions of `CALLBACKS`; other events are passed over.

    Args:
        callbacks: The functions by their names, with the parameters of those methods.

    Raises:
        KeyError: One of them is missing.
    """
    missing = [name for name in CALLBACKS if name not in callbacks]
    if missing:
        raise KeyError(f"callback_fn lacks {', '.join(missing)}")
    events = {name: _pass_over for name in vars(RunEvents) if not name.startswith("_")}
    known = {"envstep": lambda: 0, "env_statistics": dict}
    return cast(RunEvents, SimpleNamespace(**{**events, **known, **callbacks}))


def _pass_over(*news: object) -> None:
    """Who gives functions has none for it; there is no buffer, either."""

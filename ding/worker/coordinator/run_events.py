"""What the sessions of workers report, and what that changes in a run."""

import logging
import threading
from collections.abc import Mapping
from functools import partial
from typing import cast

from ding.envs.running_statistics import Statistics
from ding.utils.callbacks import Callbacks
from ding.utils.errors import RunError
from ding.utils.run_log import RunLog
from ding.worker.messages import Json, Kind
from ding.worker.seams import Events, TaskFailure
from ding.worker.tasks import (
    ChunkMeta,
    CollectorCounts,
    CollectorInfo,
    CollectorReport,
    LearnerInfo,
    LearnerNews,
)

from .chunk_buffer import ChunkBuffer
from .guarded_commander import GuardedCommander
from .reported_values import as_count, as_number, mean_return, one_line
from .run_buffers import RunBuffers
from .run_callbacks import RunCallbacks
from .run_end import RetryLimit, RunEnd
from .run_facts import RunFacts
from .run_files import BEST_NAME, BestPolicy, RunFiles
from .run_view import RunView
from .task_scheduler import LIVE, TaskState, TaskTable

_logger = logging.getLogger(__name__)


class RunEvents(Events):
    """Brings what is reported to the parts of a run. Its methods are for any thread.

    Args:
        commander: Judges reports, and takes failed tasks back.
        buffers: Take in what collectors have stored.
        files: Remove what nobody wants.
        best: Makes the best checkpoint.
        view: Shows what happens.
        run_log: Where episodes are written.
        max_task_retry: Failures in a row without progress that are tried again.
        callbacks: Are told of it.
        exp_name: The run's folder.
    """

    def __init__(
        self,
        commander: GuardedCommander,
        buffers: RunBuffers,
        files: RunFiles,
        best: BestPolicy,
        view: RunView,
        run_log: RunLog | None,
        max_task_retry: int,
        callbacks: Callbacks,
        exp_name: str,
    ) -> None:
        self.commander, self._guard = commander.commander, commander
        self._buffers, self._files = buffers, files
        self._best, self._view, self._run_log = best, view, run_log
        self._table, self._facts = TaskTable(), RunFacts()
        self._retries = RetryLimit(max_task_retry)
        self._end = RunEnd()
        self._callbacks = RunCallbacks(callbacks, exp_name, self._facts, self.stop)
        #: Set when there may be tasks to give out.
        self._wake = threading.Event()

    def stop(self, reason: str, status: str = "interrupted") -> None:
        """End the run; does not wait. The first reason counts."""
        self._end.give(status, one_line(reason))
        self._wake.set()

    def info(self, s: str) -> None:
        """Show a line to the operator."""
        self._view.log(s)

    def error(self, s: str) -> None:
        """Show a line of something that went wrong."""
        self._view.log(s, warning=True)

    # ------------------------------------------------------------------ collectors

    def deal_with_collector_send_data(
        self, task_id: str, buffer_id: str, data_id: str, data: ChunkMeta
    ) -> None:
        """Take in the metadata of what a collector has written."""
        state = self._known(task_id, "collector")
        buffer = self._buffers.get(buffer_id)
        if state is None or buffer is None or state.stage not in LIVE:
            _logger.debug("data %s of task %s has no buffer", data_id, task_id)
            self._files.remove(f"data {data_id}", partial(self._buffers.discard, data_id))
            return
        samples = as_count(data.get("sample_num", 1))
        envstep = self._count_steps(state, data)
        meta = {name: value for name, value in data.items() if name != "env_statistics"}
        buffer.push({**meta, "data_id": data_id}, envstep)
        self._facts.collected(state.worker, samples, as_count(data.get("size")))
        if "env_statistics" in data:
            problem = self._facts.observed(data["env_statistics"])
            if problem is not None:
                self.error(problem)
        if "policy_iter" in data:
            for policy_id in state.weights_names:
                self._facts.used(policy_id, data["policy_iter"])
        self._retries.progress("collector")
        self._callbacks.collected(samples)

    def deal_with_collector_judge_finish(self, task_id: str, data: CollectorInfo) -> bool:
        """Whether a collector's task shall be closed, by the progress that it reports; an unknown
        one is left alone."""
        if self._known(task_id, "collector") is None:
            return False
        return bool(self._guard.ask(self.commander.judge_collector_finish, task_id, data))

    def deal_with_collector_finish_task(self, task_id: str, finished_task: CollectorReport) -> None:
        """Take in a collector's report."""
        state = self._known(task_id, "collector")
        if state is None or not self._done(state):
            return
        with self._guard.lock:
            is_best = self._facts.finished(task_id, state.is_eval, finished_task)
            converged = self._guard.ask(
                self.commander.finish_collector_task, task_id, finished_task
            )
        if as_count(finished_task.get("real_episode_count")):
            self._retries.progress("evaluation" if state.is_eval else "collector")
        returns = self._take_episodes(state, finished_task)
        self._keep_best(finished_task, state.is_eval and is_best)
        reward = mean_return(finished_task, state.is_eval)
        if state.is_eval and reward is not None:
            self._view.evaluated(reward)
            self._callbacks.evaluated(reward, returns, is_best)
        if converged:
            reason = self.commander.converged_reason
            self.stop(reason or f"the commander says so after task {task_id}", "converged")
        self._stop_at_goal()

    def _keep_best(self, info: CollectorReport, is_best: bool) -> None:
        problem = self._best.take(info, is_best)
        if problem is not None:
            self.error(problem)
        elif is_best and self._best.keeps(info):
            self._callbacks.saved(BEST_NAME)

    def _take_episodes(self, state: TaskState, info: CollectorReport) -> tuple[float, ...]:
        """Write the episodes of a report down; returns their returns."""
        returns: list[float] = []
        counts = self._facts.envstep, self._facts.train_iter
        source = f"{state.worker}_eval" if state.is_eval else str(state.worker)
        episodes = info.get("episode_info")
        for entry in episodes if isinstance(episodes, list) else []:
            if isinstance(entry, list) and len(entry) == 3 and None not in map(as_number, entry):
                env_id, episode_return, length = cast("list[int]", entry)
                returns.append(float(episode_return))
                if self._run_log is not None:
                    self._run_log.episode(source, env_id, episode_return, length, *counts)
                self._callbacks.episode(source, env_id, float(episode_return), length)
        return tuple(returns)

    def collector_progress(self, task_id: str, info: CollectorInfo) -> None:
        state = self._table.get(task_id, "collector")
        if state is None or state.stage not in LIVE:
            return
        self._count_steps(state, info)

    def _count_steps(self, state: TaskState, info: CollectorCounts) -> int:
        """Count the env steps of a collector's task, in two books at once; returns the run's."""
        with self._guard.lock:
            self._guard.ask(self.commander.update_collect_progress, state.task_id, info)
            if state.is_eval:
                return self._facts.envstep
            return self._facts.stepped(state.task_id, info.get("cur_step"))

    # ------------------------------------------------------------------ learners

    def deal_with_learner_get_data(
        self, task_id: str, buffer_id: str, batch_size: int, cur_learner_iter: int
    ) -> list[dict[str, Json]] | None:
        """Metadata of a batch, one dict for each sample; ``None`` if there is none yet.

        Raises:
            RunError: There is no such task; as for all that learners do.
        """
        self._learner_task(task_id)
        buffer = self._buffers.get(buffer_id)
        if buffer is None:
            return None
        return buffer.sample_rows(batch_size, cur_learner_iter)

    def deal_with_learner_send_info(self, task_id: str, buffer_id: str, info: LearnerNews) -> None:
        """Take in what a learner reports of its training."""
        state = self._learner_task(task_id)
        buffer = self._buffers.get(buffer_id)
        if buffer is not None:
            # Learners tell of priorities whether or not the config wants them to be used.
            priorities = info.get("priority_info")
            if isinstance(priorities, Mapping) and state.has_priorities:
                buffer.update(priorities)
            for data_id, cause in info.get("bad_chunks", []):
                count = buffer.drop_chunk(data_id, cause)
                self.error(f"{state.worker}: {count} samples of {data_id} were dropped: {cause}")
        for warning in info.get("warnings", []):
            self.warn(str(state.worker), warning)
        trouble = self._facts.note_trouble(str(state.worker), info.get("trouble"))
        if trouble is not None:
            self.warn(str(state.worker), trouble)
        step = self._facts.trained(state.policy_id, info)
        self._retries.trained(step)
        self._guard.ask(self.commander.update_learner_info, task_id, info)

    def deal_with_learner_judge_finish(self, task_id: str, info: LearnerInfo) -> bool:
        """Whether a learner's task shall be closed, by what it tells."""
        self._learner_task(task_id)
        return bool(self._guard.ask(self.commander.judge_learner_finish, task_id, info))

    def deal_with_learner_finish_task(self, task_id: str, finished_task: LearnerInfo) -> None:
        """Take in a learner's report, and close its buffer."""
        state = self._learner_task(task_id)
        if not self._done(state):
            return
        # An update may have come after the last that it told of while it trained.
        self._facts.trained(state.policy_id, finished_task)
        unused = self._guard.ask(self.commander.finish_learner_task, task_id, finished_task)
        self._stop_at_goal()
        buffer_id = unused or state.buffer_id
        used = any(other.buffer_id == buffer_id for other in self._table.live("learner"))
        if buffer_id and not used and self._end.verdict is None:
            self._buffers.close(buffer_id)

    def envstep(self) -> int:
        return self._facts.envstep

    def env_statistics(self) -> Statistics:
        return self._facts.env_statistics

    def learner_buffer(self, buffer_id: str | None) -> ChunkBuffer | None:
        return self._buffers.get(buffer_id)

    # ------------------------------------------------------------------ workers

    def deal_with_increase_collector(self) -> None:
        """There is a collector more than the config has."""
        self._guard.ask(self.commander.increase_collector_task_space)
        self._wake.set()

    def deal_with_decrease_collector(self) -> None:
        """One of the collectors beyond those of the config has left."""
        self._guard.ask(self.commander.decrease_collector_task_space)

    def task_running(self, task_id: str, worker: str) -> None:
        state = self._table.get(task_id)
        if self._table.move(task_id, "running", worker) and state is not None:
            self._view.given(state.kind, worker)

    def task_closing(self, task_id: str) -> None:
        self._table.move(task_id, "closing")

    def task_failed(self, failure: TaskFailure) -> None:
        state = self._table.get(failure.task_id or "")
        if state is None or not self._table.move(
            state.task_id, "failed", failure.worker, failure.cause
        ):
            return
        self._facts.forget(state.task_id)
        if self._end.verdict is None:
            group = "evaluation" if state.is_eval else state.kind
            self._facts.failed(failure)
            self._view.failed(state.kind, failure)
            reason = self._retries.failed(group, failure)
            if reason is not None:
                self.stop(self._facts.with_root(reason), "failed")
        self._guard.task_failed(state.kind, state.task, failure.cause)
        self._wake.set()

    def failed_worker(self, failure: TaskFailure) -> None:
        if self._end.verdict is None:
            self._facts.failed(failure)
            self._view.failed("worker", failure)

    def warn(self, worker: str, text: str) -> None:
        self.error(f"{worker}: {text}")

    def fatal(self, cause: str) -> None:
        self.stop(cause, "failed")

    def workers_changed(self) -> None:
        self._wake.set()

    def worker_left(self, worker: str) -> None:
        self._facts.forget_worker(worker)
        self._buffers.forget_worker(worker)

    # ------------------------------------------------------------------ small things

    def _known(self, task_id: str, kind: Kind) -> TaskState | None:
        state = self._table.get(task_id, kind)
        if state is None:
            self.error(f"there is no {kind} task {task_id!r}")
        return state

    def _learner_task(self, task_id: str) -> TaskState:
        """A learner's task.

        Raises:
            RunError: There is none of that id.
        """
        state = self._table.get(task_id, "learner")
        if state is None:
            raise RunError(
                f"there is no learner task {task_id!r}; expected one that this coordinator has "
                "handed out"
            )
        return state

    def _done(self, state: TaskState) -> bool:
        """Whether a task that has been reported done was open."""
        self._table.move(state.task_id, "closing")
        done = self._table.move(state.task_id, "done")
        self._wake.set()
        return done

    def _stop_at_goal(self) -> None:
        """End the run if the commander says that it has come to a good end."""
        if self.commander.converged_reason is not None:
            self.stop(self.commander.converged_reason, "converged")
        elif self.commander.finished_reason is not None:
            self.stop(self.commander.finished_reason, "finished")

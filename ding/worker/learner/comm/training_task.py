"""One learner task from start to end: the training thread and its reports."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ding.torch_utils.data_helper import cpu_copy, map_leaves
from ding.utils import durations
from ding.utils.errors import ConfigError
from ding.utils.json_fields import BadMessageError, called, from_json
from ding.utils.strict_json import plain
from ding.utils.types import SavedState
from ding.utils.usage import reported_usage
from ding.worker.error_report import ErrorReport
from ding.worker.learner.base_learner import BaseLearner
from ding.worker.learner.comm.batch_feed import BatchFeed
from ding.worker.learner.comm.policy_publisher import PolicyPublisher, SendPolicyHook, Version
from ding.worker.learner.comm.state_keeper import StateKeeper
from ding.worker.messages import Json, Meeting, Task, TaskReport, TrainAnswer
from ding.worker.replay_buffer.chunk_replay import ChunkReplay
from ding.worker.seams import Artifacts

#: Failure type of an update that does not end; the process must then end.
HUNG = "LearnerHung"
#: Number of batches permitted ahead of training.
PREFETCH = 8
#: Factor on this number if updates are quick.
MOST_PREFETCH = 8

#: The results of an update: numbers, arrays, and the priorities of samples.
LearnInfo = Mapping[str, object]


@dataclass(frozen=True)
class LearnerTaskInfo:
    """A coordinator's task."""

    task_id: str | None
    buffer_id: str | None
    policy_id: str  # name under which the weights are published
    learner_cfg: Mapping[str, Any]  # with ``exp_name``
    policy: Mapping[str, Any]
    buffer_cfg: Mapping[str, Any] = field(
        default_factory=dict, metadata=called("replay_buffer_cfg")
    )
    state_path: str | None = None  # path of the learner's saved state; ``None``: not saved
    #: Rendezvous of the processes that train together; ``None``: this process trains alone.
    meeting: Meeting | None = None

    @classmethod
    def of(cls, task: Task) -> "LearnerTaskInfo":
        """Raises `ConfigError` if a field is missing or unknown."""
        try:
            return from_json(cls, task)
        except BadMessageError as error:
            raise ConfigError(f"a learner's task: {error}") from error

    @property
    def exp_name(self) -> str:
        return str(self.learner_cfg.get("exp_name", "default_experiment"))

    def artifact(self) -> str | None:
        """`state_path` as a path within the run's folder."""
        if self.state_path is None:
            return None
        home, path = os.path.realpath(self.exp_name), os.path.realpath(self.state_path)
        is_below = path.startswith(home + os.sep)
        return os.path.relpath(path, home) if is_below else self.state_path


class TrainingTask:
    """Trains in a separate thread on the batches of its feed.

    Args:
        info: The task.
        name: The learner's name in messages.
        cfg: The worker's config: ``prefetch``, the number of batches permitted ahead;
            ``iteration_timeout``, the maximum seconds of an iteration if the task does not set it;
            the default grows with the longest iteration.
        publish: Stores a version of the policy where collectors read it.
        may_publish: Whether this learner may publish now.
        artifacts: The store of its state.
        leave_group: Called at the end if it trains together with other processes. Such a task first
            uses up its permitted batches when it is stopped, so that all ranks make the same number
            of updates.
    """

    def __init__(
        self,
        info: LearnerTaskInfo,
        name: str,
        cfg: Mapping[str, Any],
        publish: Callable[[Version], object],
        may_publish: Callable[[], bool],
        artifacts: Artifacts,
        leave_group: Callable[[], object] | None = None,
    ) -> None:
        self.info = info
        self._name, self._leave_group = name, leave_group
        self._limit = info.learner_cfg.get("iteration_timeout") or cfg.get("iteration_timeout")
        self._abandoned = False
        prefetch = int(cfg.get("prefetch") or PREFETCH)
        self.feed = BatchFeed(prefetch, MOST_PREFETCH * prefetch, self._between_updates)
        self.replay: ChunkReplay | None = None  # the replay buffer, if this learner has it
        self.failure: ErrorReport | None = None  # why the task ended early
        self.end_was_reported = False  # whether results were returned after the end
        is_first = info.meeting is None or info.meeting.rank == 0
        self.keeper = StateKeeper(artifacts, info.artifact(), self.warn, is_first, self._replay)
        self._publisher = PolicyPublisher(
            publish, lambda: not self._abandoned and may_publish(), self.fail
        )
        self._learner: BaseLearner | None = None
        self._policy_hooks: list[SendPolicyHook] = []
        self._reported, self._rate, self._rate_from = 0, 0.0, (time.monotonic(), 0)
        self._news = threading.Lock()  # guards the contents of the next answer
        self._info: dict[str, object] = {}
        self._warnings: dict[str, None] = {}
        self._thread = threading.Thread(target=self._main, name=f"train-{name}", daemon=True)

    def send_policy(self, state_dict: Mapping[str, object]) -> None:
        """Publish a version soon; its tensors are copied and may change after the call."""
        version = {"time": time.time(), **state_dict, "learner": self._name}
        self._publisher.publish(map_leaves(cpu_copy, version))

    def _between_updates(self, idle: bool) -> None:
        # While training waits, copying is free, and collectors may need newer weights.
        if idle:
            for hook in self._policy_hooks:
                hook.flush(self.learner)
        self.keeper.save_if_due()

    def _replay(self) -> SavedState | None:
        return None if self.replay is None else self.replay.state_dict()

    @property
    def learner(self) -> BaseLearner:
        assert self._learner is not None, "start() sets the learner"
        return self._learner

    def start(self, learner: BaseLearner) -> None:
        """Start training; the thread closes the learner at its end."""
        self._learner = learner
        learner.policy_due = lambda: self._publisher.due  # type: ignore[attr-defined]
        learner.register_hook(self.keeper)
        hooks = learner.hooks("after_iter")
        self._policy_hooks = [hook for hook in hooks if isinstance(hook, SendPolicyHook)]
        self._thread.start()

    def check(self) -> None:
        """Raise `TaskFail` if training has failed, or an iteration does not end."""
        # Called in the serving thread: the training thread may hang.
        if self.failure is None and self.feed.step_seconds > self.iteration_timeout:
            self.fail(
                self._hung(
                    f"has been under way for {self.feed.step_seconds:.0f} s (if that is no endless "
                    "loop, set learn.learner.iteration_timeout)"
                )
            )
        if self.failure is not None:
            raise self.failure.task_fail()
        self._publisher.poke()

    @property
    def iteration_timeout(self) -> float:
        """Maximum seconds of the current iteration."""
        if self._limit is not None:
            return float(self._limit)
        longest = self.feed.longest_step
        least = durations.ITERATION_TIMEOUT if longest else durations.FIRST_ITERATION_TIMEOUT
        return max(least, 10 * longest)

    def fail(self, failure: ErrorReport) -> None:
        """End the task early; only the first failure is kept."""
        if self.failure is None:
            self.failure = failure
            self.feed.close()

    def add(self, learn_info: LearnInfo) -> None:
        """Add an update's results to the next answer, without priorities: the buffer has those."""
        with self._news:
            self._info.update({n: v for n, v in learn_info.items() if n != "priority_info"})

    def warn(self, text: str) -> None:
        """Add a warning for the operator; equal warnings are reported once."""
        with self._news:
            self._warnings[text] = None

    def results(self, batch_num: int | None = None) -> TrainAnswer:
        """The news since the last call; ``batch_num`` is the number of batches wanted next."""
        learner, feed, reported = self.learner, self.feed, self._reported
        news = None if self.replay is None else self.replay.take_news()
        # Read in this order: the learner's step then includes all updates reported as trained.
        self.end_was_reported = self.ended
        self._reported = feed.finished
        with self._news:
            warnings, self._warnings = tuple(self._warnings), {}
            info = {name: plain(value) for name, value in self._info.items()}
        step, now, (since, step_then) = learner.train_iter, time.monotonic(), self._rate_from
        if now - since >= durations.UPDATE_RATE_SPAN:
            self._rate, self._rate_from = (step - step_then) / (now - since), (now, step)
        return TrainAnswer(
            self.info.task_id,
            self.info.buffer_id,
            step,
            learner_done=bool(learner.learn_info["learner_done"]),
            trained=self._reported - reported,
            batch_num=batch_num,
            policy_iter=self._publisher.published_iter,
            waiting="data" if feed.waiting else None,
            trouble=self._publisher.warning,
            warnings=warnings,
            info={
                **info,
                "envstep": learner.collector_envstep,
                "wait_share": round(feed.wait_share, 4),
                "iteration_seconds": round(feed.step_seconds, 3),
                "iters_per_second": round(self._rate, 3),
                "usage": {**reported_usage()},
                "numbers": {**learner.own_numbers},
            },
            received=() if news is None else news.received,
            left=() if news is None else news.left,
            own_rows=None if news is None else news.rows,
            starved=news is not None and news.starved,
            bad_chunks=() if news is None else tuple(news.bad),
        )

    def final_report(self) -> TaskReport:
        info: dict[str, Json] = {
            **self.results().as_json(),
            "buffer_id": self.info.buffer_id,
            "policy_id": self.info.policy_id,
        }
        return TaskReport(self.info.task_id, info)

    @property
    def ended(self) -> bool:
        """Whether the training thread has ended or was not started."""
        return not self._thread.is_alive()

    def abort(self) -> None:
        """End a task that failed to start."""
        self.stop(abandon=True)
        self._publisher.close(durations.LEARNER_STOP / 2)
        if self._leave_group is not None:
            self._leave_group()

    def stop(self, abandon: bool = False) -> None:
        """Ask the task to end, without waiting; the training thread saves the state.

        ``abandon``: the coordinator is lost; nothing may be published any more.
        """
        self._abandoned = self._abandoned or abandon
        self._publisher.poke()
        self.feed.close(drain=self._leave_group is not None and not abandon)

    def join(self, timeout: float) -> ErrorReport | None:
        """Wait for the end; returns a failure if the task does not end in time."""
        if self._thread is threading.current_thread():
            return None
        if self._thread.ident is not None:
            self._thread.join(timeout)
        if not self._thread.is_alive():
            return None
        return self._hung(f"did not end within {timeout:g} s of being asked to")

    def _main(self) -> None:
        learner = self.learner
        try:
            learner.start()
        except BaseException as error:  # the edge of the thread
            self.fail(ErrorReport.of(error))
        else:
            # Only without an error: a run must not continue from the state of a failed update.
            self.keeper.save()
            self.add(learner.learn_info)
        finally:
            self.feed.finish()
            self._publisher.close(durations.LEARNER_STOP / 2)
            learner.close()
            if self._leave_group is not None:
                self._leave_group()

    def _hung(self, what: str) -> ErrorReport:
        frame = sys._current_frames().get(self._thread.ident or 0)
        stack = traceback.extract_stack(frame)
        place = f", at {os.path.basename(stack[-1].filename)}:{stack[-1].lineno}" if frame else ""
        message = f"iteration {self.learner.train_iter} of {self._name} {what}{place}"
        return ErrorReport(HUNG, message, "".join(traceback.format_list(stack[-8:])))

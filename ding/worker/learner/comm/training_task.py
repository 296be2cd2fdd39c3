"""One learner task from its start to its end: the training thread and what surrounds it."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ding.utils import durations
from ding.utils.errors import ConfigError
from ding.utils.json_fields import BadMessageError, called, from_json
from ding.worker.error_report import ErrorReport
from ding.worker.learner.base_learner import BaseLearner
from ding.worker.learner.comm.batch_feed import BatchFeed
from ding.worker.learner.comm.learn_report import LearnReport
from ding.worker.learner.comm.policy_publisher import PolicyPublisher, SendPolicyHook, Version
from ding.worker.learner.comm.state_keeper import StateKeeper
from ding.worker.messages import Json, Task, TaskReport, TrainAnswer
from ding.worker.replay_buffer.chunk_replay import ChunkReplay
from ding.worker.seams import State

#: What an update that does not end fails of; the process has to end with it.
HUNG = "LearnerHung"
#: Batches that wait ready for training.
PREFETCH = 8
#: How many times as many may wait where an update is quick.
MOST_PREFETCH = 8


@dataclass(frozen=True)
class LearnerTaskInfo:
    """What a coordinator says of a task.

    Attributes:
        policy_id: Name under which the weights are published.
        learner_cfg: With ``exp_name``.
        state_path: Where the learner's state is kept; ``None``: nowhere.
        meeting: Name of the meeting of processes that train together.
    """

    task_id: str | None
    buffer_id: str | None
    policy_id: str
    learner_cfg: Mapping[str, Any]
    policy: Mapping[str, Any]
    buffer_cfg: Mapping[str, Any] = field(
        default_factory=dict, metadata=called("replay_buffer_cfg")
    )
    state_path: str | None = None
    meeting: str | None = None

    @classmethod
    def of(cls, task: Task) -> "LearnerTaskInfo":
        """Take a task apart.

        Raises:
            ConfigError: A field is missing, or is none.
        """
        try:
            return from_json(cls, task)
        except BadMessageError as error:
            raise ConfigError(f"a learner's task: {error}") from error

    @property
    def exp_name(self) -> str:
        return str(self.learner_cfg.get("exp_name", "default_experiment"))

    def artifact(self) -> str | None:
        """`state_path` as a path below the run's folder."""
        if self.state_path is None:
            return None
        home, path = os.path.realpath(self.exp_name), os.path.realpath(self.state_path)
        is_below = path.startswith(home + os.sep)
        return os.path.relpath(path, home) if is_below else self.state_path

    @property
    def iteration_timeout(self) -> float | None:
        """Seconds that an iteration may take, if it is said."""
        limit = self.learner_cfg.get("iteration_timeout")
        return None if limit is None else float(limit)


class TrainingTask:
    """Trains in a thread of its own on the batches of its feed; others ask how it goes.

    Args:
        info: The task.
        name: What messages call the learner.
        cfg: The learner's: ``prefetch``, batches that wait ready; ``iteration_timeout``, seconds
            that an iteration may take if the task does not say: without it, what those before took
            is gone by.
        publish: Brings a version of the policy to where collectors find it.
        may_publish: Whether this learner is the one to publish now.
        leave_group: If it trains together with others, leaves them; called when it has ended. If
            it is stopped, it first trains on what waits ready, so that all make the same number of
            updates.

    Attributes:
        feed: Where batches come in.
        report: What the coordinator is to be told.
        replay: The replay buffer, if it is this learner's.
        failure: Why it ended early; ``None`` if it did not.
        end_was_reported: Whether results were given since it ended.
    """

    def __init__(
        self,
        info: LearnerTaskInfo,
        name: str,
        cfg: Mapping[str, Any],
        publish: Callable[[Version], object],
        may_publish: Callable[[], bool],
        leave_group: Callable[[], object] | None = None,
    ) -> None:
        self.info = info
        self._name, self._leave_group = name, leave_group
        self._iteration_timeout = info.iteration_timeout or cfg.get("iteration_timeout")
        self._may_publish = may_publish
        self._abandoned = False
        prefetch = int(cfg.get("prefetch") or PREFETCH)
        self.feed: BatchFeed[Any] = BatchFeed(
            prefetch, MOST_PREFETCH * prefetch, self._between_updates
        )
        self.report = LearnReport()
        self.replay: ChunkReplay | None = None
        self.failure: ErrorReport | None = None
        self.end_was_reported = False
        self._publisher = PolicyPublisher(publish, self._is_publisher, self.fail)
        self._learner: BaseLearner | None = None
        self._keeper: StateKeeper | None = None
        self._policy_hooks: list[SendPolicyHook] = []
        self._reported = 0
        self._thread = threading.Thread(target=self._main, name=f"train-{name}", daemon=True)

    # What the learner calls

    def send_policy(self, state_dict: Mapping[str, object]) -> None:
        """Publish a version soon; its tensors may change as soon as this returns."""
        version = {"time": time.time(), **state_dict, "learner": self._name}
        self._publisher.publish({name: _copied(value) for name, value in version.items()})

    def policy_due(self) -> bool:
        """Whether a policy that is sent now is published at once."""
        return self._publisher.due

    def _between_updates(self, idle: bool) -> None:
        learner, keeper = self.learner, self._keeper
        if idle:
            for hook in self._policy_hooks:
                hook.flush(learner)
        if keeper is not None:
            keeper.save_if_due(learner)

    # What others call

    @property
    def learner(self) -> BaseLearner:
        assert self._learner is not None, "start() gives it the learner"
        return self._learner

    @property
    def replay_state(self) -> State | None:
        """What the replay buffer of the learner before knew of its samples."""
        return None if self._keeper is None else self._keeper.replay_state

    def start(self, learner: BaseLearner, keeper: StateKeeper) -> None:
        """Begin to train; it closes the learner at its end."""
        self._learner, self._keeper = learner, keeper
        learner.policy_due = self.policy_due  # type: ignore[attr-defined]
        learner.register_hook(keeper)
        hooks = learner.hooks("after_iter")
        self._policy_hooks = [hook for hook in hooks if isinstance(hook, SendPolicyHook)]
        self._thread.start()

    def check(self) -> None:
        """Raise what training failed of, or that an iteration does not end.

        Raises:
            TaskFail: With type, message and traceback.
        """
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
        """Seconds that the iteration under way may take."""
        if self._iteration_timeout is not None:
            return self._iteration_timeout
        longest = self.feed.longest_step
        least = durations.ITERATION_TIMEOUT if longest else durations.FIRST_ITERATION_TIMEOUT
        return max(least, 10 * longest)

    def fail(self, failure: ErrorReport) -> None:
        """End early; the first failure counts."""
        if self.failure is None:
            self.failure = failure
            self.feed.close()

    def results(self, batch_num: int | None = None) -> TrainAnswer:
        """What has happened since the last call, for the coordinator.

        Args:
            batch_num: Batches that are wanted next.
        """
        learner, feed, reported = self.learner, self.feed, self._reported
        news = None if self.replay is None else self.replay.take_news()
        if news is not None:
            self.report.add_bad_chunks(news.bad)
        # In this order: whatever is told to be trained on shows in the step as well.
        self.end_was_reported = self.ended
        self._reported = feed.finished
        answer = TrainAnswer(
            self.info.task_id,
            self.info.buffer_id,
            learner.train_iter,
            learner_done=bool(learner.learn_info["learner_done"]),
            trained=self._reported - reported,
            batch_num=batch_num,
            policy_iter=self._publisher.published_iter,
            waiting="data" if feed.waiting else None,
            trouble=self._publisher.warning,
            info={
                "envstep": learner.collector_envstep,
                "wait_share": round(feed.wait_share, 4),
                "iteration_seconds": round(feed.step_seconds, 3),
            },
            received=() if news is None else news.received,
            left=() if news is None else news.left,
            own_rows=None if news is None else news.rows,
            starved=news is not None and news.starved,
        )
        return self.report.complete(answer)

    def final_report(self) -> TaskReport:
        """How it ended, when it has."""
        ids: dict[str, Json] = {
            "buffer_id": self.info.buffer_id,
            "policy_id": self.info.policy_id,
        }
        return TaskReport(self.info.task_id, {**self.results().as_json(), **ids})

    @property
    def ended(self) -> bool:
        """Whether no batch will be trained on any more."""
        return not self._thread.is_alive()

    def abort(self) -> None:
        """End what was begun when it cannot be started."""
        self.stop(abandon=True)
        self._publisher.close(durations.LEARNER_STOP / 2)
        if self._leave_group is not None:
            self._leave_group()

    def stop(self, abandon: bool = False) -> None:
        """Ask it to end; does not wait. The training thread saves the state.

        Args:
            abandon: The coordinator is gone: publish nothing any more.
        """
        self._abandoned = self._abandoned or abandon
        self._publisher.poke()
        self.feed.close(drain=self._leave_group is not None and not abandon)

    def join(self, timeout: float) -> ErrorReport | None:
        """Wait until it has ended; the failure that it has not ended in time, if so."""
        if self._thread is threading.current_thread():
            return None
        if self._thread.ident is not None:
            self._thread.join(timeout)
        if not self._thread.is_alive():
            return None
        return self._hung(f"did not end within {timeout:g} s of being asked to")

    # The training thread

    def _main(self) -> None:
        learner, keeper = self._learner, self._keeper
        assert learner is not None
        assert keeper is not None
        try:
            learner.start()
        except BaseException as error:
            # The edge of the thread.
            self.fail(ErrorReport.of(error))
        else:
            keeper.save(learner)
            self.report.add(learner.learn_info)
        finally:
            self.feed.finish()
            self._publisher.close(durations.LEARNER_STOP / 2)
            learner.close()
            if self._leave_group is not None:
                self._leave_group()

    def _is_publisher(self) -> bool:
        return not self._abandoned and self._may_publish()

    def _hung(self, what: str) -> ErrorReport:
        frame = sys._current_frames().get(self._thread.ident or 0)
        stack = traceback.extract_stack(frame)
        place = f", at {os.path.basename(stack[-1].filename)}:{stack[-1].lineno}" if frame else ""
        message = f"iteration {self.learner.train_iter} of {self._name} {what}{place}"
        return ErrorReport(HUNG, message, "".join(traceback.format_list(stack[-8:])))


def _copied(value: object) -> object:
    """A copy, on the CPU, that later updates do not change."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    return value

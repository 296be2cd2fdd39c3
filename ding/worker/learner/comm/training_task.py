"""One learner task from its start to its end: the training thread and what surrounds it."""

import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ding.data import Columns
from ding.data.staleness import is_stale, iters_of
from ding.utils import durations
from ding.worker.error_report import ErrorReport
from ding.worker.learner.base_learner import BaseLearner
from ding.worker.learner.comm.batch_feed import BatchFeed
from ding.worker.learner.comm.learn_report import LearnReport
from ding.worker.learner.comm.policy_publisher import PolicyPublisher
from ding.worker.learner.comm.send_hooks import PUBLISHED, SendPolicyHook
from ding.worker.learner.comm.state_keeper import StateKeeper

#: What an update that does not end fails of; the process has to end with it.
HUNG = "LearnerHung"


class TrainingTask:
    """Trains in a thread of its own on the batches of its feed; others ask how it goes.

    Args:
        name: What messages call the learner.
        prefetch: Batches that are to wait ready, see `BatchFeed`.
        most_prefetch: Batches that may wait ready.
        write_policy: Writes weights and facts where collectors find them.
        allowed: Whether this learner may publish now.
        iteration_timeout: Seconds that an iteration may take; without it, what those before took
            is gone by.
        drain: Whether a run that is stopped first trains on what waits ready, so that all
            processes that train together make the same number of updates.
        on_end: Called in the training thread when it is over.
        max_staleness: Samples that are older by the time of training are left out.

    Attributes:
        feed: Where batches come in.
        report: What the coordinator is to be told.
        failure: Why it ended early; ``None`` if it did not.
        told_end: Whether results were given since it ended.
    """

    def __init__(
        self,
        name: str,
        prefetch: int,
        most_prefetch: int,
        write_policy: Callable[[dict[str, Any], dict[str, Any]], None],
        allowed: Callable[[], bool],
        iteration_timeout: float | None = None,
        drain: bool = False,
        on_end: Callable[[], object] | None = None,
        max_staleness: float = math.inf,
    ) -> None:
        self._max_staleness = max_staleness
        self._name, self._drain, self._on_end = name, drain, on_end
        self._iteration_timeout = iteration_timeout
        self._allowed = allowed
        self._abandoned = False
        select = None if math.isinf(max_staleness) else self._fresh
        self.feed = BatchFeed(prefetch, most_prefetch, self._between_updates, select)
        self.report = LearnReport()
        self.failure: ErrorReport | None = None
        self.told_end = False
        self._publisher = PolicyPublisher(write_policy, self._may_publish, self.fail)
        self._learner: BaseLearner | None = None
        self._keeper: StateKeeper | None = None
        self._policy_hooks: list[SendPolicyHook] = []
        self._told = 0
        self._thread = threading.Thread(target=self._main, name=f"train-{name}", daemon=True)

    # What the learner calls

    def send_policy(self, state_dict: dict[str, Any]) -> None:
        """Publish weights soon; they may change as soon as this returns."""
        facts = {
            "policy_iter": state_dict.get("iter"),
            "envstep": state_dict.get("envstep"),
            "time": state_dict.get("time", time.time()),
            "learner": self._name,
        }
        weights = {name: _copied(state_dict[name]) for name in PUBLISHED if name in state_dict}
        self._publisher.publish(weights, facts)

    def send_learn_info(self, learn_info: dict[str, Any]) -> None:
        """Keep results until the coordinator asks for them."""
        self.report.add(learn_info)

    def get_data(self, batch_size: int) -> list[Any]:
        """The next batch, for learners that fetch for themselves."""
        return next(self.feed)

    def policy_due(self) -> bool:
        """Whether a policy that is sent now is published at once."""
        return self._publisher.due

    def _between_updates(self, idle: bool) -> None:
        if idle:
            for hook in self._policy_hooks:
                hook.flush(self._learner)
        if self._keeper is not None:
            self._keeper.save_if_due(self._learner)

    def _fresh(self, batch: Any) -> Any:
        """The samples of a batch that are not too old by now; ``None`` if all are."""
        iters = iters_of(batch)
        if iters is None:
            return batch
        stale = is_stale(iters, self.learner.train_iter, self._max_staleness)
        if not stale.any():
            return batch
        self.report.warn(
            "samples that became older than max_staleness while they waited to be trained on are "
            "left out: smaller batches, or fewer of them, are trained on"
        )
        # Learners that train together make an update for each batch: the newest are the least evil.
        kept = np.flatnonzero(~stale if not stale.all() else iters == iters.max())
        if stale.all() and not self._drain:
            return None
        is_columnar = isinstance(batch, Columns) and batch.is_columnar
        return batch.take(kept) if is_columnar else [batch[i] for i in kept.tolist()]

    # What others call

    @property
    def learner(self) -> BaseLearner:
        assert self._learner is not None, "start() gives it the learner"
        return self._learner

    def start(self, learner: BaseLearner, keeper: StateKeeper) -> None:
        """Begin to train; the run closes the learner at its end."""
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

    def results(self) -> dict[str, Any]:
        """What has happened since the last call, for the coordinator."""
        learner, feed = self.learner, self.feed
        # In this order: whatever is told to be trained on shows in the step as well.
        self.told_end = self.ended
        finished, told = feed.finished, self._told
        self._told = finished
        info = self.report.take(learner.train_iter)
        return {
            **info,
            "trouble": self._publisher.warning,
            "learner_done": learner.learn_info["learner_done"],
            "trained": finished - told,
            "envstep": learner.collector_envstep,
            "policy_iter": self._publisher.published_iter,
            "waiting": "data" if feed.waiting else None,
            "wait_share": round(feed.wait_share, 4),
            "iteration_seconds": round(feed.step_seconds, 3),
        }

    @property
    def ended(self) -> bool:
        """Whether no batch will be trained on any more."""
        return not self._thread.is_alive()

    def abort(self) -> None:
        """End what was begun when the run cannot be started."""
        self.stop(abandon=True)
        self._publisher.close(durations.LEARNER_STOP / 2)

    def stop(self, abandon: bool = False) -> None:
        """Ask it to end; does not wait. The training thread saves the state.

        Args:
            abandon: The coordinator is gone: publish nothing any more.
        """
        self._abandoned = self._abandoned or abandon
        self._publisher.poke()
        self.feed.close(drain=self._drain and not abandon)

    def join(self, timeout: float = durations.LEARNER_STOP) -> ErrorReport | None:
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
            if self._on_end is not None:
                self._on_end()

    def _may_publish(self) -> bool:
        return not self._abandoned and self._allowed()

    def _hung(self, what: str) -> ErrorReport:
        frame = sys._current_frames().get(self._thread.ident or 0)
        stack = traceback.extract_stack(frame)
        place = f", at {os.path.basename(stack[-1].filename)}:{stack[-1].lineno}" if frame else ""
        message = f"iteration {self.learner.train_iter} of {self._name} {what}{place}"
        return ErrorReport(HUNG, message, "".join(traceback.format_list(stack[-8:])))


def _copied(value: Any) -> Any:
    """A copy, on the CPU, that later updates do not change."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    return value

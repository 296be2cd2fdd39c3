"""Publishes a learner's newest weights in a separate thread, and the hooks that publish."""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ding.utils import durations
from ding.utils.system_helper import ReportingThread
from ding.worker.error_report import ErrorReport
from ding.worker.learner.learner_hook import LearnerHook, register_learner_hook

#: The parts of a policy's state that are needed for acting.
PUBLISHED = ("model", "env_statistics")
#: ``model``, ``iter`` and more; its tensors are not modified any more.
Version = Mapping[str, object]

_logger = logging.getLogger(__name__)


class PolicyPublisher:
    """Writes the newest version in a thread; versions in between are skipped.

    Args:
        write: Called with a version; raises `OSError` if it cannot be stored now.
        allowed: Whether this learner may still publish; called before each write.
        on_failure: Called with the cause when writing has failed for too long.
    """

    def __init__(
        self,
        write: Callable[[Version], object],
        allowed: Callable[[], bool],
        on_failure: Callable[[ErrorReport], object],
    ) -> None:
        self._write, self._allowed, self._on_failure = write, allowed, on_failure
        self._changed = threading.Condition()
        self._newest: Version | None = None
        self._closed = False
        self._next_time = 0.0
        self.published_iter: int | None = None
        self.warning: str | None = None
        self._thread = ReportingThread(
            self._run, "policy-publisher", lambda cause: on_failure(ErrorReport("Failed", cause))
        )
        self._thread.start()

    @property
    def due(self) -> bool:
        """Whether a version published now would be written at once."""
        return self._newest is None and time.monotonic() >= self._next_time

    def publish(self, version: Version) -> None:
        with self._changed:
            self._newest = version
            self._changed.notify_all()

    def poke(self) -> None:
        """Make the thread call ``allowed`` again, since its result may have changed."""
        with self._changed:
            self._changed.notify_all()

    def close(self, timeout: float) -> None:
        """Write a pending version if ``timeout`` seconds suffice, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def _run(self) -> None:
        pause, longest = durations.PUBLISH_PAUSES
        wait, patience_ends = pause, math.inf
        while (version := self._next_version()) is not None:
            try:
                self._write(version)
            except Exception as error:  # the edge of the thread
                now = time.monotonic()
                patience_ends = min(patience_ends, now + durations.PUBLISH_PATIENCE)
                if not isinstance(error, OSError) or now >= patience_ends or self._closed:
                    self._on_failure(ErrorReport.of(error))
                    return
                self.warning = f"weights cannot be published: {error}"
                _logger.warning("%s", self.warning)
                with self._changed:
                    # A newer version that was published meanwhile replaces this one.
                    self._newest = self._newest or version
                    self._next_time = now + wait
                wait = min(2 * wait, longest)
            else:
                wait, patience_ends, self.warning = pause, math.inf, None
                number = version.get("iter")
                self.published_iter = number if isinstance(number, int) else None

    def _next_version(self) -> Version | None:
        with self._changed:
            while True:
                if self._newest is None:
                    if self._closed:
                        return None
                    self._changed.wait()
                elif not self._closed and (early := self._next_time - time.monotonic()) > 0:
                    self._changed.wait(early)
                elif self._allowed():
                    # Counted from the start of the write, so that a slow store does not lower the
                    # rate further.
                    self._next_time = time.monotonic() + durations.PUBLISH_INTERVAL
                    version, self._newest = self._newest, None
                    return version
                elif self._closed:
                    return None
                else:
                    self._changed.wait()  # until `poke` or `close`


class SendPolicyHook(LearnerHook):
    """Publishes the weights at every ``ext_args.send_policy_freq``-th call at its position.

    After an iteration, publishing waits until ``engine.policy_due()`` is true, if the engine has
    this method.
    """

    def __init__(self, *args: Any, ext_args: dict[str, Any] = {}, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._freq = ext_args.get("send_policy_freq", 1)
        self._put_off = False

    def __call__(self, engine: Any) -> None:
        if engine.rank != 0:
            return
        if self.position != "after_iter":
            self._send(engine, engine.last_iter.val)
            return
        done = engine.last_iter.val + 1  # the counter increases after the hooks
        if done % self._freq == 0:
            self._put_off = True
        due = getattr(engine, "policy_due", None)
        # Copying the weights costs as much as a small update: do not copy skipped versions.
        if self._put_off and (due is None or due()):
            self._send(engine, done)

    def flush(self, engine: Any) -> None:
        """Publish a postponed version; called between updates."""
        if self._put_off:
            self._send(engine, engine.last_iter.val)

    def _send(self, engine: Any, policy_iter: int) -> None:
        self._put_off = False
        state = engine.policy.state_dict()
        facts = {"iter": policy_iter, "envstep": engine.collector_envstep, "time": time.time()}
        engine.send_policy({**{name: state[name] for name in PUBLISHED if name in state}, **facts})


class SendLearnInfoHook(LearnerHook):
    """Sends ``engine.learn_info`` at every ``ext_args.freq``-th call at its position."""

    def __init__(self, *args: Any, ext_args: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._freq = ext_args.get("freq", 1)

    def __call__(self, engine: Any) -> None:
        if self.position != "after_iter" or engine.last_iter.val % self._freq == 0:
            engine.send_learn_info(engine.learn_info)


register_learner_hook("send_policy", SendPolicyHook)
register_learner_hook("send_learn_info", SendLearnInfoHook)

"""When a run's state is saved, and what happens if it cannot be."""

import copy
import math
import os
import time
from collections.abc import Callable
from typing import Any

from ding.entry.components import Components
from ding.entry.run_state import save_run_state
from ding.torch_utils import to_device
from ding.utils import get_rank, save_file
from ding.utils.errors import CheckpointWriteError
from ding.worker.learner.learner_hook import checkpoint_state

#: Share of the run's time that saving may take.
MAX_SHARE = 0.02
#: A run whose updates are slow is saved this often, however few they were.
MAX_SECONDS = 600.0
_RETRY_SECONDS = 60.0


class StateKeeper:
    """Saves the run's state every ``save_ckpt_after_iter`` updates, and the best policies.

    Saving is put off as long as it would take more than ``MAX_SHARE`` of the time, which a large
    replay buffer can make it do. A save that fails, as on a full disk, leaves the file before it
    as it was; it is told and tried again, and the run goes on.

    Args:
        parts: What is saved.
        tell: Shows a line to the user.

    Attributes:
        error: Why the latest save failed; ``None`` if it did not.
    """

    def __init__(self, parts: Components, tell: Callable[[str], None]) -> None:
        self.error: str | None = None
        self._parts = parts
        self._tell = tell
        self._freq = _save_freq(parts.cfg.policy.learn.learner.hook)
        self._unsaved_best: tuple[str, dict[str, Any]] | None = None
        self.start_counting()

    def start_counting(self, cost: float = 0.0) -> None:
        """The state as it is now is on disk; writing it takes about ``cost`` seconds."""
        self._saved_iter = self._parts.learner.train_iter
        self._saved_time = time.monotonic()
        self._not_before = self._saved_time + cost / MAX_SHARE

    def save_if_due(self) -> None:
        """Save if enough has been learned, or time has passed, since the last time."""
        new_iters = self._parts.learner.train_iter - self._saved_iter
        if new_iters == 0 or self._freq == math.inf:
            return
        now = time.monotonic()
        due = new_iters >= self._freq or now - self._saved_time >= MAX_SECONDS
        if due and now >= self._not_before:
            self.save()

    def save(self) -> None:
        """Save all that resuming needs."""
        begin = time.monotonic()
        try:
            if get_rank() == 0:
                save_run_state(self._parts)
                self._retry_best()
        except (CheckpointWriteError, MemoryError, TypeError) as error:
            self._fail("the state that resuming needs", error)
        else:
            self.error = None
            self.start_counting(time.monotonic() - begin)

    def save_best(self, name: str) -> None:
        """Save the policy under a name, with the result that made it the best."""
        learner = self._parts.learner
        learner.checkpoint_facts = {"eval_result": self._parts.evaluator.last}
        try:
            learner.save_checkpoint(name)
        except CheckpointWriteError as error:
            # Kept, for the next policy is another one.
            state = copy.deepcopy(to_device(checkpoint_state(learner), "cpu"))
            self._unsaved_best = name, state
            self._fail(name, error)
        else:
            self._unsaved_best = None
        finally:
            learner.checkpoint_facts = {}

    def run_last_hooks(self) -> None:
        """Call the learner's hooks of the run's end, which save a last checkpoint."""
        try:
            self._parts.learner.call_hook("after_run")
        except CheckpointWriteError as error:
            self._fail("the last checkpoint", error)

    def _retry_best(self) -> None:
        if self._unsaved_best is not None:
            name, state = self._unsaved_best
            save_file(os.path.join(self._parts.cfg.exp_name, "ckpt", name), state)
            self._unsaved_best = None

    def _fail(self, what: str, error: Exception) -> None:
        self.error = f"could not save {what}: {str(error).partition(';')[0]}"
        self._not_before = time.monotonic() + _RETRY_SECONDS
        self._tell(f"could not save {what}: {error}")


def _save_freq(hooks: Any) -> float:
    value = hooks.get("save_ckpt_after_iter")
    if isinstance(value, dict):
        value = value.get("ext_args", {}).get("freq", 1)
    return value or math.inf

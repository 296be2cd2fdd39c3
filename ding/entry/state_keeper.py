"""Saves the state of a serial run, and its best policies."""

import copy
import math
import os
import time
from collections.abc import Callable
from typing import Any

from ding.data.row_journal import RowJournal
from ding.entry.components import Components
from ding.entry.run_state import rows_path, take_run_state, write_run_state
from ding.torch_utils import to_device
from ding.utils import durations, get_rank, save_file
from ding.utils.errors import CheckpointWriteError
from ding.utils.state_saver import SAVE_ERRORS, StateSaver
from ding.worker.learner.learner_hook import checkpoint_state

#: Share of the run's time that saving may take.
MAX_SHARE = 0.01


class SerialStateKeeper(StateSaver[dict[str, Any]]):
    """Saves the run's state when enough was learned, or time has passed, and the best policies.

    Training stands still only while the state is copied; a thread writes it. Rows of the replay
    buffer that are on disk already are not written again.

    Args:
        parts: What is saved.
        warn: Shows a line to the user.

    Attributes:
        problem: What could not be saved the last time, and why; ``None`` if all could.
        journal: Where the rows of the replay buffer are.
    """

    def __init__(self, parts: Components, warn: Callable[[str], None]) -> None:
        self.problem: str | None = None
        self.journal = RowJournal(rows_path(parts.cfg.exp_name))
        self._parts, self._warn = parts, warn
        self._freq = _save_freq(parts.cfg.policy.learn.learner.hook)
        self._unsaved_best: tuple[str, dict[str, Any]] | None = None
        self._warned_of_cost = False
        super().__init__(
            self._taken,
            lambda state: write_run_state(parts.cfg.exp_name, state, self.journal),
            lambda error: self._fail("the state that resuming needs", error),
            interval=0.0,
            max_share=MAX_SHARE,
            retry=durations.SAVE_RETRY,
            in_background=True,
        )
        self.start_counting()

    def start_counting(self) -> None:
        """The state as it is now is on disk, or training has yet to begin."""
        self._saved_at, self._saved_time = self._position, time.monotonic()

    @property
    def _position(self) -> tuple[int, int]:
        return self._parts.learner.train_iter, self._parts.collector.envstep

    def save_if_due(self) -> bool:
        position = self._position
        new_iters = position[0] - self._saved_at[0]
        is_old = time.monotonic() - self._saved_time >= durations.SAVE_INTERVAL
        if get_rank() or position == self._saved_at or not (is_old or new_iters >= self._freq):
            return False
        return super().save_if_due()

    def save(self) -> None:
        """Save all that resuming needs, and wait until it is written."""
        if get_rank():
            return
        super().save()
        if self.error is None:
            self._guarded("the best policy", self._retry_best)

    def _taken(self) -> dict[str, Any]:
        state = take_run_state(self._parts, self.journal)
        self.start_counting()
        return state

    def _pause(self, cost: float) -> float:
        self.problem = None
        pause = super()._pause(cost)
        if pause > 2 * durations.SAVE_INTERVAL and not self._warned_of_cost:
            self._warned_of_cost = True
            self._warn(
                f"saving the state takes {cost:.2g} s, so that it is saved "
                f"every {pause:.0f} s only: a run that is killed loses as much"
            )
        return pause

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
        self._guarded("the last checkpoint", lambda: self._parts.learner.call_hook("after_run"))

    def _retry_best(self) -> None:
        if self._unsaved_best is not None:
            name, state = self._unsaved_best
            path = os.path.join(self._parts.cfg.exp_name, "ckpt", name)
            save_file(path, state)
            self._unsaved_best = None
            if (on_checkpoint := getattr(self._parts.learner, "on_checkpoint", None)) is not None:
                on_checkpoint(path)

    def _guarded(self, what: str, save: Callable[[], object]) -> None:
        try:
            save()
        except SAVE_ERRORS as error:
            self._fail(what, error)

    def _fail(self, what: str, error: Exception) -> None:
        self.problem = f"could not save {what}: {str(error).partition(';')[0]}"
        self._warn(f"could not save {what}: {error}")


def _save_freq(hooks: Any) -> float:
    value = hooks.get("save_ckpt_after_iter")
    if isinstance(value, dict):
        value = value.get("ext_args", {}).get("freq", 1)
    return value or math.inf

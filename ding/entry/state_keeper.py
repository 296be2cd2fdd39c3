"""When a run's state is saved, and what happens if it cannot be."""

import copy
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from ding.data.row_journal import RowJournal
from ding.entry.components import Components
from ding.entry.run_state import rows_path, take_run_state, write_run_state
from ding.torch_utils import to_device
from ding.utils import durations, get_rank, save_file
from ding.utils.errors import CheckpointWriteError
from ding.worker.learner.learner_hook import checkpoint_state

#: Share of the run's time that saving may take.
MAX_SHARE = 0.01


class StateKeeper:
    """Saves the run's state every few seconds, and the best policies.

    Training stands still only while the state is copied; a thread writes it. Rows of the replay
    buffer that are on disk already are not written again. Saving is put off as long as it would
    take more than ``MAX_SHARE`` of the time. A save that fails, as on a full disk, leaves the file
    before it as it was; it is told and tried again, and the run goes on.

    Args:
        parts: What is saved.
        tell: Shows a line to the user.

    Attributes:
        error: Why the latest save failed; ``None`` if it did not.
        journal: Where the rows of the replay buffer are.
    """

    def __init__(self, parts: Components, tell: Callable[[str], None]) -> None:
        self.error: str | None = None
        self.journal = RowJournal(rows_path(parts.cfg.exp_name))
        self._parts = parts
        self._tell = tell
        self._freq = _save_freq(parts.cfg.policy.learn.learner.hook)
        self._unsaved_best: tuple[str, dict[str, Any]] | None = None
        self._writer: threading.Thread | None = None
        self._outcome: tuple[float, Exception | None] = (0.0, None)
        self._cost = 0.0
        self._told_seldom = False
        self.start_counting()

    def start_counting(self) -> None:
        """The state as it is now is on disk, or training has yet to begin."""
        self._saved_at = self._position
        self._saved_time = time.monotonic()
        self._not_before = self._saved_time

    @property
    def _position(self) -> tuple[int, int]:
        return self._parts.learner.train_iter, self._parts.collector.envstep

    def save_if_due(self) -> None:
        """Save if enough has been learned, or time has passed, since the last time."""
        if self._writer is not None:
            if self._writer.is_alive():
                return
            self._finish_writing()
        now, position = time.monotonic(), self._position
        if position == self._saved_at or now < self._not_before:
            return
        new_iters = position[0] - self._saved_at[0]
        if new_iters >= self._freq or now - self._saved_time >= durations.SAVE_INTERVAL:
            self._begin_writing()

    def save(self) -> None:
        """Save all that resuming needs, and wait until it is written."""
        self.close()
        self._begin_writing()
        self.close()
        if self.error is None:
            self._guarded("the best policy", self._retry_best)

    def close(self) -> None:
        """Wait for a save that is under way."""
        if self._writer is not None:
            self._writer.join()
            self._finish_writing()

    def _begin_writing(self) -> None:
        if get_rank():
            return
        begin = time.monotonic()
        exp_name, state = self._parts.cfg.exp_name, {}

        def take() -> None:
            state.update(take_run_state(self._parts, self.journal))

        if not self._guarded("the state that resuming needs", take):
            return
        self._saved_at, self._saved_time = self._position, time.monotonic()
        self._cost = self._saved_time - begin

        def write() -> None:
            error: Exception | None = None
            begin_cpu = time.thread_time()
            try:
                write_run_state(exp_name, state, self.journal)
            except Exception as caught:  # the edge of a thread
                error = caught
            self._outcome = time.thread_time() - begin_cpu, error

        self._writer = threading.Thread(target=write, name="run-state", daemon=True)
        self._writer.start()

    def _finish_writing(self) -> None:
        self._writer = None
        cpu_seconds, error = self._outcome
        if error is not None:
            self._fail("the state that resuming needs", error)
            return
        self.error = None
        # The writing goes on beside the training, on another core if there is one.
        cost = self._cost + cpu_seconds / _cores()
        pause = cost / MAX_SHARE
        self._not_before = self._saved_time + pause
        if pause > 2 * durations.SAVE_INTERVAL and not self._told_seldom:
            self._told_seldom = True
            self._tell(
                f"saving the state takes {cost:.2g} s, so that it is saved "
                f"every {pause:.0f} s only: a run that is killed loses as much"
            )

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

    def _guarded(self, what: str, do: Callable[[], None]) -> bool:
        """Whether it could be done; why not is told."""
        try:
            do()
        except (CheckpointWriteError, MemoryError, TypeError) as error:
            self._fail(what, error)
            return False
        return True

    def _retry_best(self) -> None:
        if self._unsaved_best is not None:
            name, state = self._unsaved_best
            save_file(os.path.join(self._parts.cfg.exp_name, "ckpt", name), state)
            self._unsaved_best = None

    def _fail(self, what: str, error: Exception) -> None:
        self.error = f"could not save {what}: {str(error).partition(';')[0]}"
        self._not_before = time.monotonic() + durations.SAVE_RETRY
        self._tell(f"could not save {what}: {error}")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _save_freq(hooks: Any) -> float:
    value = hooks.get("save_ckpt_after_iter")
    if isinstance(value, dict):
        value = value.get("ext_args", {}).get("freq", 1)
    return value or math.inf

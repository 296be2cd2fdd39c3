"""The complete state of a serial run for an exact resume, and when it is saved."""

import copy
import logging
import math
import os
import random
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress

import numpy as np
import torch

from ding.data.buffer.ring_buffer import RingBuffer
from ding.data.offline.naive_dataset import ROWS_FOLDER, STATE_FILE
from ding.data.row_journal import RowJournal
from ding.entry.components import Components, keep_configured
from ding.policy.own_state import OwnState
from ding.torch_utils import to_device
from ding.utils import durations, get_rank, read_file, save_file
from ding.utils.errors import CheckpointError, CheckpointWriteError, mismatch
from ding.utils.file_helper import put_in_place, temporary_name
from ding.utils.settings import leaves
from ding.utils.state_saver import SAVE_ERRORS, StateSaver
from ding.utils.types import Settings, State
from ding.worker.learner.learner_hook import POSITIONS, checkpoint_state

logger = logging.getLogger(__name__)

#: The previous state; loaded if the last one is damaged.
PREVIOUS_NAME = "resume_previous.pth.tar"
#: Location of a run and of its checkpoint, which change with every resume.
_PLACES = ("exp_name.", "policy.learn.resume_training.", "policy.learn.learner.hook.")


def state_path(exp_name: str) -> str:
    """Path of a run's saved state."""
    return os.path.join(exp_name, STATE_FILE)


def rows_path(exp_name: str) -> str:
    """Folder of the replay buffer's rows to which a run's state refers."""
    return os.path.join(exp_name, ROWS_FOLDER)


def take_run_state(parts: Components, journal: RowJournal) -> State:
    """Copy policy, optimiser, buffer, counters, the evaluator's best, RNG and env seeds: training
    may continue before the copy is written.

    Running episodes are not included; rows that the journal has are not written again.
    """
    buffer = parts.replay_buffer
    own = {name: part for name, part in _stateful(parts).items() if part is not buffer}
    kind, keys, *generator = np.random.get_state()
    state = {
        "policy": to_device(dict(parts.learner.policy.state_dict()), "cpu"),
        **{name: part.state_dict() for name, part in own.items()},
        "rng": {
            "python": random.getstate(),
            "numpy": (kind, np.asarray(keys), *generator),
            "torch": torch.get_rng_state(),
            # Querying them would start CUDA in a process that may not use it.
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        },
        "optimizer_options": parts.built_options,
        "config": _config_facts(parts.cfg),
        "first_iter": parts.first_iter,
    }
    state["own"] = {name: own.save(part) for name, (part, own) in own_states(parts).items()}
    state = copy.deepcopy(state)
    if isinstance(buffer, RingBuffer):
        with buffer.rows_in(journal):
            state["buffer"] = buffer.state_dict()  # copies already
    elif buffer is not None and hasattr(buffer, "state_dict"):
        state["buffer"] = copy.deepcopy(buffer.state_dict())
    return state


def write_run_state(exp_name: str, state: State, journal: RowJournal) -> None:
    """Write a state from `take_run_state`.

    Raises:
        CheckpointWriteError: The file cannot be written; the previous one is intact.
        TypeError: A part's state contains something that cannot be stored.
    """
    # First, since a state may refer only to rows on disk.
    journal.write()
    path = state_path(exp_name)
    previous = os.path.join(os.path.dirname(path), PREVIOUS_NAME)
    temporary = temporary_name(previous)
    # The previous state and its rows are kept, except on file systems without hard links.
    with suppress(OSError):
        # A link, not a rename, after which there would temporarily be no state.
        os.link(path, temporary)
        put_in_place(temporary, previous)
    save_file(path, state)
    # Only now: the old state had to be readable until the new one was in place.
    journal.remove_unused()


def load_run_state(
    parts: Components,
    journal: RowJournal | None = None,
    warn: Callable[[str], None] = logger.warning,
) -> list[str]:
    """Load the state that `write_run_state` wrote into the same run folder.

    If it is damaged, and the previous state is not, the previous one is loaded.

    Args:
        journal: For later saves, so that its rows are not written again.

    Returns:
        The config values that have changed since; the new ones apply.

    Raises:
        CheckpointError: There is no state, or it does not fit this config.
    """
    path = state_path(parts.cfg.exp_name)
    previous = os.path.join(os.path.dirname(path), PREVIOUS_NAME)
    if not os.path.exists(path):
        raise CheckpointError(
            f"nothing to resume: {path} does not exist. Use the exp_name of the run to continue"
        )
    journal = journal or RowJournal(rows_path(parts.cfg.exp_name))
    try:
        return _load_state(path, parts, journal)
    except CheckpointError as error:
        if not os.path.exists(previous):
            raise
        try:
            changed = _load_state(previous, parts, journal)
        except CheckpointError:
            raise error from None
        # The next save keeps the file at this path as the previous state.
        put_in_place(previous, path)
        warn(f"{error}; continuing from the state that was saved before it")
        return changed


def _load_state(path: str, parts: Components, journal: RowJournal) -> list[str]:
    state = read_file(path)
    try:
        before, now = state["config"], _config_facts(parts.cfg)
        changed = [
            f"{key}: {before[key]} -> {now[key]}"
            for key in before
            if key in now and now[key] != before[key]
        ]
        parts.learner.policy.load_state_dict(state["policy"])
        keep_configured(parts.policy, parts.built_options, state["optimizer_options"])
        buffer = parts.replay_buffer
        with buffer.rows_in(journal) if isinstance(buffer, RingBuffer) else nullcontext():
            for name, part in _stateful(parts).items():
                part.load_state_dict(state[name])
        for name, (part, own) in own_states(parts).items():
            own.load(part, state.get("own", {}).get(name) or {})
        parts.first_iter = state.get("first_iter", 0)  # states of earlier versions have none
        rng = state["rng"]
    except CheckpointError:
        raise  # a file that belongs to the state, not to the config
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path} does not fit this config: {type(error).__name__}: {mismatch(error)}"
        ) from error
    # Last: building and loading the parts may have used the generators.
    _set_rng_state(rng)
    return changed


def load_best_result(parts: Components, warn: Callable[[str], None]) -> None:
    """Set the evaluator's best result to that of ``ckpt_best``, which may be newer than the state:
    a worse policy must not replace it."""
    path = os.path.join(parts.cfg.exp_name, "ckpt", "ckpt_best.pth.tar")
    if not os.path.exists(path):
        return
    try:
        state = read_file(path)
    except CheckpointError as error:
        warn(f"{error}; the next evaluation replaces it")
        return
    if state.get("eval_result") is not None:
        parts.evaluator.best = state["eval_result"]


def _stateful(parts: Components) -> State:
    found = {
        "learner": parts.learner,
        "collector": parts.collector,
        "evaluator": parts.evaluator,
        "buffer": parts.replay_buffer,
        "reward_model": parts.reward_model,
    }
    return {name: part for name, part in found.items() if hasattr(part, "state_dict")}


def own_states(parts: Components) -> dict[str, tuple[object, OwnState]]:
    """Custom parts and hooks, with the attributes that they add to ours; first called before
    training.

    A class that defines ``state_dict`` itself determines what is saved.
    """
    if not parts.own_states:
        learner = parts.learner
        found = {"learner": learner, "collector": parts.collector, "evaluator": parts.evaluator}
        found["buffer"] = parts.replay_buffer
        for position in POSITIONS if hasattr(learner, "hooks") else ():
            found |= {f"hook {hook.name}": hook for hook in learner.hooks(position)}
        for name, part in found.items():
            own = OwnState(part)
            if own.applies and not own.defines("state_dict"):
                parts.own_states[name] = part, own
    return parts.own_states


def _config_facts(cfg: Settings) -> dict[str, str]:
    """All values of a compiled config as text, by their full path."""
    # Callables by name only, since their text differs in each process.
    return {
        path: repr(value)
        for path, value in leaves(cfg)
        if not f"{path}.".startswith(_PLACES) and not callable(value)
    }


def _set_rng_state(state: State) -> None:
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    np.random.set_state(tuple(state["numpy"]))
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])


#: Maximum fraction of the run's time spent saving.
MAX_SHARE = 0.01


class SerialStateKeeper(StateSaver[State]):
    """Saves the run's state when enough was learned or time has passed, and the best policies.

    Training waits only while the state is copied; a thread writes it. Rows of the replay buffer
    that are already on disk are not written again.

    Attributes:
        problem: What could not be saved the last time, and why; ``None`` if nothing failed.
        journal: The journal of the replay buffer's rows.
    """

    def __init__(self, parts: Components, warn: Callable[[str], None]) -> None:
        self.problem: str | None = None
        self.journal = RowJournal(rows_path(parts.cfg.exp_name))
        self._parts, self._warn = parts, warn
        freq = parts.cfg.policy.learn.learner.hook.get("save_ckpt_after_iter")
        if isinstance(freq, dict):
            freq = freq.get("ext_args", {}).get("freq", 1)
        self._freq: float = freq or math.inf
        self._unsaved_best: tuple[str, State] | None = None
        self._warned_of_cost = False
        own_states(parts)
        super().__init__(
            self._taken,
            lambda state: write_run_state(parts.cfg.exp_name, state, self.journal),
            lambda error: self._fail("the state that resuming needs", error),
            interval=0.0,
            max_share=MAX_SHARE,
            retry=durations.SAVE_RETRY,
            in_background=True,
            on_stall=self._warn,
        )
        self.start_counting()

    def start_counting(self) -> None:
        """Restart the count: the current state is on disk, or training has not begun."""
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
        """Save the state for resuming, and wait until it is written."""
        if get_rank():
            return
        super().save()
        if self.error is None and self._unsaved_best is not None:
            try:
                self._retry_best()
            except SAVE_ERRORS as error:
                self._fail("the best policy", error)

    def _taken(self) -> State:
        state = take_run_state(self._parts, self.journal)
        # Updates during the write count for the next save.
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
        """Save the policy under a name, with the result that makes it the best."""
        learner = self._parts.learner
        learner.checkpoint_facts = {"eval_result": self._parts.evaluator.last}
        try:
            learner.save_checkpoint(name)
        except CheckpointWriteError as error:
            # A copy for a retry, since the policy will have changed.
            state = copy.deepcopy(to_device(checkpoint_state(learner), "cpu"))
            self._unsaved_best = name, state
            self._fail(name, error)
        else:
            self._unsaved_best = None
        finally:
            learner.checkpoint_facts = {}

    def run_last_hooks(self) -> None:
        """Call the learner's hooks at the end of the run, which save a last checkpoint."""
        try:
            self._parts.learner.call_hook("after_run")
        except CheckpointWriteError as error:  # other errors are those of a custom hook
            self._fail("the last checkpoint", error)

    def _retry_best(self) -> None:
        assert self._unsaved_best is not None
        name, state = self._unsaved_best
        path = os.path.join(self._parts.cfg.exp_name, "ckpt", name)
        save_file(path, state)
        self._unsaved_best = None
        if (on_checkpoint := getattr(self._parts.learner, "on_checkpoint", None)) is not None:
            on_checkpoint(path)

    def _fail(self, what: str, error: Exception) -> None:
        self.problem = f"could not save {what}: {str(error).partition(';')[0]}"
        self._warn(f"could not save {what}: {error}")

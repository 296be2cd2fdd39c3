"""Files of the coordinator: the best checkpoint, its own state, and files to remove at the end."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from ding.torch_utils.weights_file import weights_pattern
from ding.utils import read_file, remove_file, save_file
from ding.utils.errors import CheckpointError, CheckpointNotFoundError, DingError
from ding.utils.state_saver import StateSaver
from ding.utils.types import SavedState, Settings, State
from ding.worker.seams import Engine, Weights
from ding.worker.tasks import CollectorReport

from .run_facts import as_count

BEST_NAME = "ckpt_best.pth.tar"
STATE_NAME = "coordinator_state.pth.tar"
#: Increased when earlier states cannot be resumed.
FORMAT = 3
#: Maximum fraction of the time spent saving the state.
MAX_SHARE = 0.05


class RunFiles:
    """Saves evaluated weights as the best checkpoint, and removes files at the end of a run; a
    failed removal is only reported.

    Args:
        engine: Provides samples, weights, artifacts (for the checkpoint), and marks of folders.

    Attributes:
        noted: Names of files that the run has written or will write, and removes at its end:
            ``buffers`` and ``weights``.
    """

    def __init__(self, engine: Engine, warn: Callable[[str], object]) -> None:
        self._samples, self._weights = engine.samples, engine.weights
        self._artifacts, self._marks, self._warn = engine.artifacts, engine.marks, warn
        self.noted: dict[str, set[str]] = {"buffers": set(), "weights": set()}

    def take_evaluated(self, info: CollectorReport, is_best: bool) -> bool:
        """Remove the copy of a report's weights; returns whether they were the best, and are now
        saved as a checkpoint."""
        name = info.get("eval_policy")
        if not (isinstance(name, str) and name):
            return False
        try:
            if is_best:
                found = self._weights.newest(name)
                checkpoint = _checkpoint(found.state, {**found.facts, **info})
                self._artifacts.save(f"ckpt/{BEST_NAME}", checkpoint)
            self._weights.remove(name)
        except (DingError, OSError) as err:
            self._warn(f"{BEST_NAME} was not saved: {err}")
            return False
        return is_best

    def keep_weights(self, name: str, as_name: str) -> None:
        """Copy the newest weights of a name to another one, and save them in the run's folder for
        resumed runs, since no learner publishes them again.

        Raises:
            CheckpointError: There are none, they cannot be read, or not be written; then nothing
                is kept.
        """
        found, path = self._weights.newest(name), _kept_path(as_name)
        # First, as the other one is never removed.
        self._weights.publish(as_name, found)
        try:
            self._artifacts.save(path, {"state": found.state, "facts": dict(found.facts)})
        except BaseException:
            self.remove(f"weights {as_name}", partial(self._weights.remove, as_name))
            raise

    def restore_weights(self, names: Iterable[str]) -> None:
        """Publish weights kept under these names again, after the end of a run removed them.

        Raises:
            CheckpointError: They cannot be read or written.
        """
        for name in names:
            kept = self._artifacts.load(_kept_path(name))
            if kept is not None and self._weights.version(name) is None:
                self._weights.publish(name, Weights(kept["state"], kept["facts"]))

    def note(self, kind: str, names: Iterable[str]) -> None:
        """Record names to remove at the end; a mark file keeps them if this process dies."""
        # Only new names: the mark is a file, and this is called in each tick.
        new = set(names) - self.noted[kind]
        self.noted[kind] |= new
        mark = self._marks.get(kind)
        if mark is not None and new:
            try:
                mark.note(kind, new)
            except OSError as err:  # the files will stay; training can continue
                self._warn(f"the names of the run's {kind} were not put down: {err}")

    def discard(self, data_id: str) -> None:
        """Remove samples that belong to no buffer."""
        self.remove(f"data {data_id}", partial(self._samples.remove, data_id))

    def remove_weights(self) -> None:
        """Remove published weights, and copies for evaluations that never ended."""
        for name in list(self.noted["weights"]):
            self.remove(f"weights {name}", partial(self._weights.remove, name))
            self.remove(f"weights {name}", partial(self._weights.clear, weights_pattern(name)))

    def remove_paths(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.remove(os.path.basename(path), partial(remove_file, path))

    def remove(self, what: str, how: Callable[[], object]) -> None:
        try:
            how()
        except Exception as err:  # a file that is left must not fail the end
            self._warn(f"{what} was not removed: {err}")


def _kept_path(name: str) -> str:
    return f"ckpt/kept_{name.replace(os.sep, '_')}.pth.tar"


def _checkpoint(state: SavedState, info: Mapping[str, object]) -> SavedState:
    state = state if "model" in state else {"model": state}
    return {
        **state,
        "last_iter": as_count(info.get("policy_iter")),
        "last_step": as_count(info.get("envstep")),
        "eval_result": info.get("reward_mean"),
    }


class CoordinatorState:
    """The coordinator's state on disk, with which a killed coordinator can be restarted.

    Args:
        exp_name: The run's folder.
        run: What makes the run another one when it differs: its main config.
        seconds: Time between saves; they are fewer if the processor works long on each.

    Attributes:
        is_of_end: Whether the run has reached its goal or its limits: it then continues only if
            resuming is requested.
    """

    def __init__(
        self, exp_name: str, run: Settings, seconds: float, warn: Callable[[str], object]
    ) -> None:
        self.path = os.path.join(exp_name, "ckpt", STATE_NAME)
        # Other objects by type only: their text may contain an address, which differs in each
        # process.
        text = json.dumps(run, sort_keys=True, default=lambda value: type(value).__name__)
        self._run = hashlib.sha256(text.encode()).hexdigest()
        self._warn, self._is_failing, self.is_of_end = warn, False, False
        self._saver = StateSaver[SavedState](
            self._take,
            *(self._write, self._warn_once, seconds, MAX_SHARE),
            # A slow disk must make saves neither rarer nor the coordinator slow: what was counted
            # since the last one is lost with a coordinator that is killed.
            in_background=True,
            on_stall=warn,
        )

    def load(self, wanted: bool | None) -> State | None:
        """The state to resume from, if there is one.

        Args:
            wanted: Whether to resume. ``None``: only if the state belongs to this run, and the run
                has not reached its goal or limits.

        Raises:
            CheckpointError: The state is wanted, and cannot be read.
        """
        if wanted is False:
            return None
        try:
            saved = read_file(self.path)
            if not isinstance(saved, dict) or not {"run", "state"} <= set(saved):
                raise CheckpointError(f"{self.path} holds no state of a coordinator")
            if saved.get("format") != FORMAT:
                raise CheckpointError(f"{self.path} is a state of another version of ding")
        except CheckpointNotFoundError:
            if wanted:
                self._warn(f"the run starts from the beginning: there is no {self.path}")
            return None
        except CheckpointError as err:
            if wanted:
                raise
            self._warn(f"the run starts from the beginning: {err}")
            return None
        is_own, is_of_end = saved["run"] == self._run, bool(saved.get("is_of_end"))
        if not (wanted or is_own or is_of_end):
            self._warn(
                f"the run starts from the beginning: {self.path} is of another config or seed "
                "(--resume continues from it all the same)"
            )
        return saved["state"] if wanted or (is_own and not is_of_end) else None

    def save_if_due(self, collect: Callable[[], SavedState]) -> None:
        """Save what `collect` returns, if it is time to: a thread writes that, while its source may
        change."""
        self._collect = collect
        self._saver.save_if_due()

    def save(self, collect: Callable[[], SavedState]) -> None:
        """Save the result of `collect`. A failure is reported once, and the run continues."""
        self._collect = collect
        self._saver.save()

    def _take(self) -> SavedState:
        facts = {"format": FORMAT, "run": self._run, "is_of_end": self.is_of_end}
        return {**facts, "state": self._collect()}

    def _write(self, state: SavedState) -> None:
        save_file(self.path, state)
        self._is_failing = False

    def _warn_once(self, error: Exception) -> None:
        if not self._is_failing:
            self._warn(f"the coordinator's state is not saved: {error}")
        self._is_failing = True

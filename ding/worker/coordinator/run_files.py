"""Files that the coordinator looks after: the best checkpoint, and those to be removed."""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from ding.torch_utils.weights_file import weights_pattern
from ding.utils import remove_file
from ding.utils.errors import DingError
from ding.utils.run_claims import RunMark
from ding.worker.seams import Artifacts, State, WeightStore
from ding.worker.tasks import CollectorReport

from .reported_values import as_count

BEST_NAME = "ckpt_best.pth.tar"


class RunFiles:
    """Makes the best checkpoint of evaluated weights, and removes files at the end of a run; one
    that cannot be removed is shown and does no harm.

    Args:
        artifacts: Where the checkpoint goes.
        weights: Where weights are published; ``None``: nowhere that the coordinator can see.
        marks: Of the folders that samples (``buffers``) and weights are in, if they are in folders.
        warn: Shows a line to the operator.

    Attributes:
        noted: What the run has written or will, by kind: names of ``buffers`` and ``weights``, and
            paths of learners' ``states``.
    """

    def __init__(
        self,
        artifacts: Artifacts,
        weights: WeightStore | None,
        marks: Mapping[str, RunMark],
        warn: Callable[[str], object],
    ) -> None:
        self._artifacts, self._weights = artifacts, weights
        self._marks, self._warn = marks, warn
        self.noted: dict[str, set[str]] = {"buffers": set(), "weights": set(), "states": set()}

    def take_evaluated(self, info: CollectorReport, is_best: bool) -> bool:
        """Remove the copy of the weights that a report is about; whether it was the best, and is a
        checkpoint now."""
        name = info.get("eval_policy")
        if self._weights is None or not (isinstance(name, str) and name):
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

    def note(self, kind: str, names: Iterable[str]) -> None:
        """Remember what is to be removed at the end; where there is a mark it is put down, in case
        this process dies before that."""
        new = set(names) - self.noted[kind]
        self.noted[kind] |= new
        mark = self._marks.get(kind)
        if mark is not None and new:
            try:
                mark.note(kind, new)
            except OSError as err:  # then they stay; no reason not to train
                self._warn(f"the names of the run's {kind} were not put down: {err}")

    def remove_weights(self) -> None:
        """Remove published weights, and what evaluations that never ended have kept of them."""
        if self._weights is not None:
            for name in list(self.noted["weights"]):
                self.remove(f"weights {name}", partial(self._weights.remove, name))
                self.remove(f"weights {name}", partial(self._weights.clear, weights_pattern(name)))

    def remove_paths(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.remove(os.path.basename(path), partial(remove_file, path))

    def remove(self, what: str, how: Callable[[], object]) -> None:
        try:
            how()
        except Exception as err:  # the end must not fail for a file that is left
            self._warn(f"{what} was not removed: {err}")


def _checkpoint(state: State, info: Mapping[str, object]) -> State:
    state = state if "model" in state else {"model": state}
    return {
        **state,
        "last_iter": as_count(info.get("policy_iter")),
        "last_step": as_count(info.get("envstep")),
        "eval_result": info.get("reward_mean"),
    }

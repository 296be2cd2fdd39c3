"""Files that the coordinator looks after: the best checkpoint, and those to be removed."""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from ding.torch_utils.weights_file import weights_pattern
from ding.utils import remove_file
from ding.utils.errors import DingError
from ding.utils.run_mark import RunMark
from ding.worker.seams import Artifacts, State, WeightStore
from ding.worker.tasks import CollectorReport

from .reported_values import as_count

BEST_NAME = "ckpt_best.pth.tar"


class BestPolicy:
    """Turns the copies of evaluated weights into the best checkpoint, and removes them.

    Args:
        artifacts: Where the checkpoint goes.
        weights: Where weights are published; ``None``: nowhere that the coordinator can read.
    """

    def __init__(self, artifacts: Artifacts, weights: WeightStore | None) -> None:
        self._artifacts, self._weights = artifacts, weights

    def keeps(self, info: CollectorReport) -> bool:
        """Whether the weights that a report is about can be made a checkpoint."""
        return self._weights is not None and bool(_weights_name(info))

    def take(self, info: CollectorReport, is_best: bool) -> str | None:
        """Look at the report of an evaluation; returns what went wrong, if anything."""
        name = _weights_name(info)
        if self._weights is None or not name:
            return None
        try:
            if is_best:
                found = self._weights.newest(name)
                checkpoint = _checkpoint(found.state, {**found.facts, **info})
                self._artifacts.save(f"ckpt/{BEST_NAME}", checkpoint)
            self._weights.remove(name)
        except (DingError, OSError) as err:
            return f"{BEST_NAME} was not saved: {err}"
        return None


def _weights_name(info: Mapping[str, object]) -> str:
    """What the copy of the evaluated weights is called; empty if there is none."""
    name = info.get("eval_policy")
    return name if isinstance(name, str) else ""


def _checkpoint(state: State, info: Mapping[str, object]) -> State:
    state = state if "model" in state else {"model": state}
    return {
        **state,
        "last_iter": as_count(info.get("policy_iter")),
        "last_step": as_count(info.get("envstep")),
        "eval_result": info.get("reward_mean"),
    }


class RunFiles:
    """Removes files at the end of a run; one that cannot be removed is shown and does no harm.

    Args:
        weights: Where weights are published; ``None``: nowhere that the coordinator can see.
        marks: Of the folders that samples (``buffers``) and weights are in, if they are in folders.
        warn: Shows a line to the operator.
    """

    def __init__(
        self,
        weights: WeightStore | None,
        marks: Mapping[str, RunMark],
        warn: Callable[[str], object],
    ) -> None:
        self._weights, self._marks, self._warn = weights, marks, warn
        self._noted: dict[str, set[str]] = {kind: set() for kind in marks}

    def note(self, kind: str, names: Iterable[str]) -> None:
        """Put down what files of ``buffers`` or ``weights`` are called, in case this process dies
        before it can remove them."""
        mark = self._marks.get(kind)
        if mark is not None and (new := set(names) - self._noted[kind]):
            self._noted[kind] |= new
            try:
                mark.note(kind, new)
            except OSError as err:  # then they stay; no reason not to train
                self._warn(f"the names of the run's {kind} were not put down: {err}")

    def remove_weights(self, policy_ids: Iterable[str]) -> None:
        """Remove published weights, and what evaluations that never ended have kept of them."""
        if self._weights is not None:
            for name in policy_ids:
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

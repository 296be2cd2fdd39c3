"""What a run puts down for its time only."""

import os
from collections.abc import Callable, Iterable
from functools import partial

from ding.torch_utils.weights_file import weights_pattern
from ding.utils import remove_file
from ding.utils.run_mark import RunMark
from ding.utils.shared_folder import SharedFolder


class RunFiles:
    """Removes files at the end of a run; one that cannot be removed is told and does no harm.

    Args:
        exp_name: The run's folder.
        data: Where samples are; ``None``: nowhere that the coordinator can see.
        policies: Where weights are published, likewise.
        tell: Shows a line to the operator.
    """

    def __init__(
        self,
        exp_name: str,
        data: SharedFolder | None,
        policies: SharedFolder | None,
        tell: Callable[[str], object],
    ) -> None:
        self._policies, self._tell = policies, tell
        folders = {"buffers": data, "weights": policies}
        self._marks = {
            kind: RunMark(folder.path, exp_name)
            for kind, folder in folders.items()
            if folder is not None
        }
        self._noted: dict[str, set[str]] = {kind: set() for kind in folders}

    def note(self, kind: str, names: Iterable[str]) -> None:
        """Put down what files of ``buffers`` or ``weights`` are called, in case this process dies
        before it can remove them."""
        new = set(names) - self._noted[kind]
        if new and kind in self._marks:
            self._noted[kind] |= new
            try:
                self._marks[kind].note(kind, new)
            except OSError as err:  # then they stay; no reason not to train
                self._tell(f"the names of the run's {kind} were not put down: {err}")

    def remove_weights(self, policy_ids: Iterable[str]) -> None:
        """Remove published weights, and what evaluations that never ended have kept of them."""
        if self._policies is not None:
            for name in policy_ids:
                self.remove(f"weights {name}", partial(self._policies.remove, name))
                self.remove(f"weights {name}", partial(self._policies.clear, weights_pattern(name)))

    def remove_paths(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.remove(os.path.basename(path), partial(remove_file, path))

    def remove(self, what: str, how: Callable[[], object]) -> None:
        try:
            how()
        except Exception as err:  # the end must not fail for a file that is left
            self._tell(f"{what} was not removed: {err}")

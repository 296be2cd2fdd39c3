"""What a run puts down for its time only."""

import os
from collections.abc import Callable, Iterable
from functools import partial

from ding.utils import remove_file
from ding.utils.shared_folder import SharedFolder


class RunFiles:
    """Removes files at the end of a run; one that cannot be removed is told and does no harm.

    Args:
        policies: Where weights are published; ``None``: nowhere that the coordinator can see.
        tell: Shows a line to the operator.
    """

    def __init__(self, policies: SharedFolder | None, tell: Callable[[str], object]) -> None:
        self._policies, self._tell = policies, tell

    def remove_weights(self, policy_ids: Iterable[str]) -> None:
        """Remove published weights, and what evaluations that never ended have kept of them."""
        if self._policies is not None:
            for name in policy_ids:
                self.remove(f"weights {name}", partial(self._policies.remove, name))
                self.remove(f"weights {name}", partial(self._policies.clear, f"{name}."))

    def remove_paths(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.remove(os.path.basename(path), partial(remove_file, path))

    def remove(self, what: str, how: Callable[[], object]) -> None:
        try:
            how()
        except Exception as err:  # the end must not fail for a file that is left
            self._tell(f"{what} was not removed: {err}")

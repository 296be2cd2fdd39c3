"""The coordinator's state on disk, so that a killed one can be started again."""

import hashlib
import json
import os
from collections.abc import Callable
from functools import partial

from ding.utils import read_file, remove_file, save_file
from ding.utils.errors import CheckpointError, CheckpointNotFoundError
from ding.utils.state_saver import StateSaver

from ._types import Config, StateDict

STATE_NAME = "coordinator_state.pth.tar"
#: Another one when a state of before cannot be gone on from.
FORMAT = 3
#: Share of the time that saving may take.
MAX_SHARE = 0.05


class CoordinatorState:
    """Saves the state every so many seconds, less often if that takes long.

    Args:
        exp_name: The run's folder.
        run: What makes the run another one when it differs: its main config.
        seconds: Time between saves.
        warn: Shows a line to the user.
    """

    def __init__(
        self, exp_name: str, run: Config, seconds: float, warn: Callable[[str], object]
    ) -> None:
        self.path = os.path.join(exp_name, "ckpt", STATE_NAME)
        text = json.dumps(run, sort_keys=True, default=lambda value: type(value).__name__)
        self._run = hashlib.sha256(text.encode()).hexdigest()
        self._warn = warn
        self._is_failing = False
        self._saver = StateSaver[StateDict](
            lambda: {"format": FORMAT, "run": self._run, "state": self._collect()},
            partial(save_file, self.path),
            self._warn_once,
            seconds,
            MAX_SHARE,
            on_stall=warn,
        )

    def load(self, wanted: bool | None) -> StateDict | None:
        """The state to go on from, if there is one.

        Args:
            wanted: ``None``: if it is this run's and the run has not reached its end.

        Raises:
            CheckpointError: It is wanted, and it cannot be read.
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
                self._warn(f"the run begins anew: there is no {self.path}")
            return None
        except CheckpointError as err:
            if wanted:
                raise
            self._warn(f"the run begins anew: {err}")
            return None
        return saved["state"] if wanted or saved["run"] == self._run else None

    def save_if_due(self, collect: Callable[[], StateDict]) -> None:
        self._collect = collect
        if self._saver.save_if_due():
            self._is_failing = self._saver.error is not None

    def save(self, collect: Callable[[], StateDict]) -> None:
        """Save what `collect` gives. A failure is shown once, and the run goes on."""
        self._collect = collect
        self._saver.save()
        self._is_failing = self._saver.error is not None

    def _warn_once(self, error: Exception) -> None:
        if not self._is_failing:
            self._warn(f"the coordinator's state is not saved: {error}")

    def remove(self) -> None:
        """The run has reached its end; there is nothing to go on from."""
        remove_file(self.path)

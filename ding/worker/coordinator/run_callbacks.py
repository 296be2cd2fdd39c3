"""What happens in a parallel run, told to its callbacks."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from ding.utils.callbacks import (
    Callbacks,
    CheckpointSaved,
    Collected,
    EpisodeDone,
    Evaluated,
    RunFinished,
    RunMoment,
    RunStarted,
)
from ding.utils.ending import Ending
from ding.utils.errors import CallbackError

from .run_facts import RunFacts


class RunCallbacks:
    """Calls the callbacks of a run, and ends it if they ask for that, or raise.

    Args:
        callbacks: Those of the run.
        exp_name: Its folder.
        facts: Its counters.
        stop: Ends the run: with a reason, and a status.
    """

    def __init__(
        self,
        callbacks: Callbacks,
        exp_name: str,
        facts: RunFacts,
        stop: Callable[[str, str], None],
    ) -> None:
        self._callbacks, self._exp_name, self._facts = callbacks, exp_name, facts
        self._stop = stop

    def start(self, config: Mapping[str, Any]) -> None:
        """Workers may join now."""
        self._tell(self._callbacks.start, RunStarted, config=config)

    def collected(self, sample_count: int) -> None:
        """A collector has stored samples."""
        self._tell(self._callbacks.collected, Collected, sample_count=sample_count)

    def episode(self, source: str, env_id: int, episode_return: float, length: int) -> None:
        """A collector has told of an episode."""
        facts = {"env_id": env_id, "episode_return": episode_return, "length": length}
        self._tell(self._callbacks.episode, EpisodeDone, source=source, **facts)

    def evaluated(self, result: float, returns: tuple[float, ...], is_best: bool) -> None:
        """An evaluation is over."""
        facts = {"result": result, "returns": returns, "is_best": is_best}
        self._tell(self._callbacks.evaluated, Evaluated, **facts)

    def saved(self, name: str) -> None:
        """There is a checkpoint of that name."""
        path = os.path.join(self._exp_name, "ckpt", name)
        self._tell(self._callbacks.saved, CheckpointSaved, path=path)

    def finished(self, ending: Ending) -> str:
        """The run is over; returns what the callbacks raised."""
        if not self._callbacks:
            return ""
        return self._callbacks.end(
            RunFinished(
                *self._moment,
                status=ending.status,
                reason=ending.reason,
                best_return=self._facts.best_return,
            )
        )

    @property
    def _moment(self) -> tuple[str, int, int]:
        return self._exp_name, self._facts.envstep, self._facts.train_iter

    def _tell(
        self, call: Callable[[Any], None], kind: Callable[..., RunMoment], **facts: Any
    ) -> None:
        if not self._callbacks:
            return
        try:
            call(kind(*self._moment, **facts))
        except CallbackError as error:
            self._stop(f"{type(error).__name__}: {error}", "failed")
        if self._callbacks.request:
            self._stop(self._callbacks.request, "finished")

"""What the parts of a serial run do, told to its callbacks."""

from typing import Any

from ding.entry.components import Components
from ding.utils import broadcast_object_list, get_rank, get_world_size
from ding.utils.callbacks import Callbacks, CheckpointSaved, EpisodeDone, RunFinished, RunMoment
from ding.utils.ending import Ending


class SerialCallbacks:
    """Brings the events of a run and its parts to its callbacks, on rank 0.

    Without callbacks the parts are left as they are.

    Args:
        callbacks: Those of the run.
        parts: Of the run; what they have for episodes is called first.

    Attributes:
        request: Why the run is to end, as all ranks know it; empty if nobody has asked.
    """

    def __init__(self, callbacks: Callbacks, parts: Components) -> None:
        self._callbacks = callbacks
        self._parts = parts
        self._tells = bool(callbacks) and get_rank() == 0
        self._shares = bool(callbacks) and get_world_size() > 1
        self.request = ""
        if self._tells:
            self._log_episode = parts.collector.on_episode
            parts.collector.on_episode = parts.evaluator.on_episode = self._episode
            parts.learner.on_checkpoint = lambda path: self.tell(CheckpointSaved, path=path)

    def agree(self) -> None:
        """Take over what callbacks have asked for; all ranks call it at the same place."""
        self.request = self._callbacks.request
        if self._shares:
            requests = [self.request]
            broadcast_object_list(requests, src=0)
            self.request = requests[0]

    def tell(self, kind: type[RunMoment], **facts: Any) -> None:
        """Something has happened: a kind of event, and what it has beside where the run is."""
        if self._tells:
            self._callbacks.tell(kind(*self._now, **facts))

    def finished(self, ending: Ending, best_return: float | None) -> str:
        """The run has ended and its folder is complete; returns what went wrong in telling it."""
        if not self._tells:
            return ""
        return self._callbacks.end(RunFinished(*self._now, *ending, best_return))

    @property
    def _now(self) -> tuple[str, int, int]:
        parts = self._parts
        return parts.cfg.exp_name, parts.collector.envstep, parts.learner.train_iter

    def _episode(
        self, source: str, env_id: int, returned: float, length: int, env_step: int, train_iter: int
    ) -> None:
        if self._log_episode is not None:
            self._log_episode(source, env_id, returned, length, env_step, train_iter)
        run = self._parts.cfg.exp_name, env_step, train_iter
        self._callbacks.tell(EpisodeDone(*run, source, env_id, float(returned), length))

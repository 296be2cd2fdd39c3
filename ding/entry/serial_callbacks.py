"""What the parts of a serial run do, told to its callbacks."""

from typing import Any

from ding.entry.components import Components
from ding.utils import broadcast_object_list, get_rank, get_world_size
from ding.utils.callbacks import (
    Callbacks,
    CheckpointSaved,
    Collected,
    EpisodeDone,
    Evaluated,
    RunFinished,
    RunStarted,
)
from ding.utils.ending import Ending


class SerialCallbacks:
    """Brings the events of a run's parts to its callbacks, on rank 0.

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
        self._returns: list[float] = []
        self._best_before: Any = None
        self.request = ""
        if self._tells:
            self._log_episode = parts.collector.on_episode
            parts.collector.on_episode = self._episode
            parts.evaluator.on_episode = self._judged_episode
            parts.learner.on_checkpoint = self._checkpoint

    def agree(self) -> None:
        """Take over what callbacks have asked for; all ranks call it at the same place."""
        self.request = self._callbacks.request
        if self._shares:
            requests = [self.request]
            broadcast_object_list(requests, src=0)
            self.request = requests[0]

    @property
    def _moment(self) -> dict[str, Any]:
        parts = self._parts
        return {
            "exp_name": parts.cfg.exp_name,
            "env_step": parts.collector.envstep,
            "train_iter": parts.learner.train_iter,
        }

    # ------------------------------------------------------------------ of the run

    def start(self) -> None:
        """Training begins now."""
        if self._tells:
            self._callbacks.start(RunStarted(**self._moment, config=self._parts.cfg))

    def collected(self, data: Any) -> None:
        """The collector has returned that."""
        if self._tells:
            # Battles: the samples of each player, and their episodes.
            batches = data[0] if isinstance(data, tuple) else [data]
            count = sum(len(batch) for batch in batches)
            self._callbacks.collected(Collected(**self._moment, sample_count=count))

    def judging(self) -> None:
        """An evaluation begins."""
        self._returns.clear()
        self._best_before = self._parts.evaluator.best

    def evaluated(self) -> None:
        """The evaluation is over."""
        if self._tells:
            evaluator = self._parts.evaluator
            event = Evaluated(
                **self._moment,
                result=evaluator.last,
                returns=tuple(self._returns),
                # Results may be anything; a better one takes the place of the one before.
                is_best=evaluator.best is not self._best_before,
            )
            self._callbacks.evaluated(event)
        self.agree()

    def finished(self, ending: Ending, best_return: float | None) -> str:
        """The run has ended and its folder is complete; returns what went wrong in telling it."""
        if not self._tells:
            return ""
        event = RunFinished(
            **self._moment, status=ending.status, reason=ending.reason, best_return=best_return
        )
        return self._callbacks.end(event)

    # ------------------------------------------------------------------ of its parts

    def _judged_episode(self, source: str, env_id: int, episode_return: float, *facts: int) -> None:
        self._returns.append(float(episode_return))
        self._episode(source, env_id, episode_return, *facts)

    def _episode(
        self,
        source: str,
        env_id: int,
        episode_return: float,
        length: int,
        env_step: int,
        train_iter: int,
    ) -> None:
        if self._log_episode is not None:
            self._log_episode(source, env_id, episode_return, length, env_step, train_iter)
        event = EpisodeDone(
            exp_name=self._parts.cfg.exp_name,
            env_step=env_step,
            train_iter=train_iter,
            source=source,
            env_id=env_id,
            episode_return=float(episode_return),
            length=length,
        )
        self._callbacks.episode(event)

    def _checkpoint(self, path: str) -> None:
        self._callbacks.saved(CheckpointSaved(**self._moment, path=path))

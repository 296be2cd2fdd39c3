"""Uniform replay: of single items, of sequences, and of a growing window."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ding.data.arrays import Items, State
from ding.data.buffer.ring_buffer import RingBuffer
from ding.utils.registry_factory import BUFFER_REGISTRY


@BUFFER_REGISTRY.register("naive")
class NaiveReplayBuffer(RingBuffer):
    """First-in, first-out replay buffer with uniform sampling.

    Args:
        cfg: ``replay_buffer_size`` (items) and the other keys of ``default_config``.
        tb_logger: Writer of scalars that the caller owns.
        exp_name: Folder of the run.
        instance_name: Prefix of the log.

    Example:

        >>> from ding.worker import NaiveReplayBuffer
        >>> buffer = NaiveReplayBuffer(NaiveReplayBuffer.default_config())
        >>> buffer.push([{"reward": 1.0}, {"reward": 2.0}], cur_collector_envstep=2)
        >>> buffer.count(), len(buffer.sample(2, cur_learner_iter=0))
        (2, 2)
    """

    config = dict(
        type="naive",
        replay_buffer_size=10000,
        deepcopy=False,
        enable_track_used_data=False,
        periodic_thruput_seconds=60,
        # Folder for memory-mapped files, for data larger than memory.
        memmap_path=None,
    )

    def sample(
        self,
        size: int,
        cur_learner_iter: int,
        sample_range: slice | None = None,
        replace: bool = False,
    ) -> Items | None:
        """Draw items uniformly.

        Args:
            size: Number of items.
            cur_learner_iter: Ignored.
            sample_range: Draw only from these items, counted from the oldest:
                ``slice(-10, None)`` selects the newest ten.
            replace: Whether an item may be drawn twice.

        Returns:
            ``Columns`` if the items are columnar, otherwise a list, independent of the buffer.
            None if there are too few items.
        """
        with self._lock:
            window = self._window(sample_range)
            if not self._enough(size, len(window), 1 if replace else size):
                return None
            draw = self._draw.any if replace else self._draw.distinct
            drawn = draw(len(window), size)
            if len(window) < self.count() or window.step != 1:
                slots = self._ring.of_age(window.start + window.step * drawn)
            else:
                slots = self._ring.nth(drawn)
            self._monitor.note(sampled=size)
            return self._ring.take(slots)

    def _window(self, sample_range: slice | None) -> range:
        """The items that may be sampled, as positions by age."""
        window = range(self.count())
        return window if sample_range is None else window[sample_range]

    def update(self, info: Mapping[str, Any]) -> None:
        """No-op: this buffer has no priorities."""


@BUFFER_REGISTRY.register("elastic")
class ElasticReplayBuffer(NaiveReplayBuffer):
    """Samples only from the newest items; their number depends on the environment step.

    ``cfg.set_buffer_size``, if given, maps the environment step to the number of items; without it
    all items are used.
    """

    config = dict(type="elastic")

    def _set_up(self) -> None:
        self._size_at: Callable[[int], int] | None = self._cfg.get("set_buffer_size")
        self._current_size: int | None = None  # ``None``: all items
        self.update(0)

    def update(self, envstep: int) -> None:  # type: ignore[override]
        """Set the number of newest items to use at this environment step."""
        if self._size_at is not None:
            with self._lock:
                self._current_size = max(int(self._size_at(envstep)), 1)

    def _window(self, sample_range: slice | None) -> range:
        window = super()._window(None)
        if self._current_size is not None:
            window = window[-self._current_size :]
        return window if sample_range is None else window[sample_range]

    def state_dict(self) -> State:
        return {**super().state_dict(), "current_size": self._current_size}

    def _load(self, state: State) -> np.ndarray:
        self._current_size = state["current_size"]
        return super()._load(state)


@BUFFER_REGISTRY.register("sequence")
class SequenceReplayBuffer(NaiveReplayBuffer):
    """Samples sequences of items that were pushed one after the other."""

    def sample(  # type: ignore[override]
        self,
        batch: int,
        sequence: int,
        cur_learner_iter: int,
        sample_range: slice | None = None,
        replace: bool = False,
    ) -> Items | None:
        """Draw sequences with uniformly distributed first items.

        Args:
            batch: Number of sequences.
            sequence: Number of items in a sequence.
            cur_learner_iter: Ignored.
            sample_range: Sequences lie within these items, counted from the oldest.
            replace: Whether two sequences may start at the same item.

        Returns:
            ``batch`` lists of ``sequence`` rows (each a ``Columns`` if the items are columnar), or
            None if there are too few items.
        """
        with self._lock:
            window = self._window(sample_range)
            starts = window[: max(len(window) - sequence + 1, 0)]
            if not self._enough(batch, len(starts), 1 if replace else batch):
                return None
            draw = self._draw.any if replace else self._draw.distinct
            first = draw(len(starts), batch)
            positions = window.start + window.step * (first[:, None] + np.arange(sequence))
            slots = self._ring.of_age(positions.reshape(-1))
            data = self._ring.take(slots)
            self._monitor.note(sampled=len(slots))
        return [data[i * sequence : (i + 1) * sequence] for i in range(batch)]

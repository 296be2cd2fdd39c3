"""Environments that draw everything from one generator of their own."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ding.utils.class_config import Configurable
from ding.utils.errors import ActionError

from .base_env import BaseEnv


class SeededEnv(Configurable, BaseEnv):
    """Holds the generator ``self._rng``, seeds it, and tells where it stands.

    Subclasses call `_begin_episode` when they are reset.
    """

    def __init__(self, cfg: dict) -> None:
        self._cfg = {**self.config, **cfg}
        self._seed: int | None = None
        self._dynamic_seed = True
        self._rng = np.random.default_rng()

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        """Seed the episodes to come.

        Args:
            seed: Of what the environment draws.
            dynamic_seed: If false, every episode draws the same.
        """
        self._seed, self._dynamic_seed = int(seed), dynamic_seed
        self._rng = np.random.default_rng(self._seed)
        self.action_space.seed(self._seed)

    def _begin_episode(self) -> None:
        if self._seed is not None and not self._dynamic_seed:
            self._rng = np.random.default_rng(self._seed)

    def _whole_numbers(self, action: Any, counts: Sequence[int], who: str) -> list[int]:
        """One of the numbers below each of `counts`.

        Raises:
            ActionError: It is not that.
        """
        try:
            numbers = [int(one) for one in np.ravel(action)]
        except (TypeError, ValueError):
            numbers = []
        in_range = all(0 <= one < count for one, count in zip(numbers, counts))
        if len(numbers) != len(counts) or not in_range:
            raise ActionError(
                f"{type(self).__name__} got the action {action!r}; expected one for each of "
                f"{len(counts)} {who}, each 0 to {counts[0] - 1}"
            )
        return numbers

    def close(self) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        """What the next episode depends on."""
        return {
            "seed": self._seed,
            "dynamic_seed": self._dynamic_seed,
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._seed, self._dynamic_seed = state_dict["seed"], state_dict["dynamic_seed"]
        self._rng.bit_generator.state = state_dict["rng"]

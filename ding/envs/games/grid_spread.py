"""Agents on a grid who share out landmarks among themselves."""

from typing import Any

import numpy as np

from ding.envs.games.cooperative import CooperativeGame
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import ENV_REGISTRY

# Stay, up, down, left, right.
_MOVES = np.array([(0, 0), (0, 1), (0, -1), (-1, 0), (1, 0)])


@ENV_REGISTRY.register("grid_spread")
class GridSpreadEnv(CooperativeGame):
    """As many landmarks as agents; the game is won when somebody stands on each of them.

    After `simple_spread` of Lowe et al. 2017, on a grid. Every step costs 0.1 for each landmark
    that nobody stands on, and winning pays 1. Agents start in cells and landmarks in cells of their
    own, drawn for each episode.

    An agent sees its own cell, the way to each landmark, and the way to each other agent, in this
    order; ``global_state`` is the cells of all agents and landmarks. The mask leaves out moves off
    the grid; who makes one stays.

    Config keys:
        agent_num: Agents, and landmarks.
        size: Cells along each side of the grid.
        max_episode_steps: Moves after which the game is lost.
    """

    config: dict[str, Any] = dict(agent_num=2, size=4, max_episode_steps=15)

    def _set_up(self) -> None:
        self._size, self._count = int(self._cfg["size"]), int(self._cfg["agent_num"])
        self._max_steps = int(self._cfg["max_episode_steps"])
        if self._count < 1 or self._size < 2 or self._count > self._size**2:
            raise ConfigError(
                f"env.agent_num={self._count} and env.size={self._size}: expected 1 agent or more, "
                "on a grid of 2 cells or more a side with room for all"
            )
        self._set_spaces(actions=len(_MOVES))

    def _begin(self) -> None:
        cells = self._size**2
        agents, marks = (self._rng.choice(cells, self._count, replace=False) for _ in range(2))
        self._agents = np.stack(divmod(agents, self._size), axis=1)
        self._landmarks = np.stack(divmod(marks, self._size), axis=1)

    def _advance(self, actions: list[int]) -> tuple[float, bool]:
        self._agents = np.clip(self._agents + _MOVES[actions], 0, self._size - 1)
        at = (self._landmarks[:, None] == self._agents[None]).all(-1)
        bare = int((~at.any(1)).sum())
        return (1.0, True) if bare == 0 else (-0.1 * bare, False)

    def _obs(self) -> dict[str, np.ndarray]:
        far = self._size - 1
        own = self._agents / far
        to_landmarks = (self._landmarks[None] - self._agents[:, None]) / far
        to_all = (self._agents[None] - self._agents[:, None]) / far
        others = ~np.eye(self._count, dtype=bool)
        to_others = to_all[others].reshape(self._count, -1)
        alone = np.concatenate([own, to_landmarks.reshape(self._count, -1)], axis=1)
        after = self._agents[:, None] + _MOVES
        obs = {
            "agent_state": np.concatenate([alone, to_others], axis=1),
            "agent_alone_state": alone,
            "agent_alone_padding_state": np.concatenate([alone, np.zeros_like(to_others)], axis=1),
            "global_state": np.concatenate([own, self._landmarks / far]).reshape(-1),
            "action_mask": ((after >= 0) & (after <= far)).all(-1),
        }
        return {key: part.astype(np.float32) for key, part in obs.items()}

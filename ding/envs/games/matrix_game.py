"""Two agents who each choose a row or a column of a table of rewards."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ding.envs.games.cooperative import CooperativeGame
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import ENV_REGISTRY

# What each pair of actions pays. In 'two_step' the first agent's first action chooses the table.
_GAMES: dict[str, tuple[Sequence[Sequence[float]], ...]] = {
    # Rashid et al. 2018, table 1: 8 is to be had where agents that explore get less than 7.
    "two_step": (((7, 7), (7, 7)), ((0, 1), (1, 8))),
    # Claus and Boutilier 1998: one who leaves the best pair alone pays for it.
    "climbing": (((11, -30, 0), (-30, 7, 6), (0, 0, 5)),),
    # Son et al. 2019, table 1a: a sum of values, or a monotonic mix, cannot tell the best pair.
    "nonmonotonic": (((8, -12, -12), (-12, 0, 0), (-12, 0, 0)),),
}


@ENV_REGISTRY.register("matrix_game")
class MatrixGameEnv(CooperativeGame):
    """Cooperation at its smallest: the team is paid what the table has for the pair of actions.

    Agents see where they are (one of the tables, or before them) and which agent they are; the
    global state is where they are.

    Config keys:
        game: ``'two_step'`` (best return 8), ``'climbing'`` (11) or ``'nonmonotonic'`` (8).
        payoff: A table of your own, ``[actions][actions]``, instead of `game`.
    """

    config: dict[str, Any] = dict(agent_num=2, game="two_step", payoff=None)

    def _set_up(self) -> None:
        if self._cfg["agent_num"] != 2:
            raise ConfigError(f"env.agent_num is {self._cfg['agent_num']}; MatrixGameEnv takes 2")
        self._tables = self._read_tables()
        self._max_steps = min(2, len(self._tables))
        self._set_spaces(actions=self._tables[0].shape[0])

    def _read_tables(self) -> list[np.ndarray]:
        game, payoff = self._cfg["game"], self._cfg["payoff"]
        if payoff is None:
            if game not in _GAMES:
                raise ConfigError(f"env.game is {game!r}; expected one of {[*_GAMES]}")
            return [np.array(table, np.float64) for table in _GAMES[game]]
        table = np.array(payoff, np.float64)
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            raise ConfigError(
                f"env.payoff has the shape {list(table.shape)}; expected [actions, actions]"
            )
        return [table]

    def _begin(self) -> None:
        # Table 0 at once, or a place before the tables.
        self._place = 0 if len(self._tables) == 1 else len(self._tables)

    def _advance(self, actions: list[int]) -> tuple[float, bool]:
        if self._place == len(self._tables):
            self._place = actions[0]
            return 0.0, False
        return float(self._tables[self._place][actions[0], actions[1]]), True

    def _obs(self) -> dict[str, np.ndarray]:
        places = len(self._tables) + (len(self._tables) > 1)
        state = np.zeros(places, np.float32)
        state[self._place] = 1
        actions = self._tables[0].shape[0]
        return {
            "agent_state": np.concatenate(
                [np.tile(state, (2, 1)), np.eye(2, dtype=np.float32)], axis=1
            ),
            "global_state": state,
            "action_mask": np.ones((2, actions), np.float32),
        }

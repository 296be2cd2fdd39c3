"""Two players on a grid race for a coin."""

import numpy as np
from gymnasium import spaces

from ding.envs.env.base_env import BaseEnvTimestep
from ding.envs.games.cooperative import SeededEnv
from ding.envs.vector_step import Action, Info, Space
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import ENV_REGISTRY
from ding.utils.types import Config

# Stay, up, down, left, right.
_MOVES = ((0, 0), (0, 1), (0, -1), (-1, 0), (1, 0))
_PLAYERS = 2
_OPPONENTS = ("random", "RULE_BASED")

Cell = tuple[int, int]


@ENV_REGISTRY.register("coin_race")
class CoinRaceEnv(SeededEnv):
    """Both players move at once; one who stands on the coin alone takes it, and a new one appears.

    A coin is worth 1 to its taker and -1 to the other, so that the return is the difference of the
    coins taken; a coin that both reach at once is lost to both. A player with `goal` coins ends
    the episode; at ``max_episode_steps`` it is truncated.

    The observation is float32 ``[2, 8]``, a row for each player as it sees the game: the way to the
    coin (x, y), the way to the other player, its own cell, its own and the other's share of `goal`.
    An action is one move for each player; reward float32 ``[2]``; infos are a list of two.

    With an `eval_opponent` there is one player against it: the observation is that player's row,
    float32 ``[8]``, the action its move, the reward float32 ``[1]``, and info is one dict.

    Attributes:
        players: The cells ``(x, y)`` of both; set them and `coin` to continue from a position.
        coin: The cell of the coin.

    Config keys:
        eval_opponent: ``'random'``, or ``'RULE_BASED'``, which goes straight to the coin.
        size: Cells along each side of the grid.
        goal: Coins that win.
        max_episode_steps: Moves after which the game is drawn.
    """

    config: Config = dict(
        player_num=_PLAYERS, eval_opponent=None, size=7, goal=5, max_episode_steps=100
    )

    observation_space: Space
    action_space: Space
    reward_space: Space
    players: list[Cell]
    coin: Cell

    def __init__(self, cfg: Config) -> None:
        super().__init__(cfg)
        if self._cfg["player_num"] != _PLAYERS:
            raise ConfigError(f"env.player_num is {self._cfg['player_num']}; CoinRaceEnv takes 2")
        if self._cfg["size"] < 2:
            raise ConfigError(f"env.size is {self._cfg['size']}; expected 2 cells or more")
        self._size: int = self._cfg["size"]
        self._goal: int = self._cfg["goal"]
        self._max_steps: int = self._cfg["max_episode_steps"]
        self._opponent: str | None = self._cfg["eval_opponent"]
        if self._opponent not in (None, *_OPPONENTS):
            raise ConfigError(
                f"env.eval_opponent is {self._opponent!r}; expected {' or '.join(_OPPONENTS)}, or "
                f"None for two players"
            )
        if self._opponent is None:
            self.observation_space = spaces.Box(-1.0, 1.0, (_PLAYERS, 8), np.float32)
            self.action_space = spaces.MultiDiscrete([len(_MOVES)] * _PLAYERS)
            self.reward_space = spaces.Box(-1.0, 1.0, (_PLAYERS,), np.float32)
        else:
            self.observation_space = spaces.Box(-1.0, 1.0, (8,), np.float32)
            self.action_space = spaces.Discrete(len(_MOVES))
            self.reward_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self) -> np.ndarray:  # type: ignore[override]
        self._begin_episode()
        last = self._size - 1
        self.players = [(0, 0), (last, last)]
        self._coins = [0, 0]
        self._steps = 0
        self._place_coin()
        return self._seen(self._obs())

    def step(self, action: Action) -> BaseEnvTimestep:  # type: ignore[override]
        moves = self._moves(action)
        self._steps += 1
        self.players = [self._moved(cell, move) for cell, move in zip(self.players, moves)]
        reward = np.zeros(_PLAYERS, np.float32)
        at_coin = [cell == self.coin for cell in self.players]
        if any(at_coin):
            if not all(at_coin):
                taker = at_coin.index(True)
                self._coins[taker] += 1
                reward[taker], reward[1 - taker] = 1, -1
            self._place_coin()
        terminated = max(self._coins) >= self._goal
        done = terminated or self._steps >= self._max_steps
        infos = self._infos(done, terminated)
        if self._opponent is not None:
            return BaseEnvTimestep(self._seen(self._obs()), reward[:1], done, infos[0])
        return BaseEnvTimestep(self._obs(), reward, done, infos)

    def _seen(self, obs: np.ndarray) -> np.ndarray:
        return obs if self._opponent is None else obs[0]

    def _moves(self, action: Action) -> list[int]:
        players = _PLAYERS if self._opponent is None else 1
        moves = self._whole_numbers(action, [len(_MOVES)] * players, "players")
        if self._opponent == "random":
            moves.append(int(self._rng.integers(len(_MOVES))))
        elif self._opponent is not None:
            moves.append(_straight_to_coin(*self._obs()[1, :2]))
        return moves

    def _moved(self, cell: Cell, move: int) -> Cell:
        last = self._size - 1
        dx, dy = _MOVES[move]
        return min(max(cell[0] + dx, 0), last), min(max(cell[1] + dy, 0), last)

    def _place_coin(self) -> None:
        """Draw a cell without a player."""
        taken = sorted({x * self._size + y for x, y in self.players})
        index = int(self._rng.integers(self._size**2 - len(taken)))
        for cell in taken:
            index += index >= cell
        self.coin = divmod(index, self._size)

    def _obs(self) -> np.ndarray:
        far = 1 / (self._size - 1)
        coin_x, coin_y = self.coin
        rows = []
        for player, (x, y) in enumerate(self.players):
            other_x, other_y = self.players[1 - player]
            rows.append(
                (
                    *((coin_x - x) * far, (coin_y - y) * far),
                    *((other_x - x) * far, (other_y - y) * far),
                    *(x * far, y * far),
                    *(self._coins[player] / self._goal, self._coins[1 - player] / self._goal),
                )
            )
        return np.array(rows, np.float32)

    def _infos(self, done: bool, terminated: bool) -> list[Info]:
        if not done:
            return [{}, {}]
        lead = float(self._coins[0] - self._coins[1])
        return [
            {
                "eval_episode_return": own,
                "result": "wins" if own > 0 else "losses" if own < 0 else "draws",
                "terminated": terminated,
                "truncated": not terminated,
            }
            for own in (lead, -lead)
        ]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._size}x{self._size})"

    __str__ = __repr__  # gymnasium.Env defines another one


def _straight_to_coin(x: float, y: float) -> int:
    """The move that shortens the longer part of the way."""
    if abs(x) >= abs(y):
        return _MOVES.index((1 if x > 0 else -1, 0)) if x else 0
    return _MOVES.index((0, 1 if y > 0 else -1))

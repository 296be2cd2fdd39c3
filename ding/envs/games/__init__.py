"""Small games for several players or agents: examples of their APIs, and to test what uses them."""

from ding.envs.games.coin_race import CoinRaceEnv
from ding.envs.games.grid_spread import GridSpreadEnv
from ding.envs.games.matrix_game import MatrixGameEnv

__all__ = ["CoinRaceEnv", "GridSpreadEnv", "MatrixGameEnv"]

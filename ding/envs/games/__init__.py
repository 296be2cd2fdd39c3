"""Small games and tasks of our own: examples of APIs, and to test what uses them."""

from ding.envs.games.bitflip import BitFlipEnv
from ding.envs.games.coin_race import CoinRaceEnv
from ding.envs.games.grid_spread import GridSpreadEnv
from ding.envs.games.gym_hybrid import GymHybridEnv
from ding.envs.games.matrix_game import MatrixGameEnv

__all__ = ["BitFlipEnv", "CoinRaceEnv", "GridSpreadEnv", "GymHybridEnv", "MatrixGameEnv"]

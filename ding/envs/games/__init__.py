"""Small games and tasks of this package, for examples and tests."""

from ding.envs.games.coin_race import CoinRaceEnv
from ding.envs.games.cooperative import GridSpreadEnv, MatrixGameEnv
from ding.envs.games.tasks import BitFlipEnv, GymHybridEnv

__all__ = ["BitFlipEnv", "CoinRaceEnv", "GridSpreadEnv", "GymHybridEnv", "MatrixGameEnv"]

"""Small games for several players, as examples of the battle API and to test what uses it."""

from ding.envs.games.coin_race import CoinRaceEnv

__all__ = ["CoinRaceEnv"]

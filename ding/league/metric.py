"""Skill ratings: TrueSkill for two players (Herbrich, Minka & Graepel, 2006), and Elo."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ding.league.shared_payoff import DRAWS, WINS, flat_outcomes
from ding.utils.errors import ConfigError

_NORMAL = NormalDist()


@dataclass(frozen=True)
class PlayerRating:
    """A Gaussian belief about a player's skill: mean and standard deviation."""

    mu: float
    sigma: float

    @property
    def exposure(self) -> float:
        """Conservative estimate of the skill for rankings, μ − 3σ."""
        return self.mu - 3 * self.sigma


class LeagueMetricEnv:
    """The parameters of TrueSkill, and the update of two ratings after games.

    Args:
        mu: Mean of a new player's rating.
        sigma: Standard deviation of a new player's rating.
        beta: Standard deviation of the performance in a game around the skill.
        tau: Standard deviation of the skill's drift between two games.
        draw_probability: Probability of a draw between equal players, in ``[0, 1)``.

    Raises:
        ConfigError: A value is out of range.
    """

    def __init__(
        self,
        mu: float = 0.0,
        sigma: float = 25 / 3,
        beta: float = 25 / 3 / 2,
        tau: float = 0.0,
        draw_probability: float = 0.02,
    ) -> None:
        if not (sigma > 0 and beta > 0 and tau >= 0 and 0 <= draw_probability < 1):
            raise ConfigError(
                f"a metric needs sigma > 0, beta > 0, tau >= 0 and 0 <= draw_probability < 1; got "
                f"sigma={sigma}, beta={beta}, tau={tau}, draw_probability={draw_probability}"
            )
        self.mu, self.sigma, self.beta, self.tau = mu, sigma, beta, tau
        self.draw_probability = draw_probability
        # A game is a draw if the absolute difference of the performances is below this margin.
        self._draw_margin = _NORMAL.inv_cdf((1 + draw_probability) / 2) * math.sqrt(2) * beta

    def create_rating(self, mu: float | None = None, sigma: float | None = None) -> PlayerRating:
        """Create a rating; the defaults are those of a new player."""
        return PlayerRating(self.mu if mu is None else mu, self.sigma if sigma is None else sigma)

    def rate_1vs1(
        self, home: PlayerRating, away: PlayerRating, result: Sequence[object]
    ) -> tuple[PlayerRating, PlayerRating]:
        """The ratings after the games in `result`, see `flat_outcomes`."""
        for outcome in flat_outcomes(result):
            if outcome == DRAWS:
                home, away = self._after_game(home, away, is_draw=True)
            elif outcome == WINS:
                home, away = self._after_game(home, away)
            else:
                away, home = self._after_game(away, home)
        return home, away

    def _after_game(
        self, winner: PlayerRating, loser: PlayerRating, is_draw: bool = False
    ) -> tuple[PlayerRating, PlayerRating]:
        winner_var, loser_var = (r.sigma**2 + self.tau**2 for r in (winner, loser))
        c = math.sqrt(2 * self.beta**2 + winner_var + loser_var)
        t, margin = (winner.mu - loser.mu) / c, self._draw_margin / c
        v, w = _draw_factors(t, margin) if is_draw else _win_factors(t, margin)
        return (
            _moved(winner.mu + winner_var / c * v, winner_var, c, w),
            _moved(loser.mu - loser_var / c * v, loser_var, c, w),
        )


def _moved(mu: float, var: float, c: float, w: float) -> PlayerRating:
    return PlayerRating(mu, math.sqrt(var * (1 - var / c**2 * w)))


def _win_factors(t: float, margin: float) -> tuple[float, float]:
    """v and w: shift of the mean and shrinkage of the variance of a truncated normal."""
    x = t - margin
    below = _cdf(x)
    # In the far tail, the quotient tends to -x, and both terms underflow.
    v = _pdf(x) / below if below > 1e-300 else -x
    return v, min(v * (v + x), 1.0)


def _draw_factors(t: float, margin: float) -> tuple[float, float]:
    distance = abs(t)
    low, high = -margin - distance, margin - distance
    mass = _cdf(high) - _cdf(low)
    if mass < 1e-300 or margin < 1e-8:
        # The interval is too narrow or too far out to integrate: its mass is at the near end.
        v, w = high, 1.0
    else:
        v = (_pdf(low) - _pdf(high)) / mass
        w = min(v**2 + (high * _pdf(high) - low * _pdf(low)) / mass, 1.0)
    return math.copysign(1.0, t) * v, w


def _pdf(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


#: Difference of ratings at which the stronger player's odds of winning are 10 to 1.
_ELO_SCALE = 400


def get_elo(rating0: float, rating1: float, result: str, k_factor: int = 32) -> tuple[int, int]:
    """Elo ratings (Elo, 1978) of two players after a game.

    Args:
        result: ``'wins'``, ``'draws'`` or ``'losses'`` of the first player.
        k_factor: Maximum change of a rating by one game.
    """
    (outcome,) = flat_outcomes([result])
    score = {WINS: 1.0, DRAWS: 0.5}.get(outcome, 0.0)
    expected = 1 / (1 + 10 ** ((rating1 - rating0) / _ELO_SCALE))
    change = k_factor * (score - expected)
    return round(rating0 + change), round(rating1 - change)


def get_elo_array(
    rating: np.ndarray, result: np.ndarray, game_count: np.ndarray, k_factor: int = 32
) -> np.ndarray:
    """Elo ratings of several players after all games between them, int64 ``[N]``.

    Args:
        rating: ``[N]``.
        result: Mean score of row against column, 1 for a win and 0.5 for a draw, ``[N, N]``.
        game_count: Number of games of row against column, ``[N, N]``.
        k_factor: As for `get_elo`.
    """
    rating = np.asarray(rating, dtype=np.float64)
    gap = rating[None, :] - rating[:, None]
    surprise = np.asarray(result, dtype=np.float64) - 1 / (1 + 10 ** (gap / _ELO_SCALE))
    change = (k_factor * surprise * game_count).sum(1)
    new: np.ndarray = np.round(rating + change).astype(np.int64)
    return new

import math

import pytest

from ding.league import LeagueMetricEnv, PlayerRating
from ding.utils import ConfigError, DataError

# The paper's constants, and what every implementation of it gives for a first game.
PAPER = dict(mu=25.0, sigma=25 / 3, beta=25 / 6, tau=25 / 300, draw_probability=0.1)


def test_known_values_of_a_first_win_and_draw():
    env = LeagueMetricEnv(**PAPER)
    new = env.create_rating()
    winner, loser = env.rate_1vs1(new, new, ["wins"])
    assert (winner.mu, winner.sigma) == pytest.approx((29.396, 7.171), abs=1e-3)
    assert (loser.mu, loser.sigma) == pytest.approx((20.604, 7.171), abs=1e-3)
    for rating in env.rate_1vs1(new, new, ["draws"]):
        assert (rating.mu, rating.sigma) == pytest.approx((25.0, 6.458), abs=1e-3)


def test_win_between_equals_by_hand():
    # No draws, sigma = beta = 1: c = 2, t = 0, v = sqrt(2/pi), w = v**2 = 2/pi.
    env = LeagueMetricEnv(mu=0, sigma=1, beta=1, tau=0, draw_probability=0)
    home, away = env.rate_1vs1(env.create_rating(), env.create_rating(), ["losses"])
    v = math.sqrt(2 / math.pi)
    assert away.mu == pytest.approx(v / 2)
    assert home.mu == pytest.approx(-v / 2)
    assert home.sigma == away.sigma == pytest.approx(math.sqrt(1 - v**2 / 4))


def test_draw_pulls_unequal_players_together_by_hand():
    # sigma = beta = 1, so c = 2; means 2 and 0, so t = 1; draws are an interval of no width:
    # v = -t, w = 1, each mean moves by sigma**2 / c * t = 1/2.
    env = LeagueMetricEnv(mu=0, sigma=1, beta=1, tau=0, draw_probability=0)
    home, away = env.rate_1vs1(PlayerRating(2, 1), PlayerRating(0, 1), ["draws"])
    assert (home.mu, away.mu) == pytest.approx((1.5, 0.5))
    assert home.sigma == pytest.approx(math.sqrt(3 / 4))
    mirrored = env.rate_1vs1(PlayerRating(0, 1), PlayerRating(2, 1), ["draws"])
    assert mirrored == (away, home)


def test_games_are_rated_one_after_the_other_and_may_be_nested():
    env = LeagueMetricEnv()
    home, away = env.create_rating(), env.create_rating()
    together = env.rate_1vs1(home, away, [["wins", "draws"], ["losses"]])
    for outcome in ("wins", "draws", "losses"):
        home, away = env.rate_1vs1(home, away, [outcome])
    assert together == (home, away)


@pytest.mark.parametrize("gap", [1e2, 1e4, -1e2, -1e4])
@pytest.mark.parametrize("outcome", ["wins", "draws", "losses"])
@pytest.mark.parametrize("draw_probability", [0.0, 1e-12, 0.02, 0.9])
def test_stays_finite_far_out(gap, outcome, draw_probability):
    env = LeagueMetricEnv(draw_probability=draw_probability)
    home, away = env.rate_1vs1(PlayerRating(gap, 0.5), PlayerRating(0, 0.5), [outcome])
    assert all(math.isfinite(r.mu) and 0 < r.sigma <= 0.5 for r in (home, away))
    assert home.mu - away.mu <= gap if outcome == "losses" else True


def test_exposure_grows_with_certainty():
    assert PlayerRating(10, 1).exposure == 7
    env = LeagueMetricEnv()
    assert env.create_rating(mu=3).exposure == pytest.approx(3 - 25)


def test_faults_are_named():
    with pytest.raises(ConfigError, match="draw_probability=1"):
        LeagueMetricEnv(draw_probability=1)
    env = LeagueMetricEnv()
    with pytest.raises(DataError, match="'won'"):
        env.rate_1vs1(env.create_rating(), env.create_rating(), ["won"])

import logging
from types import SimpleNamespace

import numpy as np
import pytest
from easydict import EasyDict

from ding.league.shared_payoff import BattleRecordDict, create_payoff
from ding.utils import ConfigError


def make_payoff(names="abc", decay=1.0, min_games=4):
    payoff = create_payoff(EasyDict(type="battle", decay=decay, min_win_rate_games=min_games))
    players = [SimpleNamespace(player_id=name) for name in names]
    for player in players:
        payoff.add_player(player)
    return payoff, players


def play(payoff, home, away, *result):
    return payoff.update({"player_id": [home, away], "result": list(result)})


def test_record_starts_at_zero_and_scales():
    record = BattleRecordDict()
    assert record == {"wins": 0, "draws": 0, "losses": 0, "games": 0}
    record["wins"] = record["games"] = 4
    assert (record * 0.5)["wins"] == 2
    assert record["wins"] == 4


def test_win_rates_from_both_sides():
    payoff, (a, b, _) = make_payoff()
    assert play(payoff, "b", "a", ["wins", "wins"], ["draws"], ["losses"])
    assert payoff[b, a] == pytest.approx([(2 + 0.5) / 4])
    assert payoff[a, b] == pytest.approx([(1 + 0.5) / 4])


def test_eight_games_are_enough_by_default():
    payoff = create_payoff(EasyDict(type="battle", decay=1.0))
    a, b = (SimpleNamespace(player_id=name) for name in "ab")
    payoff.add_player(a)
    payoff.add_player(b)
    play(payoff, "a", "b", ["wins"] * 7)
    assert payoff[a, b] == 0.5
    play(payoff, "a", "b", ["wins"])
    assert payoff[a, b] == 1


def test_half_until_enough_games():
    payoff, (a, b, c) = make_payoff(min_games=3)
    play(payoff, "a", "b", "wins", "wins")
    assert payoff[a, b] == 0.5
    play(payoff, "b", "a", "losses")
    assert payoff[a, b] == 1.0
    assert payoff[a, c] == 0.5


def test_decay_by_hand():
    payoff, (a, b, _) = make_payoff(decay=0.5, min_games=1)
    play(payoff, "a", "b", "wins", "losses", "wins")
    # wins 1 -> 0.5 -> 1.25; losses 1 -> 0.5; games 1 -> 1.5 -> 1.75
    assert payoff[a, b] == pytest.approx([1.25 / 1.75])


def test_shapes():
    payoff, (a, b, c) = make_payoff()
    assert payoff[[a, b], [a, b, c]].shape == (2, 3)
    assert payoff[a, [a, b, c]].shape == (3,)
    assert payoff[[a, b], c].shape == (2,)
    assert payoff[[a], []].size == 0
    assert isinstance(payoff[a, b], np.ndarray)
    assert payoff.players == [a, b, c]


def test_key_is_the_same_from_both_sides():
    payoff, _ = make_payoff()
    key, is_reversed = payoff.get_key("a", "b")
    assert payoff.get_key("b", "a") == (key, not is_reversed)


def test_games_against_oneself_are_accepted_and_not_kept():
    payoff, (a, *_) = make_payoff(min_games=1)
    assert play(payoff, "a", "a", "wins", "wins")
    assert payoff[a, a] == 0.5


@pytest.mark.parametrize(
    ("job_info", "cause"),
    [
        ({"player_id": ["a", "z"], "result": ["wins"]}, "'z'"),
        ({"player_id": ["a"], "result": ["wins"]}, "home, away"),
        ({"player_id": "ab", "result": ["wins"]}, "home, away"),
        ({"player_id": ["a", []], "result": ["wins"]}, r"\[\]"),
        ({"player_id": ["a", "b"], "result": ["wins", 3]}, "3"),
        ({"player_id": ["a", "b"], "result": {"wins": 1}}, "wins"),
        ({"player_id": ["a", "b"]}, "None"),
        ({}, "None"),
    ],
)
def test_nonsense_is_refused_as_a_whole(job_info, cause, caplog):
    payoff, _ = make_payoff()
    with caplog.at_level(logging.WARNING):
        assert payoff.update(job_info) is False
    assert cause.replace("\\", "") in caplog.text
    assert payoff.state_dict() == {}


def test_config_that_cannot_work_is_named():
    with pytest.raises(ConfigError, match=r"payoff\.type.*'chess'"):
        create_payoff(EasyDict(type="chess"))
    with pytest.raises(ConfigError, match="never counts as 8 games"):
        make_payoff(decay=0.8, min_games=8)
    with pytest.raises(ConfigError, match=r"payoff\.decay"):
        make_payoff(decay=1.5)


def test_state_round_trip():
    payoff, (a, b, _) = make_payoff()
    play(payoff, "a", "b", *["wins"] * 6)
    other, (a2, b2, _) = make_payoff()
    other.load_state_dict(payoff.state_dict())
    assert other[a2, b2] == payoff[a, b] == 1
    play(other, "a", "b", "losses")
    assert payoff[a, b] == 1

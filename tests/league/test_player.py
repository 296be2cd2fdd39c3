from collections import Counter

import numpy as np
import pytest
from easydict import EasyDict

from ding.league import LeagueMetricEnv, create_payoff, create_player
from ding.league.player import ActivePlayer, HistoricalPlayer, NaiveSpPlayer, pfsp
from ding.utils import PLAYER_REGISTRY, ConfigError, UnknownTypeError, set_pkg_seed

ENV = LeagueMetricEnv()
SECTIONS = dict(
    naive_sp_player=dict(branch_probs=dict(pfsp=0.5, sp=0.5)),
    main_player=dict(branch_probs=dict(pfsp=0.5, sp=0.5)),
    main_exploiter=dict(branch_probs=dict(main_players=1.0)),
    league_exploiter=dict(branch_probs=dict(pfsp=1.0)),
)


class Arena:
    """Players with a payoff in which any win rate can be arranged."""

    def __init__(self):
        self.payoff = create_payoff(EasyDict(type="battle", decay=1.0, min_win_rate_games=1))

    def add(self, player_type, name, **section):
        cfg = EasyDict({**dict(one_phase_step=100, strong_win_rate=0.7), **SECTIONS[player_type]})
        cfg.update(section)
        player = create_player(
            EasyDict(), player_type, cfg, "default", self.payoff, f"ckpt/{name}.pth", name, 0,
            ENV.create_rating(),
        )  # fmt: skip
        self.payoff.add_player(player)
        return player

    def freeze(self, player):
        player.total_agent_step += 1
        frozen = player.snapshot(ENV)
        self.payoff.add_player(frozen)
        return frozen

    def play(self, home, away, wins, losses):
        self.payoff.update(
            {
                "player_id": [home.player_id, away.player_id],
                "result": ["wins"] * wins + ["losses"] * losses,
            }
        )


@pytest.fixture
def arena():
    set_pkg_seed(0, use_cuda=False)
    return Arena()


def opponents(player, n=300):
    return Counter(player.get_job()["opponent"].player_id for _ in range(n))


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [
        ("squared", [1 / 1.25, 0.25 / 1.25, 0]),
        ("linear", [1 / 1.5, 0.5 / 1.5, 0]),
        ("linear_capped", [0.5, 0.5, 0]),
        ("variance", [0, 1, 0]),
    ],
)
def test_pfsp_by_hand(weighting, expected):
    assert pfsp(np.array([0, 0.5, 1]), weighting) == pytest.approx(expected)


def test_pfsp_without_a_preference_and_with_nonsense():
    assert pfsp(np.ones(4), "squared") == pytest.approx([0.25] * 4)
    for win_rates in ([], [1.5], [float("nan")], [[0.5]]):
        with pytest.raises(ValueError, match="win_rates"):
            pfsp(np.array(win_rates), "squared")
    with pytest.raises(ValueError, match="cubed"):
        pfsp(np.ones(1), "cubed")


def test_naive_sp_meets_itself_and_hard_copies(arena):
    player = arena.add("naive_sp_player", "p")
    assert opponents(player, 20) == {"p": 20}
    easy, hard = arena.freeze(player), arena.freeze(player)
    arena.play(player, easy, 10, 0)
    arena.play(player, hard, 0, 10)
    met = opponents(player)
    assert set(met) == {"p", hard.player_id}
    assert 100 < met["p"] < 200


def test_choices_follow_the_seed():
    runs = []
    for seed in (1, 1, 2):
        set_pkg_seed(seed, use_cuda=False)
        arena = Arena()
        player = arena.add("naive_sp_player", "p")
        arena.freeze(player)
        runs.append([player.get_job()["opponent"].player_id for _ in range(50)])
    assert runs[0] == runs[1] != runs[2]


def test_trained_enough(arena):
    player = arena.add("naive_sp_player", "p")
    player.total_agent_step = 99
    assert not player.is_trained_enough()
    player.total_agent_step = 150
    assert not player.is_trained_enough(), "there is no opponent that it beats"
    frozen = arena.freeze(player)
    arena.play(player, frozen, 6, 4)
    assert not player.is_trained_enough()
    arena.play(player, frozen, 10, 0)
    assert player.is_trained_enough()
    assert not player.is_trained_enough(lambda p: p is player)
    player.start_phase()
    assert not player.is_trained_enough()
    player.total_agent_step += 200
    assert player.is_trained_enough(lambda p: False)


def test_snapshot(arena):
    player = arena.add("naive_sp_player", "p")
    player.total_agent_step, player.rating = 7, ENV.create_rating(mu=4, sigma=1)
    frozen = player.snapshot(ENV)
    assert isinstance(frozen, HistoricalPlayer)
    assert not isinstance(frozen, ActivePlayer)
    assert frozen.parent_id == "p" != frozen.player_id
    assert frozen.checkpoint_path == "ckpt/p_7.pth"
    assert (frozen.total_agent_step, frozen.category) == (7, "default")
    assert frozen.rating == ENV.create_rating(mu=4)
    assert frozen.payoff is player.payoff


def test_eval_difficulty(arena):
    player = arena.add("naive_sp_player", "p", eval_opponent_difficulty=["easy", "hard"])
    assert player.get_job(eval_flag=True) == {"opponent": "easy"}
    assert player.increment_eval_difficulty()
    assert player.get_job(eval_flag=True) == {"opponent": "hard"}
    assert not player.increment_eval_difficulty()


def test_state_round_trip_keeps_the_draws(arena):
    player = arena.add("naive_sp_player", "p")
    arena.freeze(player)
    opponents(player, 10)
    state = player.state_dict()
    expected = [player.get_job()["opponent"] for _ in range(30)]
    player.total_agent_step = 999
    player.load_state_dict(state)
    assert player.total_agent_step == 1
    assert [player.get_job()["opponent"] for _ in range(30)] == expected


@pytest.mark.parametrize(
    ("section", "cause"),
    [
        (dict(branch_probs=dict(pfsp=0.5, sp=0.4)), "add up to 1"),
        (dict(branch_probs=dict(pfsp=1.5, sp=-0.5)), ">= 0"),
        (dict(branch_probs=dict(psfp=1.0)), "_psfp_branch"),
    ],
)
def test_wrong_branches_are_named(arena, section, cause):
    with pytest.raises(ConfigError, match=cause):
        arena.add("naive_sp_player", "p", **section)


def test_missing_keys_are_named(arena):
    with pytest.raises(ConfigError, match="one_phase_step, branch_probs"):
        NaiveSpPlayer(
            EasyDict(strong_win_rate=1), "c", arena.payoff, "", "p", 0, ENV.create_rating()
        )


def test_unknown_type_and_one_of_the_users_own():
    with pytest.raises(UnknownTypeError, match="naive_sp_player"):
        create_player(EasyDict(), "naive_player")

    @PLAYER_REGISTRY.register("one_who_waits", force_overwrite=True)
    class OneWhoWaits:
        pass

    try:
        assert isinstance(create_player(EasyDict(), "one_who_waits"), OneWhoWaits)
    finally:
        del PLAYER_REGISTRY["one_who_waits"]


class TestRolesOfAlphaStar:
    def test_main_player_against_another_main(self, arena):
        player = arena.add("main_player", "p", branch_probs=dict(sp=1.0))
        other = arena.add("main_player", "q")
        assert set(opponents(player, 40)) == {"p", "q"}
        frozen = arena.freeze(other)
        arena.play(player, other, 1, 9)
        assert set(opponents(player, 40)) == {"p", frozen.player_id}

    def test_main_player_verifies_against_exploiters_that_beat_it(self, arena):
        player = arena.add("main_player", "p", branch_probs=dict(verification=1.0))
        exploiter = arena.add("main_exploiter", "e")
        assert set(opponents(player, 20)) == {"p"}
        frozen = arena.freeze(exploiter)
        arena.play(player, frozen, 1, 9)
        assert set(opponents(player, 20)) == {frozen.player_id}
        arena.play(player, frozen, 40, 0)
        assert set(opponents(player, 20)) == {"p"}

    def test_main_player_verifies_against_what_it_forgot(self, arena):
        player = arena.add("main_player", "p", branch_probs=dict(verification=1.0))
        copies = [arena.freeze(player) for _ in range(4)]
        for frozen, wins in zip(copies, (4, 10, 6, 5)):
            arena.play(player, frozen, wins, 10 - wins)
        # 0.4 against the oldest, then 1.0, then ever less, as is natural: cut after the second.
        assert set(opponents(player, 50)) == {copies[0].player_id}

    def test_main_exploiter(self, arena):
        exploiter = arena.add("main_exploiter", "e")
        with pytest.raises(ConfigError, match="needs a main_player"):
            exploiter.get_job()
        main = arena.add("main_player", "p")
        assert set(opponents(exploiter, 20)) == {"p"}
        arena.play(exploiter, main, 0, 10)
        assert set(opponents(exploiter, 20)) == {"p"}, "there is no copy yet"
        frozen = arena.freeze(main)
        assert set(opponents(exploiter, 20)) == {frozen.player_id}
        exploiter.total_agent_step = 150
        assert not exploiter.is_trained_enough()
        arena.play(exploiter, main, 40, 0)
        assert exploiter.is_trained_enough()
        assert exploiter.mutate({"reset_checkpoint_path": "start.pth"}) == "start.pth"

    def test_league_exploiter(self, arena):
        exploiter = arena.add("league_exploiter", "x")
        frozen = [arena.freeze(arena.add("main_player", name)) for name in "pq"]
        arena.play(exploiter, frozen[0], 10, 0)
        assert set(opponents(exploiter)) == {frozen[1].player_id}
        info = {"reset_checkpoint_path": "start.pth"}
        resets = Counter(exploiter.mutate(info) for _ in range(400))
        assert 60 < resets["start.pth"] < 140
        assert arena.add("main_player", "m").mutate(info) is None

import json
import os
from pathlib import Path

import pytest
from easydict import EasyDict

from ding.league import BaseLeague, OneVsOneLeague, create_league
from ding.league.player import HistoricalPlayer
from ding.utils import (
    CheckpointError,
    CheckpointNotFoundError,
    ConfigError,
    UnknownTypeError,
    read_file,
    save_file,
    set_pkg_seed,
)

ROLE = dict(one_phase_step=10, strong_win_rate=0.7)


def make_league(**changes):
    set_pkg_seed(0, use_cuda=False)
    return create_league(EasyDict(league_type="one_vs_one", path_policy="policy", **changes))


def two_players(**changes):
    return make_league(active_players=dict(naive_sp_player=2), **changes)


def learner_saves(player, content="weights"):
    os.makedirs("policy", exist_ok=True)
    Path(player.checkpoint_path).write_text(content)


def reaches(league, player, iteration):
    league.update_active_player({"player_id": player.player_id, "train_iteration": iteration})


def test_defaults():
    cfg = OneVsOneLeague.default_config()
    assert cfg.cfg_type == "OneVsOneLeagueDict"
    assert cfg.naive_sp_player.branch_probs == dict(pfsp=0.5, sp=0.5)
    assert cfg.payoff == dict(type="battle", decay=0.99, min_win_rate_games=8)
    cfg.payoff.decay = 0
    assert OneVsOneLeague.default_config().payoff.decay == 0.99
    assert len(create_league(OneVsOneLeague.default_config()).active_players) == 1
    assert os.listdir() == ["policy"], "learners write their checkpoints there"
    assert not os.listdir("policy"), "a league writes nothing before there is something to keep"


def test_folder_that_cannot_be_made():
    Path("policy").write_text("")
    with pytest.raises(ConfigError, match="path_policy='policy' cannot be made"):
        make_league()


def test_job_against_itself_and_against_a_copy():
    league = make_league()
    (player,) = league.active_players
    job = league.get_job_info(player.player_id)
    assert job == {
        "agent_num": 2,
        "launch_player": player.player_id,
        "player_id": [player.player_id] * 2,
        "checkpoint_path": [player.checkpoint_path] * 2,
        "player_active_flag": [True, True],
    }
    learner_saves(player)
    assert league.judge_snapshot(player.player_id, force=True)
    (frozen,) = league.historical_players
    jobs = [league.get_job_info() for _ in range(40)]
    mixed = [job for job in jobs if job["player_id"][1] == frozen.player_id]
    assert 0 < len(mixed) < 40
    assert mixed[0]["player_active_flag"] == [True, False]
    assert mixed[0]["checkpoint_path"] == [player.checkpoint_path, frozen.checkpoint_path]


def test_evaluation_job_has_one_player_and_an_opponent_of_the_env():
    league = make_league(naive_sp_player=dict(eval_opponent_difficulty=["novice", "expert"]))
    (player,) = league.active_players
    job = league.get_job_info(player.player_id, eval_flag=True)
    assert (job["agent_num"], job["player_id"]) == (1, [player.player_id])
    assert (job["player_active_flag"], job["eval_opponent"]) == ([True], "novice")
    player.increment_eval_difficulty()
    assert league.get_job_info(eval_flag=True)["eval_opponent"] == "expert"


def test_jobs_go_round():
    league = two_players(player_category=["default", "zerg"])
    assert len(league.active_players_ids) == len(set(league.active_players_ids)) == 4
    launched = [league.get_job_info()["launch_player"] for _ in range(8)]
    assert launched == league.active_players_ids * 2


def test_snapshot_by_phase():
    league = make_league()
    (player,) = league.active_players
    learner_saves(player, "early")
    reaches(league, player, 9)
    assert not league.judge_snapshot(player.player_id)
    reaches(league, player, 20)
    assert league.judge_snapshot(player.player_id)
    learner_saves(player, "late")
    (frozen,) = league.historical_players
    assert Path(frozen.checkpoint_path).read_text() == "early"
    assert (frozen.parent_id, frozen.total_agent_step) == (player.player_id, 20)
    assert frozen in league.payoff.players
    assert league.get_player_by_id(frozen.player_id) is frozen
    assert not league.judge_snapshot(player.player_id), "a new phase has begun"
    assert sorted(os.listdir("policy")) == sorted(
        os.path.basename(p.checkpoint_path) for p in (player, frozen)
    )


def test_branches_replace_the_defaults():
    league = make_league(naive_sp_player=dict(branch_probs=dict(sp=1.0)))
    (player,) = league.active_players
    learner_saves(player)
    league.judge_snapshot(player.player_id, force=True)
    for _ in range(20):
        assert league.get_job_info()["player_id"] == [player.player_id] * 2


def test_one_copy_per_iteration():
    league = make_league()
    (player,) = league.active_players
    learner_saves(player)
    assert league.judge_snapshot(player.player_id, force=True)
    assert not league.judge_snapshot(player.player_id, force=True)
    assert len(league.historical_players) == 1


def test_failed_copy_leaves_the_league_as_it_was():
    league = make_league()
    (player,) = league.active_players
    reaches(league, player, 20)
    with pytest.raises(CheckpointNotFoundError, match="naive_sp_player_default_0"):
        league.judge_snapshot(player.player_id)
    assert league.historical_players == []
    os.makedirs(player.checkpoint_path)
    with pytest.raises(CheckpointError, match="cannot read policy/naive_sp_player_default_0"):
        league.judge_snapshot(player.player_id)
    os.rmdir(player.checkpoint_path)
    learner_saves(player)
    blocker = Path(player.snapshot(league.metric_env).checkpoint_path)
    blocker.mkdir()
    with pytest.raises(CheckpointError):
        league.judge_snapshot(player.player_id)
    assert sorted(os.listdir("policy")) == sorted([blocker.name, Path(player.checkpoint_path).name])
    blocker.rmdir()
    assert league.judge_snapshot(player.player_id)


def test_finished_games_change_payoff_and_ratings():
    league = two_players()
    home, away = league.active_players
    league.finish_job({"player_id": [home.player_id, away.player_id], "result": [["wins"] * 12]})
    assert league.payoff[home, away] == 1
    assert home.rating.mu > 0 > away.rating.mu
    assert home.rating.sigma < league.metric_env.sigma
    assert list(league.player_rank()) == [home.player_id, away.player_id]
    assert league.player_rank()[home.player_id] == home.rating.exposure
    first, *rows = league.player_rank(string=True).splitlines()
    assert first.split() == ["player", "rating"]
    assert [row.split()[0] for row in rows] == [home.player_id, away.player_id]


@pytest.mark.parametrize(
    "job_info",
    [
        {"player_id": ["naive_sp_player_default_0"] * 2, "result": ["wins"]},
        {"agent_num": 1, "player_id": ["naive_sp_player_default_0"], "result": ["wins"]},
        {"player_id": ["naive_sp_player_default_0", "missing"], "result": ["wins"]},
        {
            "player_id": ["naive_sp_player_default_0", "naive_sp_player_default_1"],
            "result": ["wins", "?"],
        },
        {},
    ],
)
def test_games_without_results_change_nothing(job_info):
    league = two_players()
    before = league.state_dict()
    league.finish_job(job_info)
    assert league.state_dict() == before


def test_unknown_players_are_named():
    league = make_league()
    with pytest.raises(UnknownTypeError, match=r"missing.*naive_sp_player_default_0"):
        league.get_player_by_id("missing")
    (player,) = league.active_players
    learner_saves(player)
    league.judge_snapshot(player.player_id, force=True)
    with pytest.raises(UnknownTypeError, match="not an active player"):
        league.get_job_info(league.historical_players[0].player_id)


def run_a_while(league, start):
    """Games and copies as a commander would have them; returns whom each job brought together."""
    met = []
    for step in range(start, start + 20):
        job = league.get_job_info()
        met.append(tuple(job["player_id"]))
        league.finish_job({**job, "result": ["wins" if step % 3 else "draws"] * 3})
        player = league.get_player_by_id(job["launch_player"])
        learner_saves(player, str(step))
        reaches(league, player, step)
        league.judge_snapshot(player.player_id)
    return met


def test_resumed_league_goes_on_as_the_uninterrupted_one():
    quick = dict(naive_sp_player=dict(one_phase_step=3))
    league = two_players(**quick)
    run_a_while(league, 0)
    assert league.historical_players
    save_file("league.pth", league.state_dict())
    state = read_file("league.pth")
    assert state == json.loads(json.dumps(league.state_dict()))
    expected = run_a_while(league, 20)

    resumed = two_players(**quick)
    resumed.load_state_dict(state)
    assert run_a_while(resumed, 20) == expected
    assert resumed.state_dict() == league.state_dict()
    assert all(isinstance(p, HistoricalPlayer) for p in resumed.historical_players)


def test_state_of_other_players_is_refused():
    league = make_league()
    before = league.state_dict()
    with pytest.raises(ConfigError, match="naive_sp_player_default_1"):
        league.load_state_dict(two_players().state_dict())
    assert league.state_dict() == before


class TestPretrained:
    CFG = dict(
        use_pretrain=True,
        use_pretrain_init_historical=True,
        pretrain_checkpoint_path=dict(default="start.pth"),
    )

    def test_players_and_first_opponent_start_from_it(self):
        Path("start.pth").write_text("start")
        league = two_players(**self.CFG)
        (frozen,) = league.historical_players
        for player in (*league.active_players, frozen):
            assert Path(player.checkpoint_path).read_text() == "start"

    def test_resuming_keeps_what_was_learned(self):
        Path("start.pth").write_text("start")
        league = two_players(**self.CFG)
        run_a_while(league, 0)
        learned = Path(league.active_players[0].checkpoint_path).read_text()
        resumed = two_players(**self.CFG)
        resumed.load_state_dict(league.state_dict())
        assert Path(resumed.active_players[0].checkpoint_path).read_text() == learned
        assert Path(resumed.historical_players[0].checkpoint_path).read_text() == "start"
        assert len(resumed.payoff.players) == len(league.payoff.players)

    def test_exploiter_is_reset_after_a_copy(self):
        Path("start.pth").write_text("start")
        league = make_league(
            **self.CFG,
            active_players=dict(main_player=1, main_exploiter=1),
            main_player=dict(ROLE, branch_probs=dict(pfsp=0.5, sp=0.5)),
            main_exploiter=dict(ROLE, branch_probs=dict(main_players=1.0)),
        )
        main, exploiter = league.active_players
        for player in (main, exploiter):
            learner_saves(player, "learned")
            reaches(league, player, 20)
            assert league.judge_snapshot(player.player_id)
        assert Path(main.checkpoint_path).read_text() == "learned"
        assert Path(exploiter.checkpoint_path).read_text() == "start"
        assert Path(league.historical_players[-1].checkpoint_path).read_text() == "learned"

    def test_missing_file_is_named(self):
        with pytest.raises(CheckpointNotFoundError, match=r"pretrain_checkpoint_path\.default"):
            two_players(**self.CFG)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        (dict(active_players=dict(main_player=1)), "league.main_player"),
        (dict(active_players=dict(naive_sp_player=0)), "needs players"),
        (dict(active_players={}), "needs players"),
        (dict(payoff=dict(decay=0.5)), "min_win_rate_games"),
        (dict(metric=dict(sigma=0)), "sigma"),
        (dict(use_pretrain_init_historical=True), "use_pretrain"),
    ],
)
def test_configs_that_cannot_work_are_named(changes, cause):
    with pytest.raises(ConfigError, match=cause):
        make_league(**changes)


def test_league_of_the_users_own():
    class Fixed(BaseLeague):
        config = dict(OneVsOneLeague.config, league_type="fixed")

        def _get_job_info(self, player, eval_flag=False):
            return {"launch_player": player.player_id}

    assert Fixed(Fixed.default_config()).get_job_info() == {
        "launch_player": "naive_sp_player_default_0"
    }


def test_unknown_and_missing_type_are_named():
    with pytest.raises(UnknownTypeError, match="did you mean 'one_vs_one'"):
        create_league(EasyDict(league_type="one_vs_1"))
    with pytest.raises(ConfigError, match="league_type"):
        create_league(EasyDict())

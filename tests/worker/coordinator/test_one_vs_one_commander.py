import json
import os

import pytest
from easydict import EasyDict

from ding.league import OneVsOneLeague
from ding.policy import DQNPolicy
from ding.utils import LEAGUE_REGISTRY, deep_merge_dicts, durations
from ding.utils.errors import ConfigError
from ding.worker import create_parallel_commander
from ding.worker.coordinator.one_vs_one_parallel_commander import OneVsOneCommander
from tests.fakes import Writer

INTERVAL = 5
PLAYER = dict(
    one_phase_step=10,
    branch_probs=dict(sp=1.0),
    strong_win_rate=0.7,
    eval_opponent_difficulty=["random"],
)


def league(**player):
    return dict(naive_sp_player=PLAYER | player)


def made(tmp_path, league_cfg=None, **commander):
    own = dict(
        type="one_vs_one",
        collector_task_space=2,
        learner_task_space=2,
        eval_interval=INTERVAL,
        path_policy=str(tmp_path),
        league=league_cfg or league(),
    )
    policy = dict(
        type="dqn_command",
        learn=dict(learner=dict(train_iterations=1000)),
        collect=dict(collector=dict(type="marine")),
        other=dict(replay_buffer=dict(type="advanced"), commander=own | commander),
    )
    env = dict(type="coin_race", evaluator_env_num=2, n_evaluator_episode=4, stop_value=3)
    cfg = dict(exp_name="run", env=env, policy=deep_merge_dicts(DQNPolicy.default_config(), policy))
    commander = create_parallel_commander(EasyDict(cfg))
    commander.clock_now = 0.0
    commander.clock = lambda: commander.clock_now
    return commander


def publish(tmp_path, learner_task, content=b"weights"):
    (tmp_path / learner_task["policy_id"]).write_bytes(content)


def played(commander, result):
    task = commander.get_collector_task()
    commander.finish_collector_task(
        task["task_id"], {"eval_flag": False, "step_count": 20, "game_result": result}
    )
    return task


def finish_evaluation(commander, reward_mean):
    commander.clock_now += INTERVAL
    task = commander.get_collector_task()
    assert task["collector_cfg"]["eval_flag"]
    info = {"eval_flag": True, "reward_mean": reward_mean, "policy_iter": 5}
    return commander.finish_collector_task(task["task_id"], info), task["collector_cfg"]


def test_defaults():
    cfg = OneVsOneCommander.default_config()
    assert (cfg.collector_task_space, cfg.learner_task_space, cfg.eval_interval) == (2, 1, 60)


def test_a_player_plays_itself_at_first(tmp_path):
    commander = made(tmp_path)
    assert commander.get_collector_task() is None
    learner_task = commander.get_learner_task()
    assert commander.get_learner_task() is None  # there is one player
    task = commander.get_collector_task()
    own = task["collector_cfg"]
    assert task["buffer_id"] == learner_task["buffer_id"]
    assert own["agent_num"] == 2
    assert own["policy_update_path"] == [learner_task["policy_id"]] * 2
    assert own["policy_update_flag"] == [True, True]
    assert own["collect_setting"] == {"eps": pytest.approx(0.95)}
    assert own["env"].get("eval_opponent") is None
    json.dumps(task)


def test_the_weights_of_two_runs_in_one_folder_differ(tmp_path):
    first, second = (made(tmp_path).get_learner_task() for _ in range(2))
    assert first["policy_id"] != second["policy_id"]
    assert os.path.basename(first["policy_id"]) == first["policy_id"]


def test_snapshots_are_opponents_that_do_not_learn(tmp_path):
    commander = made(tmp_path, league(branch_probs=dict(pfsp=1.0)))
    learner_task = commander.get_learner_task()
    task_id = learner_task["task_id"]
    commander.update_learner_info(task_id, {"learner_step": 20})
    assert commander.league.historical_players == []  # there are no weights yet
    publish(tmp_path, learner_task)
    commander.update_learner_info(task_id, {"learner_step": 21})
    (snapshot,) = commander.league.historical_players
    name = os.path.basename(snapshot.checkpoint_path)
    assert (tmp_path / name).read_bytes() == b"weights"
    assert commander.weights_files() == [learner_task["policy_id"], name]

    own = commander.get_collector_task()["collector_cfg"]
    assert own["policy_update_path"] == [learner_task["policy_id"], name]
    assert own["policy_update_flag"] == [True, False]


def test_snapshots_are_kept_where_the_run_has_its_weights(tmp_path):
    commander, kept = made(tmp_path), []
    commander.keep_weights = lambda name, as_name: kept.append((name, as_name))
    learner_task = commander.get_learner_task()
    commander.update_learner_info(learner_task["task_id"], {"learner_step": 20})
    assert len(commander.league.historical_players) == 1
    assert kept == [tuple(commander.weights_files())]


def test_a_league_that_copies_checkpoints_itself_does_so(tmp_path, monkeypatch):
    copies = []

    @LEAGUE_REGISTRY.register("copying", force_overwrite=True)
    class Copying(OneVsOneLeague):
        @staticmethod
        def save_checkpoint(src_checkpoint, dst_checkpoint):
            copies.append((src_checkpoint, dst_checkpoint))

    commander = made(tmp_path, {**league(), "league_type": "copying"})
    commander.keep_weights = lambda name, as_name: None
    learner_task = commander.get_learner_task()
    commander.update_learner_info(learner_task["task_id"], {"learner_step": 20})
    assert [list(map(os.path.basename, copy)) for copy in copies] == [commander.weights_files()]


def test_games_count_in_the_league(tmp_path):
    commander = made(tmp_path, league(branch_probs=dict(pfsp=1.0)))
    learner_task = commander.get_learner_task()
    publish(tmp_path, learner_task)
    commander.update_learner_info(learner_task["task_id"], {"learner_step": 20})
    (player,) = commander.league.active_players
    (snapshot,) = commander.league.historical_players
    played(commander, ["wins"] * 9 + ["losses"])
    assert commander.league.payoff[player, snapshot] == pytest.approx(0.9, abs=0.02)
    assert player.rating.mu > snapshot.rating.mu
    played(commander, [])
    played(commander, ["nonsense"])
    played(commander, None)
    assert commander.league.payoff[player, snapshot] == pytest.approx(0.9, abs=0.02)
    # Strong against it after one phase: the next is kept.
    commander.update_learner_info(learner_task["task_id"], {"learner_step": 31})
    assert len(commander.league.historical_players) == 2


def test_a_snapshot_that_cannot_be_written_is_reported_and_tried_again_later(tmp_path, caplog):
    commander = made(tmp_path)
    learner_task = commander.get_learner_task()
    weights = tmp_path / learner_task["policy_id"]
    weights.mkdir()
    for step in (20, 21):
        commander.update_learner_info(learner_task["task_id"], {"learner_step": step})
    assert caplog.text.count("no snapshot of naive_sp_player_default_0 was kept") == 1
    weights.rmdir()
    publish(tmp_path, learner_task)
    commander.clock_now += durations.SNAPSHOT_RETRY
    commander.update_learner_info(learner_task["task_id"], {"learner_step": 22})
    assert len(commander.league.historical_players) == 1


def test_evaluations_are_against_what_the_environment_offers(tmp_path):
    commander = made(tmp_path)
    learner_task = commander.get_learner_task()
    converged, own = finish_evaluation(commander, 2.9)
    assert not converged
    assert own["agent_num"] == 1
    assert own["policy_update_path"] == [learner_task["policy_id"]]
    assert own["env"]["eval_opponent"] == "random"
    assert own["env"]["n_evaluator_episode"] == 4
    assert commander.get_collector_task()["collector_cfg"]["env"].get("eval_opponent") is None
    assert finish_evaluation(commander, 3.0)[0] is True
    assert commander.converged_reason


def test_only_the_hardest_opponent_means_convergence(tmp_path):
    commander = made(tmp_path, league(eval_opponent_difficulty=["random", "rule"]))
    commander.get_learner_task()
    assert finish_evaluation(commander, 4.0)[0] is False
    converged, own = finish_evaluation(commander, 0.0)
    assert not converged
    assert own["env"]["eval_opponent"] == "rule"
    assert finish_evaluation(commander, 4.0)[0]


def test_learners_of_several_players_name_their_player(tmp_path):
    commander = made(tmp_path, {**league(), "active_players": {"naive_sp_player": 2}})
    names = [commander.get_learner_task()["learner_cfg"]["player_id"] for _ in range(2)]
    assert names == commander.league.active_players_ids
    assert "player_id" not in made(tmp_path).get_learner_task()["learner_cfg"]


@pytest.mark.parametrize("players", [1, 2])
def test_the_curves_of_several_players_name_their_player(tmp_path, players):
    commander = made(tmp_path, {**league(), "active_players": {"naive_sp_player": players}})
    commander.tb_logger = writer = Writer()
    for _ in range(players):
        commander.get_learner_task()
    for _ in range(players):
        played(commander, ["wins"])
    for _ in range(players):
        finish_evaluation(commander, 1.0)
    ids = commander.league.active_players_ids
    endings = [f"_{player_id}" for player_id in ids] if players > 1 else [""]
    returns = [tag for tag in writer.rows if tag.endswith(("/reward_mean", "/envstep_count"))]
    assert returns == [
        *(f"collector{end}_{by}/envstep_count" for end in endings for by in ("iter", "step")),
        *(f"evaluator{end}_{by}/reward_mean" for end in endings for by in ("iter", "step")),
    ]


def test_players_take_turns(tmp_path):
    league_cfg = {**league(), "active_players": {"naive_sp_player": 2}}
    commander = made(tmp_path, league_cfg)
    first = commander.get_learner_task()
    assert commander.get_collector_task() is None  # the other may be an opponent
    second = commander.get_learner_task()
    assert first["buffer_id"] != second["buffer_id"]
    tasks = [commander.get_collector_task() for _ in range(2)]
    for learner_task, task in zip((first, second), tasks):
        assert task["buffer_id"] == learner_task["buffer_id"]
        assert task["collector_cfg"]["policy_update_path"][0] == learner_task["policy_id"]


@pytest.mark.parametrize("collectors", [1, 2, 3])
def test_all_players_get_samples_and_evaluations_between_long_tasks(tmp_path, collectors):
    league_cfg = {**league(), "active_players": {"naive_sp_player": 2}}
    commander = made(tmp_path, league_cfg, collector_task_space=collectors)
    learners = {commander.get_learner_task()["buffer_id"] for _ in range(2)}
    works, seen = [], {True: [], False: []}
    for _ in range(8):
        while (task := commander.get_collector_task()) is not None:
            is_eval = task["collector_cfg"]["eval_flag"]
            seen[is_eval].append(task["buffer_id"])
            if is_eval:
                report = {"reward_mean": 0.0, "policy_iter": 1}
                commander.finish_collector_task(task["task_id"], report)
            else:
                works.append(task)
        at_work = [task["buffer_id"] for task in works]
        assert collectors == 1 or set(at_work) == learners
        commander.clock_now += INTERVAL
        commander.finish_collector_task(works.pop(0)["task_id"], {})  # for the evaluation
    for buffers in seen.values():
        assert abs(2 * buffers.count(buffers[0]) - len(buffers)) <= 1


def test_a_player_gets_a_learner_again(tmp_path):
    commander = made(tmp_path)
    first = commander.get_learner_task()
    commander.notify_fail_learner_task(first)
    second = commander.get_learner_task()
    assert (second["policy_id"], second["buffer_id"]) == (first["policy_id"], first["buffer_id"])
    buffer_id = commander.finish_learner_task(second["task_id"], {"learner_step": 5})
    assert buffer_id == first["buffer_id"]
    third = commander.get_learner_task()
    assert third["policy_id"] == first["policy_id"]
    assert third["buffer_id"] != first["buffer_id"]  # that one is closed
    commander.finish_learner_task(third["task_id"], {"learner_step": 1000})
    assert commander.get_learner_task() is None
    assert commander.get_collector_task()["collector_cfg"]["eval_flag"]


def test_goes_on_from_its_state(tmp_path):
    commander = made(tmp_path, league(branch_probs=dict(pfsp=1.0)))
    learner_task = commander.get_learner_task()
    publish(tmp_path, learner_task)
    commander.update_learner_info(learner_task["task_id"], {"learner_step": 20})
    played(commander, ["wins"] * 10)
    state = json.loads(json.dumps(commander.state_dict()))

    other = made(tmp_path, league(branch_probs=dict(pfsp=1.0)))
    other.load_state_dict(state)
    again = other.get_learner_task()
    assert {**again, "task_id": ""} == {**learner_task, "task_id": ""}
    assert other.weights_files() == commander.weights_files()
    assert other.state_dict()["trainees"] == commander.state_dict()["trainees"]
    player, snapshot = other.league.active_players[0], other.league.historical_players[0]
    assert other.league.payoff[player, snapshot] > 0.7
    other.update_learner_info(again["task_id"], {"learner_step": 21})
    assert len(other.league.historical_players) == 1


def test_goes_on_from_a_state_of_before_any_learner(tmp_path):
    other = made(tmp_path)
    other.load_state_dict(made(tmp_path).state_dict())
    assert other.get_learner_task()
    assert other.get_learner_task() is None


def test_contradictions(tmp_path):
    league_cfg = {**league(), "active_players": {"naive_sp_player": 2}}
    with pytest.raises(ConfigError, match="learner_task_space is 1, but the league has 2"):
        made(tmp_path, league_cfg, learner_task_space=1)
    with pytest.raises(ConfigError, match="load_ckpt_before_run"):
        made(tmp_path, {**league(), "use_pretrain": True})

"""Parallel collectors over a worker in memory."""

import json
import threading
import time

import numpy as np
import pytest
from easydict import EasyDict

from ding.envs import env_seeds
from ding.utils import durations
from ding.utils.autolog import TickTime
from ding.utils.errors import CheckpointError, ConfigError, EnvError
from ding.worker import create_parallel_collector, get_parallel_collector_cls
from ding.worker.collector.base_parallel_collector import TickMonitor
from ding.worker.collector.collector_link import SampleSender
from tests.fakes import RowPolicy
from tests.worker.collector import parallel_tasks as tasks
from tests.worker.collector.parallel_tasks import (
    FINISH_KEYS,
    MemoryLink,
    collector_cfg,
    env_cfg,
    policy_cfg,
    weights,
)


@pytest.fixture
def link():
    link = MemoryLink()
    yield link
    link.parts.close()


def _build(link, **cfg):
    collector = create_parallel_collector(collector_cfg(**cfg))
    collector.attach(link)
    return collector


def test_config_defaults():
    for kind in ("zergling", "marine"):
        cls = get_parallel_collector_cls(EasyDict(type=kind))
        cfg = cls.default_config()
        assert (cfg.print_freq, cfg.compressor, cfg.update_policy_second) == (5, "lz4", 3)
        assert cfg.cfg_type == f"{cls.__name__}Dict"


def test_without_a_worker_it_says_so():
    with pytest.raises(ConfigError, match="attach"):
        create_parallel_collector(collector_cfg()).start()


def test_three_functions_are_enough(link):
    link.policies["policy_a"] = {**weights(0.0), "iter": 2}
    collector = create_parallel_collector(collector_cfg())
    for name in ("get_policy_update_info", "send_stepdata", "send_metadata"):
        setattr(collector, name, getattr(link, name))
    collector.start()
    assert collector.get_finish_info()["sample_count"] == 20
    assert sum(m["sample_num"] for m in link.metadata) == 20
    assert len(link.data) == len(link.metadata)
    assert collector.env_manager.closed


@pytest.mark.parametrize("evaluate", [True, False])
def test_without_an_episode_there_is_no_return(link, evaluate):
    link.policies["policy_a"] = weights(0.0)
    collector = _build(link, eval_flag=evaluate)
    collector.close()
    collector.start()
    info = collector.get_finish_info()
    assert info["real_episode_count"] == 0
    assert info["reward_raw"] == []
    averages = [name for name in info if name.startswith(("avg_", "reward_m", "reward_s"))]
    assert len(averages) == 7
    assert {info[name] for name in averages} == {None}
    json.dumps(info)


def test_it_logs_how_it_goes(link, caplog):
    caplog.set_level("INFO")
    collector = _build(link, print_freq=0)
    collector.start()
    assert any("recent return" in text and "step_time" in text for text in caplog.messages)


@pytest.mark.parametrize("field", ["env", "policy"])
def test_a_missing_field_is_named(link, field):
    with pytest.raises(ConfigError, match=f"collector_cfg.{field}"):
        _build(link, **{field: None}).start()


@pytest.mark.parametrize("nstep", [1, 3])
def test_collects_until_each_env_has_played_its_episodes(link, nstep):
    link.policies["policy_a"] = {**weights(0.0), "iter": 7}
    collector = _build(link, policy=policy_cfg(nstep=nstep))
    collector.start()
    info = collector.get_finish_info()
    assert set(info) == FINISH_KEYS
    # 2 environments, 2 episodes of 5 steps each, returns 1 + 2 + 3 + 4 + 5.
    assert info["step_count"] == info["sample_count"] == 20
    assert info["predefined_episode_count"] == info["real_episode_count"] == 4
    assert info["reward_raw"] == [15.0] * 4
    assert (info["avg_step_per_episode"], info["avg_sample_per_episode"]) == (5.0, 5.0)
    assert info["avg_time_per_episode"] == pytest.approx(info["duration"] / 4)
    assert info["avg_time_per_step"] == pytest.approx(info["duration"] / 20)
    assert (info["train_iter"], info["collector_done"], info["eval_flag"]) == (7, True, False)
    assert info["collect_setting"] == {"eps": 0.5}
    assert sum(m["sample_num"] for m in link.metadata) == 20
    for meta in link.metadata:
        columns = link.data[meta["data_id"]].columns
        assert len(columns["obs"]) == meta["sample_num"]
        assert columns["reward"].shape[1] == nstep
        assert (columns["collect_iter"] == 7).all()
        assert (meta["policy_iter"], meta["collect_iter"]) == (7, 7)
    assert link.metadata[-1]["cur_sample"] == 20
    assert link.metadata[-1]["cur_step"] == 20


@pytest.mark.parametrize("nstep", [1, 3])
def test_each_sample_names_the_policy_that_collected_it(link, nstep):
    link.policies["policy_a"] = {**weights(0.0), "iter": 0}
    env = env_cfg(episodes=6)
    collector = _build(link, env=env, policy=policy_cfg(nstep=nstep), update_policy_second=0)
    steps = iter(range(1, 1000))
    load = link.get_policy_update_info
    link.get_policy_update_info = lambda path: {**load(path), "iter": next(steps)}
    collector.start()
    mixed = 0
    for meta in link.metadata:
        own = np.asarray(link.data[meta["data_id"]].columns["collect_iter"])
        reported = np.broadcast_to(meta["collect_iter"], own.shape)
        np.testing.assert_array_equal(reported, own)
        mixed += len(set(own.tolist())) > 1
    assert mixed


@pytest.mark.parametrize("manager", [{}, {"episode_num": float("inf")}, {"episode_num": None}])
def test_a_collector_without_end_stops_when_it_is_closed(link, manager):
    collector = _build(link, env=env_cfg(manager=manager))
    thread = threading.Thread(target=collector.start)
    thread.start()
    deadline = threading.Event()
    while not link.metadata and not deadline.wait(0.01):
        assert thread.is_alive()
    collector.close()
    collector.close()
    thread.join(10)
    assert not thread.is_alive()
    info = collector.get_finish_info()
    assert info["predefined_episode_count"] is None
    assert not info["collector_done"]
    assert info["step_count"] > 0


def test_evaluation_gives_each_env_its_share(link):
    # Env 0 has short episodes: it must not take more than its two of the three.
    link.policies["policy_a"] = {**weights(0.0), "iter": 3}
    lengths = env_cfg(n_evaluator_episode=3, length=2)
    collector = _build(link, eval_flag=True, env=lengths)
    collector.start()
    info = collector.get_finish_info()
    assert set(info) == FINISH_KEYS
    assert info["eval_flag"]
    assert info["collector_done"]
    assert info["real_episode_count"] == info["predefined_episode_count"] == 3
    assert info["reward_raw"] == [3.0] * 3
    assert (info["reward_mean"], info["reward_std"]) == (3.0, 0.0)
    assert info["sample_count"] == 0
    assert info["train_iter"] == 3
    assert not link.data


def test_rows_of_a_user_s_policy_are_sent(link):
    collector = _build(link, policy_update_path=None, collect_setting={})
    collector.policy = RowPolicy(["collect"]).collect_mode
    collector.env_manager = link.parts.env_manager(collector_cfg().env, False, 0)
    collector.start()
    rows = [row for m in link.metadata for row in link.data[m["data_id"]]]
    assert len(rows) == 20
    assert set(rows[0]) >= {"obs", "next_obs", "action", "reward", "done", "collect_iter"}


def test_it_looks_no_more_often_than_configured(link):
    link.policies["policy_a"] = {**weights(0.0), "iter": 1}
    collector = _build(link, update_policy_second=60)
    collector.start()
    assert len(link.asked) == 1


def test_an_evaluation_needs_a_published_policy(link, monkeypatch):
    monkeypatch.setattr(durations, "POLICY_FIRST_WAIT", 0.3)
    with pytest.raises(CheckpointError, match="policy_a"):
        _build(link, eval_flag=True).start()


def test_it_looks_again_after_it_had_to_wait(link, monkeypatch):
    monkeypatch.setattr(durations, "POLICY_LOOK", 0.0)
    link.policies["policy_a"] = {**weights(0.0), "iter": 1}
    collector = _build(link, env=env_cfg(episodes=float("inf")), update_policy_second=60)
    send = link.send_metadata

    def held(metadata):
        time.sleep(2 * durations.SEND_WAIT)  # the learner is behind
        link.policies["policy_a"] = {**weights(0.5), "iter": 2}
        send(metadata)
        if len(link.metadata) == 2:
            collector.close()

    monkeypatch.setattr(link, "send_metadata", held)
    collector.start()
    assert [metadata["policy_iter"] for metadata in link.metadata[:2]] == [1, 2]


def test_equal_tasks_share_policy_and_environments(link):
    tasks.ParallelLineEnv.made = 0
    first, second = _build(link), _build(link, seed=1)
    first.start()
    second.start()
    assert first.policy is second.policy
    assert first.env_manager is second.env_manager
    assert tasks.ParallelLineEnv.made == 2
    other = _build(link, env=env_cfg(episodes=1))
    other.start()
    assert other.env_manager is not first.env_manager
    assert first.env_manager.closed


def test_seeds_differ_between_workers_but_not_between_evaluations():
    seeds = []
    for name in ("collector0", "collector1"):
        link = MemoryLink(name)
        for evaluate in (False, True):
            manager = link.parts.env_manager(collector_cfg().env, evaluate, 3)
            seeds.append(manager._seed[0])
        link.parts.close()
    collect0, eval0, collect1, eval1 = seeds
    assert collect0 != collect1
    assert eval0 == eval1 == env_seeds(3, "evaluator", 1)[0]


@pytest.fixture
def watched(monkeypatch):
    """Starts a collector in a thread, and polls it until it has ended or is overdue."""
    monkeypatch.setattr(durations, "STEP_LOOK_AFTER", 0.05)
    monkeypatch.setattr(durations, "COLLECTOR_STEP_LIMIT", 0.5)  # two seconds are the least
    tasks.RELEASE.clear()

    def watch(collector):
        thread = threading.Thread(target=collector.start, daemon=True)
        thread.start()
        answers, pause = [], threading.Event()
        while thread.is_alive() and not any(answers):
            pause.wait(0.02)
            answers.append(collector.overdue(thread.ident))
        collector.close()
        monkeypatch.setattr(threading, "excepthook", lambda args: None)
        tasks.RELEASE.set()
        thread.join(10)
        return answers

    return watch


def test_a_hanging_policy_is_found(link, watched):
    collector = _build(link, policy_update_path=None, collect_setting={})
    mode = RowPolicy(["collect"]).collect_mode
    collector.policy = type(mode)(lambda obs: tasks.RELEASE.wait(30), *mode[1:])
    collector.env_manager = link.parts.env_manager(collector_cfg().env, False, 0)
    assert "the environments or the policy, in" in str(watched(collector)[-1])


@pytest.mark.slow
def test_slow_environments_do_not_hang(link, watched):
    collector = _build(link, env=env_cfg(episodes=1, step_time=0.8, length=2, collector_env_num=4))
    answers = watched(collector)  # the limit is less than a step of all, more than one of each
    assert answers
    assert not any(answers)


def test_environments_that_failed_to_launch_are_tried_again(link, monkeypatch):
    monkeypatch.setattr(tasks.ParallelLineEnv, "reset", lambda self: 1 / 0)
    with pytest.raises(EnvError, match="ZeroDivisionError"):
        _build(link).start()
    monkeypatch.undo()
    collector = _build(link)
    collector.start()
    assert collector.get_finish_info()["step_count"] == 20


def test_chunks_grow_while_the_coordinator_does_not_ask(monkeypatch):
    monkeypatch.setattr(durations, "CHUNK_SPAN", 0.0)
    monkeypatch.setattr(durations, "CHUNK_AGE", 60.0)
    link = MemoryLink()
    sender = SampleSender(link, 32)
    assert not sender.is_due(0)
    assert not sender.is_due(31)
    assert sender.is_due(32)
    sender.send(np.zeros(32), lambda n: {})
    link.waiting = 2
    assert not sender.is_due(32)
    assert sender.is_due(32 * 9)


def test_few_samples_do_not_wait_for_long():
    sender = SampleSender(MemoryLink(), 64)
    assert not sender.is_due(1)
    threading.Event().wait(0.06)
    assert sender.is_due(1)


def test_tick_monitor():
    clock = TickTime()
    monitor = TickMonitor(clock, expire=5)
    monitor.step_time = 1.0
    clock.step()
    monitor.step_time = 3.0
    clock.step()
    assert monitor.avg["step_time"]() == pytest.approx(2.0)
    assert monitor.avg["send_time"]() == 0.0


def _duel(**cfg):
    return dict(
        kind="marine",
        agent_num=2,
        env=env_cfg("parallel_duel", episodes=2),
        policy_update_path=["policy_a", "policy_b"],
        policy_update_flag=[True, False],
        **cfg,
    )


def test_both_players_data_is_sent_unless_one_is_frozen(link):
    both = {"policy_update_path": ["policy_a"] * 2, "policy_update_flag": [True, True]}
    collector = _build(link, **{**_duel(), **both})
    collector.start()
    assert collector.get_finish_info()["sample_count"] == 40
    link.data.clear()
    link.asked.clear()
    link.policies = {"policy_a": {**weights(0.0), "iter": 4}, "policy_b": weights(1.0)}
    collector = _build(link, **_duel(), update_policy_second=0.0)
    collector.start()
    info = collector.get_finish_info()
    assert set(info) == FINISH_KEYS | {"game_result"}
    assert info["game_result"] == ["losses"] * 4  # player 1 gets twice the rewards
    assert info["reward_raw"] == [15.0] * 4
    assert info["sample_count"] == 20
    assert sum(len(data) for data in link.data.values()) == 20
    rewards = np.concatenate([data.columns["reward"] for data in link.data.values()])
    assert rewards.max() == 5.0  # player 0's
    assert link.asked.count("policy_b") == 1  # frozen
    assert link.asked.count("policy_a") > 1


def test_a_frozen_player_whose_weights_come_late_plays_with_them(link, monkeypatch):
    monkeypatch.setattr(durations, "POLICY_LOOK", 0.0)
    collector = _build(link, **_duel())
    send = link.send_metadata

    def publish(metadata):
        link.policies["policy_b"] = {**weights(1.0), "iter": 7}
        send(metadata)

    monkeypatch.setattr(link, "send_metadata", publish)
    monkeypatch.setattr(durations, "CHUNK_AGE", 0.0)
    collector.start()
    state = collector.policy[1].collect_mode.state_dict()["model"]
    assert all((values == 1.0).all() for values in state.values())
    asked = link.asked.count("policy_b")
    assert asked > 1
    collector = _build(link, **_duel())
    collector.start()
    assert link.asked.count("policy_b") == asked + 1  # loaded once


def test_evaluation_of_a_battle_is_of_the_first_player(link):
    link.policies = {"policy_a": weights(0.0), "policy_b": weights(1.0)}
    collector = _build(link, **_duel(), eval_flag=True)
    collector.start()
    info = collector.get_finish_info()
    assert info["reward_raw"] == [15.0] * 3
    assert info["game_result"] == ["losses"] * 3


def test_one_player_plays_what_the_environment_offers(link):
    link.policies["policy_a"] = weights(0.0)
    cfg = dict(kind="marine", agent_num=1, policy_update_path=["policy_a"], eval_flag=True)
    collector = _build(link, **cfg)
    collector.start()
    info = collector.get_finish_info()
    assert info["reward_raw"] == [15.0] * 3
    assert info["game_result"] == ["wins"] * 3


def test_too_few_paths_are_named(link):
    cfg = _duel()
    cfg["policy_update_path"] = ["policy_a"]
    with pytest.raises(ConfigError, match="policy_update_path has 1 values, for 2 players"):
        _build(link, **cfg).start()

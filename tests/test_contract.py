"""What callers rely on beyond signatures, one short check for each promise.

Details are tested with each part; this file holds what users' code relies on.
"""

import inspect

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.config import compile_config
from ding.data import Columns
from ding.envs import BaseEnvManager, BaseEnvTimestep
from ding.league import BaseLeague, OneVsOneLeague
from ding.policy import DQNPolicy, PPOPolicy, create_policy, default_preprocess_learn
from ding.utils import POLICY_REGISTRY, Registry, registries
from ding.utils.errors import UnknownTypeError
from ding.worker import (
    AdvancedReplayBuffer,
    BaseLearner,
    EpisodeSerialCollector,
    InteractionSerialEvaluator,
    NaiveReplayBuffer,
    SampleSerialCollector,
    create_buffer,
)
from ding.worker.learner import build_learner_hook_by_cfg
from tests.fakes import StepPolicy, Writer, line_manager

TYPES = {
    "serial_collector": "sample episode sample_1v1 episode_1v1",
    "serial_evaluator": "interaction battle_interaction metric",
    "parallel_collector": "zergling marine",
    "comm_collector": "flask_fs",
    "comm_learner": "flask_fs",
    "learner": "base",
    "buffer": "naive sequence advanced episode deque",
    "commander": "naive solo one_vs_one",
    "env_manager": "base base_v2 subprocess async_subprocess subprocess_v2 gym_vector",
    "policy": "dqn ppo dqn_command ppo_command",
    "league": "one_vs_one",
    "player": "naive_sp_player historical_player main_player main_exploiter league_exploiter",
}


def row(i, done=False):
    obs = torch.full((3,), float(i))
    return {
        "obs": obs,
        "next_obs": obs + 1,
        "action": torch.tensor([i % 2]),
        "reward": torch.tensor([float(i)]),
        "done": done,
        "collect_iter": i,
    }


def dqn(**cfg):
    merged = DQNPolicy.default_config()
    merged.update(
        type="dqn_command",
        model=dict(obs_shape=3, action_shape=2, encoder_hidden_size_list=[8]),
        **cfg,
    )
    return create_policy(merged)


# ------------------------------------------------------------------ registries and configs


@pytest.mark.parametrize("name", TYPES)
def test_registered_types_and_their_defaults(name):
    for kind in TYPES[name].split():
        assert kind in registries[name].query()
        cls = registries[name].get(kind)
        if not inspect.isclass(cls) or not hasattr(cls, "default_config"):
            continue
        config = cls.default_config()
        assert type(config) is EasyDict
        assert config.cfg_type == f"{cls.__name__}Dict"
        assert cls.default_config() is not config


def test_a_registry_is_a_dict_of_names():
    registry = Registry()

    @registry.register("one")
    def one(a, b=2):
        return a + b

    assert isinstance(registry, dict)
    assert registry.build("one", 1, b=3) == 4
    assert registry.get("one") is one
    assert list(registry.query()) == ["one"]
    assert "test_contract.py" in registry.query_details()["one"]
    with pytest.raises(AssertionError, match="already registered"):
        registry.register("one", lambda: None)
    registry.register("one", lambda: 5, force_overwrite=True)
    assert registry.build("one") == 5


def test_an_unknown_type_names_what_is_near():
    with pytest.raises(UnknownTypeError, match=r"policy type 'dqm'.*'dqn'.*import_names"):
        POLICY_REGISTRY.get("dqm")
    assert issubclass(UnknownTypeError, KeyError)


def test_a_list_of_classes_in_place_of_create_cfg():
    main = EasyDict(
        exp_name="run",
        env=dict(
            manager=dict(),
            collector_env_num=2,
            evaluator_env_num=2,
            n_evaluator_episode=2,
            stop_value=7,
        ),
        policy=dict(model=dict(obs_shape=3, action_shape=2)),
    )
    cfg = compile_config(
        main,
        BaseEnvManager,
        DQNPolicy,
        BaseLearner,
        SampleSerialCollector,
        InteractionSerialEvaluator,
        AdvancedReplayBuffer,
        save_cfg=False,
    )
    assert cfg.policy.eval.evaluator.stop_value == 7
    assert cfg.policy.eval.evaluator.n_episode == 2
    assert cfg.policy.other.replay_buffer.cfg_type == "AdvancedReplayBufferDict"
    assert cfg.policy.collect.collector.cfg_type == "SampleSerialCollectorDict"


# ------------------------------------------------------------------ policy modes

_STATE = ("get_attribute", "set_attribute", "state_dict", "load_state_dict")


def test_modes_are_named_tuples_of_methods():
    policy = dqn()
    assert policy.learn_mode._fields == ("forward", "reset", "info", "monitor_vars", *_STATE)
    assert policy.collect_mode._fields == (
        *("forward", "process_transition", "get_train_sample", "reset", *_STATE),
    )
    assert policy.eval_mode._fields == ("forward", "reset", *_STATE)
    assert policy.command_mode._fields == (
        *("get_setting_learn", "get_setting_collect", "get_setting_eval"),
    )
    names = "cfg batch_size device n_sample n_episode unroll_len on_policy priority"
    for name in names.split():
        policy.collect_mode.get_attribute(name)
    setting = policy.command_mode.get_setting_collect({"envstep": 0, "learner_step": 0})
    assert list(setting) == ["eps"]


def test_acting_and_transitions_by_environment():
    policy = dqn()
    outputs = policy.collect_mode.forward({0: torch.zeros(3), 4: torch.ones(3)}, eps=0.0)
    assert sorted(outputs) == [0, 4]
    assert outputs[4]["action"].shape == (1,)
    timestep = BaseEnvTimestep(np.ones(3, np.float32), np.ones(1, np.float32), True, {})
    transition = policy.collect_mode.process_transition(torch.zeros(3), outputs[0], timestep)
    assert {"obs", "next_obs", "action", "reward", "done"} <= set(transition)


def test_nstep_rows_hold_their_rewards():
    policy = dqn(nstep=3, discount_factor=0.5)
    rows = policy.collect_mode.get_train_sample([row(i, done=i == 4) for i in range(5)])
    assert isinstance(rows, list)
    assert [one["reward"].tolist() for one in rows] == [
        *([0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 0], [4, 0, 0]),
    ]
    assert [float(one["value_gamma"]) for one in rows] == [0.125, 0.125, 0.125, 0.25, 0.5]
    assert [bool(one["done"]) for one in rows] == [False, False, True, True, True]
    assert rows[0]["next_obs"].tolist() == [3, 3, 3]
    batch = default_preprocess_learn(rows, use_nstep=True)
    assert batch["reward"].shape == (3, 5)
    assert batch["done"].dtype == torch.float32


def test_learning_logs_and_state():
    policy = dqn()
    log = policy.learn_mode.forward([row(i) for i in range(6)])
    assert {"cur_lr", "total_loss", "q_value", "target_q_value", "priority"} <= set(log)
    assert len(log["priority"]) == 6
    assert set(policy.learn_mode.monitor_vars()) <= set(log)
    assert {"model", "target_model", "optimizer"} <= set(policy.learn_mode.state_dict())
    cfg = PPOPolicy.default_config()
    cfg.model = dict(obs_shape=3, action_shape=2)
    ppo = create_policy(EasyDict(cfg, type="ppo"))
    rows = [
        {**row(i), "value": torch.zeros(1), "logit": torch.zeros(2), "adv": torch.ones(1)}
        for i in range(4)
    ]
    logs = ppo.learn_mode.forward(ppo.collect_mode.get_train_sample(rows))
    assert isinstance(logs, list)
    assert len(logs) == cfg.learn.epoch_per_collect


# ------------------------------------------------------------------ collectors and evaluators

SCALARS = """
    episode_count envstep_count train_sample_count avg_envstep_per_episode avg_envstep_per_sec
    avg_train_sample_per_sec avg_episode_per_sec avg_sample_per_episode reward_mean reward_std
    reward_max reward_min
"""


def test_collecting():
    policy, writer = StepPolicy(discount_factor=0.9), Writer()
    collector = SampleSerialCollector(
        SampleSerialCollector.default_config(),
        line_manager(),
        policy.collect_mode,
        tb_logger=writer,
        exp_name="exp",
    )
    rows = collector.collect(n_sample=8, train_iter=3)
    assert isinstance(rows, list)
    assert isinstance(rows, Columns)
    assert [one["collect_iter"] for one in rows] == [3] * 8
    assert collector.envstep == 8
    collector.collect(n_sample=16, train_iter=300)
    collector.envstep = 500
    assert collector.envstep == 500
    for axis in ("iter", "step"):
        assert {f"collector_{axis}/{name}" for name in SCALARS.split()} <= writer.rows.keys()
    collector.close()
    collector.close()


def test_collecting_episodes():
    policy = StepPolicy(discount_factor=0.9)
    collector = EpisodeSerialCollector(
        EpisodeSerialCollector.default_config(),
        line_manager(),
        policy.collect_mode,
        tb_logger=Writer(),
        exp_name="exp",
    )
    episodes = collector.collect(n_episode=3)
    assert type(episodes) is list
    assert [len(episode) for episode in episodes] == [5, 5, 5]
    collector.close()


def test_evaluating():
    cfg = InteractionSerialEvaluator.default_config()
    cfg.update(n_episode=3, stop_value=15, eval_freq=50)
    policy = StepPolicy(discount_factor=0.9)
    evaluator = InteractionSerialEvaluator(
        cfg, line_manager(), policy.eval_mode, tb_logger=Writer(), exp_name="exp"
    )
    due = [evaluator.should_eval(i) for i in (0, 0, 10, 50, 60, 100)]
    assert due == [True, False, False, True, False, True]
    saved = []
    stop, info = evaluator.eval(saved.append, 0, 0)
    assert not stop  # never at iteration 0
    assert info["eval_episode_return"] == [15.0] * 3
    assert info["eval_episode_return_mean"] == 15.0
    stop, _ = evaluator.eval(saved.append, 1, 0)
    assert stop
    assert saved == ["ckpt_best.pth.tar"]  # the second is no better
    evaluator.close()


# ------------------------------------------------------------------ learner

HOOKS = {
    *{("load_ckpt", 20), ("save_ckpt_after_run", 20), ("log_reduce_after_iter", 10)},
    *{("log_show", 20), ("save_ckpt_after_iter", 20)},
}


def test_hooks_of_the_short_form():
    cfg = EasyDict(
        load_ckpt_before_run="",
        log_show_after_iter=100,
        save_ckpt_after_iter=10000,
        save_ckpt_after_run=False,
        log_reduce_after_iter=True,
    )
    hooks = build_learner_hook_by_cfg(cfg)
    assert set(hooks) == {"before_run", "before_iter", "after_iter", "after_run"}
    assert {(hook.name, hook.priority) for place in hooks.values() for hook in place} == HOOKS


def test_training_and_checkpoints():
    policy = dqn(priority=True)
    learner = BaseLearner(
        BaseLearner.default_config(), policy.learn_mode, tb_logger=Writer(), exp_name="exp"
    )
    data = [{**row(i), "replay_unique_id": f"b_{i}", "replay_buffer_idx": i} for i in range(4)]
    (log,) = learner.train(data, envstep=40)
    assert "priority" not in log
    info = learner.priority_info
    assert set(info) == {"priority", "replay_buffer_idx", "replay_unique_id"}
    assert set(learner.learn_info) == {"learner_step", "priority_info", "learner_done"}
    assert (learner.train_iter, learner.last_iter.val, learner.collector_envstep) == (1, 1, 40)
    learner.save_checkpoint("ckpt_best.pth.tar")
    state = torch.load("exp/ckpt/ckpt_best.pth.tar", weights_only=False)
    assert (state["last_iter"], state["last_step"]) == (1, 40)
    assert {"model", "target_model", "optimizer"} <= set(state)
    learner.close()


# ------------------------------------------------------------------ buffers


@pytest.mark.parametrize("kind", ["naive", "advanced", "deque"])
def test_rings(kind):
    buffer = create_buffer(EasyDict(type=kind, replay_buffer_size=5), exp_name="exp")
    buffer.push([row(i) for i in range(8)], 0)
    assert (buffer.count(), buffer.push_count, buffer.replay_buffer_size) == (5, 8, 5)
    newest = buffer.sample(2, 0, sample_range=slice(-2, None))
    assert sorted(float(one["reward"]) for one in newest) == [6, 7]
    assert len({id(one) for one in buffer.sample(5, 0)}) == 5
    assert buffer.sample(6, 0) is None
    buffer.save_data("data")
    buffer.clear()
    assert (buffer.count(), buffer.push_count) == (0, 0)
    buffer.load_data("data")
    assert buffer.count() == 5
    buffer.close()


def test_advanced_buffers_report_where_items_come_from():
    cfg = EasyDict(AdvancedReplayBuffer.default_config(), replay_buffer_size=5, priority=True)
    buffer = AdvancedReplayBuffer(cfg, exp_name="exp", instance_name="b")
    buffer.push([row(i) for i in range(7)], 0)
    for one in buffer.sample(3, 10):
        number = int(one["reward"])
        assert one["replay_unique_id"] == f"b_{number}"
        assert one["replay_buffer_idx"] == number % 5
        assert (one["use"], one["staleness"]) == (1, 10 - number)
        assert (one["IS"], one["priority"]) == (1.0, 1.0)
    buffer.close()


def test_objects_are_handed_out_as_they_are():
    buffer = NaiveReplayBuffer(NaiveReplayBuffer.default_config(), exp_name="exp")
    items = [object() for _ in range(3)]
    buffer.push(items, 0)
    assert {id(one) for one in buffer.sample(3, 0)} == {id(one) for one in items}
    buffer.close()


# ------------------------------------------------------------------ league


@pytest.mark.parametrize("league", [BaseLeague, OneVsOneLeague])
def test_leagues_count_eight_games(league):
    assert league.default_config().payoff.min_win_rate_games == 8

"""A run from its start to its end: the folder, the limits, the closing words."""

import os
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from easydict import EasyDict

from ding.config import read_config
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.envs import DingEnvWrapper
from ding.policy import DQNPolicy
from ding.utils import POLICY_REGISTRY, TRACKER_REGISTRY, read_file
from ding.utils.errors import ConfigError
from ding.utils.trackers import Tracker
from ding.worker import SampleSerialCollector
from tests.entry.runs import episodes, metrics, run_json, walk_config, walk_envs

PIPELINES = {"dqn": serial_pipeline, "ppo": serial_pipeline_onpolicy}


def train(policy="dqn", manager="base", limits=None, seed=0, envs=None, **changes):
    limits = limits or dict(max_train_iter=60)
    pipeline = PIPELINES[policy]
    config = walk_config(manager=manager, policy=policy, **changes)
    return pipeline(config, seed=seed, env_setting=envs or walk_envs(), **limits)


@pytest.mark.parametrize(
    ("policy", "manager"), [("dqn", "base"), ("ppo", "subprocess"), ("dqn", "async_subprocess")]
)
def test_run_folder_holds_all_that_happened(policy, manager):
    train(policy, manager)
    record = run_json()
    assert record["status"] == "finished"
    assert record["reason"] == "reached max_train_iter 60"
    assert record["seed"] == 0
    assert record["train_iter"] >= 60
    assert record["best_return"] >= 0
    assert {"torch", "numpy", "gymnasium", "python"} <= record["versions"].keys()
    for name in ("total_config.py", "formatted_total_config.py", "metrics.jsonl"):
        assert os.path.getsize(os.path.join("run", name)) > 0
    assert any("tfevents" in name for _, _, names in os.walk("run/log") for name in names)
    ckpts = set(os.listdir("run/ckpt"))
    assert {"ckpt_best.pth.tar", "resume.pth.tar"} <= ckpts
    assert f"iteration_{record['train_iter']}.pth.tar" in ckpts


def test_run_of_a_process_without_stderr(monkeypatch):
    for name in ("stderr", "__stderr__"):
        monkeypatch.setattr(f"sys.{name}", None)
    train(limits=dict(max_train_iter=1))
    assert run_json()["status"] == "finished"


def test_large_limits_are_named_in_full(monkeypatch):
    monkeypatch.setattr(SampleSerialCollector, "envstep", property(lambda _: 1_234_567))
    train(limits=dict(max_env_step=1_234_567))
    assert run_json()["reason"] == "reached max_env_step 1234567"


class TwoChoices(gym.Env):
    """Pays 1 for each of two choices that the observation names."""

    observation_space = gym.spaces.Box(0, 1, (5,), np.float32)
    action_space = gym.spaces.MultiDiscrete([3, 2])

    def _next(self):
        self.wanted = self.np_random.integers([3, 2])
        obs = np.zeros(5, np.float32)
        obs[self.wanted[0]] = obs[3 + self.wanted[1]] = 1
        return obs

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 8
        return self._next(), {}

    def step(self, action):
        assert action.shape == (2,)
        assert action.dtype == np.int64
        reward = float((action == self.wanted).sum())
        self.left -= 1
        return self._next(), reward, self.left == 0, False, {}


def two_choices(cfg):
    return DingEnvWrapper(TwoChoices(), EasyDict(env_id="TwoChoices"))


@pytest.mark.slow
@pytest.mark.parametrize("manager", ["base", "subprocess", "gym_vector"])
def test_ppo_learns_several_choices_at_a_time(manager, learned):
    changes = dict(
        model=dict(obs_shape=5, action_shape=[3, 2]),
        learn=dict(epoch_per_collect=6, batch_size=32, learning_rate=5e-3),
        collect=dict(n_sample=128),
    )
    config = walk_config(manager=manager, policy="ppo", env=dict(stop_value=15.0))
    for section, values in changes.items():
        config[0].policy[section].update(values)
    envs = [two_choices, [{}] * 2, [{}] * 2]
    serial_pipeline_onpolicy(config, seed=learned.seed, env_setting=envs, max_env_step=10_000)
    learned.converged(Path("run"), 10_000)


def test_metrics_and_episodes_come_from_all_parts():
    train(limits=dict(max_train_iter=120))
    names = {name.split("/")[0] for row in metrics() for name in row}
    assert {"learner_iter", "learner_step", "evaluator_iter", "collector_iter"} <= names
    rows = episodes()
    assert {row["source"] for row in rows} == {"collector", "evaluator"}
    assert all(row["length"] == "10" for row in rows)
    judged = [row for row in metrics() if "evaluator_iter/reward_mean" in row]
    first = [float(row["return"]) for row in rows if row["source"] == "evaluator"][:2]
    assert judged[0]["evaluator_iter/reward_mean"] == pytest.approx(sum(first) / 2)


def test_trackers_get_what_a_run_logs():
    rows, ends = [], []

    class Lists(Tracker):
        def scalars(self, values, step, time):
            rows.append(values)

        def end(self, status, reason, facts):
            ends.append((status, facts["train_iter"]))

    TRACKER_REGISTRY.register("lists", Lists)
    try:
        config = walk_config()
        config[0].trackers = ["lists"]
        serial_pipeline(config, env_setting=walk_envs(), max_train_iter=40)
    finally:
        del TRACKER_REGISTRY["lists"]
    without_time = [
        {k: v for k, v in row.items() if k not in ("time", "step")} for row in metrics()
    ]
    assert rows == without_time
    assert ends == [("finished", run_json()["train_iter"])]


def test_goal_ends_run_but_not_before_training():
    train(env=dict(stop_value=0.0))
    record = run_json()
    assert record["status"] == "converged"
    assert record["train_iter"] > 0
    assert "reached stop_value 0" in record["reason"]


@pytest.mark.parametrize(
    ("name", "limit", "round_size", "counter"),
    [
        *(("max_train_iter", limit, 3, "train_iter") for limit in (1, 20)),
        *(("max_env_step", limit, 16, "envstep") for limit in (1, 41)),
    ],
)
def test_a_limit_ends_the_run_after_the_round_that_reaches_it(name, limit, round_size, counter):
    train(limits={"max_train_iter": None, "max_env_step": None, name: limit})
    assert limit <= run_json()[counter] < limit + round_size


def test_limit_of_zero_only_evaluates():
    config = walk_config()
    config[0].policy.random_collect_size = 50
    serial_pipeline(config, 0, walk_envs(), max_train_iter=0)
    assert (run_json()["train_iter"], run_json()["envstep"]) == (0, 0)
    assert run_json()["best_return"] is not None


@pytest.mark.parametrize("value", [-1, "many"])
@pytest.mark.parametrize("name", ["max_train_iter", "max_env_step"])
def test_nonsense_limit_is_refused(name, value):
    with pytest.raises(ConfigError, match=name):
        train(limits={name: value})


def test_last_policy_is_evaluated():
    train(limits=dict(max_train_iter=10))
    at = [row["step"] for row in metrics() if "evaluator_iter/reward_mean" in row]
    assert at == [0, run_json()["train_iter"]]


def test_best_checkpoint_holds_its_result():
    train()
    state = read_file("run/ckpt/ckpt_best.pth.tar")
    assert state["eval_result"] == run_json()["best_return"]
    assert {"model", "last_iter", "last_step"} <= state.keys()


def test_newest_checkpoints_are_kept():
    hook = dict(save_ckpt_after_iter=5, keep_ckpt=2)
    config = walk_config()
    config[0].policy.learn.learner.hook = hook
    serial_pipeline(config, env_setting=walk_envs(), max_train_iter=40)
    numbered = sorted(n for n in os.listdir("run/ckpt") if n.startswith("iteration"))
    assert numbered == ["iteration_40.pth.tar", f"iteration_{run_json()['train_iter']}.pth.tar"]


@POLICY_REGISTRY.register("dqn_counting")
class CountingDQN(DQNPolicy):
    def _learn(self, batch):
        return {**super()._learn(batch), "samples": float(len(batch["obs"]))}


def test_a_users_own_number_is_on_the_console_and_in_the_log(capsys, monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "plain")
    main, create = walk_config(policy="dqn")
    main.policy.learn.learner.hook.log_show_after_iter = 5
    create.policy.type = "dqn_counting"
    serial_pipeline((main, create), seed=0, env_setting=walk_envs(), max_train_iter=20)
    assert "| samples 8" in capsys.readouterr().out
    shown = [row[name] for row in metrics() for name in row if name == "learner_iter/samples_avg"]
    assert len(shown) > 1
    assert set(shown) == {8.0}


def test_closing_words_name_result_folder_and_next_commands(capsys, monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "plain")
    train(exp_name="my run", seed=3)
    text = capsys.readouterr().out.partition("finished: ")[2]
    assert "reached max_train_iter 60; best mean return" in text
    assert "run folder  my run" in text
    # No command has the environments that this run was given.
    load = "env_setting=env_setting, load_path='my run/ckpt/ckpt_best.pth.tar')"
    assert f"ding.entry.eval('my run/formatted_total_config.py', seed=3, {load}" in text
    assert "the same call, with exp_name='my run' and policy.learn.resume_training=True" in text


def test_random_collection_comes_first():
    config = walk_config()
    config[0].policy.random_collect_size = 40
    serial_pipeline(config, env_setting=walk_envs(), max_env_step=41)
    assert run_json()["envstep"] >= 48
    steps = [row["envstep"] for row in episodes() if row["source"] == "collector"]
    assert steps[0] <= "20"


def test_wrong_input_is_refused():
    with pytest.raises(ConfigError, match="pair"):
        serial_pipeline((1, 2, 3))


@pytest.mark.parametrize("policy", ["dqn", "ppo"])
def test_unknown_keys_are_reported_once_and_kept(capsys, monkeypatch, policy):
    monkeypatch.setenv("DING_CONSOLE", "plain")
    train(policy, limits=dict(max_train_iter=3), zebra=1)
    assert capsys.readouterr().out.count("zebra") == 1
    assert run_json()["unknown_keys"] == {"zebra": ""}
    assert read_config("run/formatted_total_config.py")[0]["zebra"] == 1
    with pytest.raises(ConfigError, match="unknown key zebra"):
        PIPELINES[policy](walk_config(policy=policy, zebra=1), env_setting=walk_envs(), strict=True)


def test_nstep_lengthens_trajectories(monkeypatch):
    lengths = []
    columns_of = DQNPolicy._get_train_columns

    def watched(policy, columns, counts):
        lengths.extend(int(count) for count in counts)
        return columns_of(policy, columns, counts)

    monkeypatch.setattr(DQNPolicy, "_get_train_columns", watched)
    main, create = walk_config()
    main.policy.nstep, main.policy.collect.n_sample = 5, 2
    serial_pipeline((main, create), env_setting=walk_envs(), max_env_step=30)
    assert set(lengths) == {5}
    assert "nstep=5" in run_json()["adapted"][0]

"""``ding.load``: a trained policy in a custom loop, and exported."""

import os

import gymnasium
import numpy as np
import pytest
import torch

import ding
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.entry.quick_config import quick_config
from ding.utils.errors import CheckpointError, ConfigError


def train(env_id, policy, folder="run", **env):
    main, create = quick_config(env_id, policy)
    main["exp_name"] = folder
    main["env"].update(collector_env_num=2, evaluator_env_num=1, n_evaluator_episode=1, **env)
    pipeline = serial_pipeline_onpolicy if policy == "ppo" else serial_pipeline
    pipeline((main, create), seed=0, max_train_iter=1)
    return ding.load(folder)


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "quiet")


@pytest.fixture
def policy():
    return train("CartPole-v1", "dqn")


def test_acts_in_a_plain_loop(policy):
    env = gymnasium.make("CartPole-v1")
    obs, _ = env.reset(seed=0)
    for _ in range(5):
        action = policy.act(obs)
        assert type(action) is int
        obs, *_ = env.step(action)


def test_acts_as_evaluations_do(policy):
    obs = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    outputs = policy.policy.eval_mode.forward(dict(enumerate(torch.from_numpy(obs))))
    expected = [int(outputs[i]["action"]) for i in range(20)]
    assert [policy.act(one) for one in obs] == expected


def test_continuous_actions_are_arrays():
    policy = train("Pendulum-v1", "sac")
    action = policy.act(np.zeros(3, np.float32))
    assert action.shape == (1,)
    assert action.dtype == np.float32


KNOWN = {"use_offline_stats": True, "mean": [0.0] * 4, "std": [2.0] * 4}


@pytest.mark.parametrize(
    "env", [{"env_wrapper": "mujoco_default"}, {"norm_obs": {"offline_stats": KNOWN}}]
)
def test_what_acts_on_normalised_observations_is_not_loaded(env):
    with pytest.raises(ConfigError, match="its environments normalise observations"):
        train("CartPole-v1", "dqn", **env)


class CountsFromOne(gymnasium.Env):
    """Takes 1, 2 and 3; the best action is the last one."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3, start=1)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.ones(2, np.float32), {}

    def step(self, action):
        assert action in (1, 2, 3)
        self.steps += 1
        return np.ones(2, np.float32), float(action == 3), self.steps == 5, False, {}


class CountsEachFromElsewhere(CountsFromOne):
    """Takes 1 or 2, and 5 to 7; the best action is the last one."""

    action_space = gymnasium.spaces.MultiDiscrete([2, 3], start=[1, 5])

    def step(self, action):
        assert self.action_space.contains(action)
        self.steps += 1
        return np.ones(2, np.float32), float(action.sum() - 6), self.steps == 5, False, {}


class TakesAnArrayOfOne(CountsFromOne):
    """Takes an array of one choice."""

    action_space = gymnasium.spaces.MultiDiscrete([3])

    def step(self, action):
        return CountsFromOne.step(self, action.item() + 1)


@pytest.mark.parametrize("env", [CountsEachFromElsewhere, TakesAnArrayOfOne])
def test_several_actions_and_those_that_do_not_count_from_zero(env):
    gymnasium.register("CountsEach-v0", env)
    try:
        main, create = quick_config("CountsEach-v0", "dqn")
        main["exp_name"] = "run"
        main["env"].update(collector_env_num=2, evaluator_env_num=1, n_evaluator_episode=1)
        main["policy"]["collect"]["n_sample"] = 16
        serial_pipeline((main, create), seed=0, max_train_iter=2)
        saved = "run/formatted_total_config.py"
        serial_pipeline(saved, seed=0, max_train_iter=2, strict=True)
        policy = ding.load("run")
        for obs in np.random.default_rng(0).random((20, 2), np.float32):
            assert env.action_space.contains(policy.act(obs))
    finally:
        del gymnasium.registry["CountsEach-v0"]


@pytest.mark.parametrize(
    ("model", "manager"), [({}, "base"), (dict(obs_shape=2, action_shape=3), "subprocess")]
)
def test_actions_of_environments_that_count_from_one(model, manager):
    gymnasium.register("CountsFromOne-v0", CountsFromOne)
    try:
        main, create = quick_config("CountsFromOne-v0", "dqn")
        main["exp_name"] = "run"
        main["policy"]["model"] = model
        create["env_manager"]["type"] = manager
        main["env"].update(
            collector_env_num=2, evaluator_env_num=1, n_evaluator_episode=1, stop_value=5
        )
        main["policy"]["collect"]["n_sample"] = 64
        serial_pipeline((main, create), seed=0, max_env_step=3000)
        policy = ding.load("run")
        actions = [policy.act(obs) for obs in np.random.default_rng(0).random((40, 2), np.float32)]
        assert set(actions) <= {1, 2, 3}
        assert policy.act(np.ones(2, np.float32)) == 3
        from ding.entry import eval as evaluate

        assert (
            evaluate(
                "run/formatted_total_config.py", seed=0, load_path="run/ckpt/ckpt_best.pth.tar"
            )
            == 5
        )
    finally:
        del gymnasium.registry["CountsFromOne-v0"]


def test_checkpoint_may_be_chosen(policy):
    names = sorted(os.listdir("run/ckpt"))
    other = ding.load("run", f"run/ckpt/{next(name for name in names if 'iteration' in name)}")
    assert other.act(np.zeros(4)) in (0, 1)
    os.remove("run/ckpt/ckpt_best.pth.tar")
    assert ding.load("run").act(np.zeros(4)) in (0, 1)


def test_missing_run_and_missing_weights_are_said(policy):
    with pytest.raises(ConfigError, match="no run in"):
        ding.load("nothing")
    for name in os.listdir("run/ckpt"):
        if name.endswith(".pth.tar"):
            os.remove(f"run/ckpt/{name}")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        ding.load("run")


@pytest.mark.parametrize(
    ("env_id", "kind"), [("CartPole-v1", "dqn"), ("CartPole-v1", "ppo"), ("Pendulum-v1", "sac")]
)
@pytest.mark.parametrize("ending", [".pt", ".onnx"])
def test_exported_policy_acts_in_the_same_way(env_id, kind, ending):
    if ending == ".onnx":
        reference = pytest.importorskip("onnx.reference", reason="the extra 'onnx' is missing")
    policy = train(env_id, kind)
    policy.export(f"policy{ending}")
    assert [name for name in os.listdir() if name.startswith("policy")] == [f"policy{ending}"]
    size = {"CartPole-v1": 4, "Pendulum-v1": 3}[env_id]
    obs = np.random.default_rng(0).normal(size=(5, size)).astype(np.float32)
    if ending == ".pt":
        actions = torch.jit.load("policy.pt")(torch.from_numpy(obs)).numpy()
    else:
        (actions,) = reference.ReferenceEvaluator("policy.onnx").run(None, {"obs": obs})
    expected = [policy.act(one) for one in obs]
    np.testing.assert_allclose(actions.reshape(5, -1), np.reshape(expected, (5, -1)), atol=1e-4)


def test_export_that_acts_otherwise_is_not_kept(policy, monkeypatch):
    monkeypatch.setattr(
        "ding.entry.trained_policy._export", lambda *_: lambda obs: torch.full((len(obs),), 7)
    )
    with pytest.raises(CheckpointError, match="acts otherwise"):
        policy.export("policy.pt")
    assert not os.path.exists("policy.pt")


def test_what_cannot_be_exported_is_said(policy):
    with pytest.raises(ConfigError, match="expected a name with"):
        policy.export("policy.h5")
    policy._obs_shape = None
    with pytest.raises(ConfigError, match="without a memory"):
        policy.export("policy.pt")

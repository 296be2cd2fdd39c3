"""REINFORCE and PPO without a critic against numbers worked out by hand, and on small tasks."""

import math

import gymnasium
import numpy as np
import pytest
import torch
from easydict import EasyDict
from gymnasium import spaces

from ding.data import Columns
from ding.entry import serial_pipeline_onpolicy
from ding.envs import DingEnvWrapper
from ding.policy import PGPolicy, PPOPGPolicy
from ding.utils.errors import ConfigError, DataError
from tests.policy.attributes import evaluates
from tests.policy.batches import collected, make as build
from tests.policy.networks import FixedActorCritic

BOTH = [PGPolicy, PPOPGPolicy]


def episodes(policy, lengths, rewards):
    """What collectors make of episodes, acted by the policy."""
    obs = np.random.default_rng(0).normal(size=(sum(lengths), 3)).astype(np.float32)
    return collected(policy, obs, rewards, lengths)


@pytest.mark.parametrize("cls", BOTH)
def test_returns_by_hand(cls):
    policy = build(cls, collect=dict(discount_factor=0.5))
    samples = episodes(policy, [3, 2], [1.0, 2.0, 4.0, 8.0, 16.0])
    assert samples.columns["return"].tolist() == [1 + 1 + 1, 2 + 2, 4, 8 + 8, 16]
    assert samples.columns["reward"].shape == (5, 1)


def samples(action, returns, **more):
    n = len(action)
    return Columns(
        {
            "obs": torch.zeros(n, 3),
            "next_obs": torch.zeros(n, 3),
            "action": torch.tensor(action)[:, None],
            "return": torch.tensor(returns),
            "reward": torch.zeros(n, 1),
            "done": np.zeros(n, bool),
            **more,
        }
    )


def test_reinforce_by_hand():
    network = FixedActorCritic()
    policy = build(PGPolicy, network, learn=dict(learning_rate=0.0, grad_norm=1e9))
    (log,) = policy.learn_mode.forward(samples([0, 1], [2.0, -1.0]))
    policy_loss = -(2 * math.log(0.25) - math.log(0.75)) / 2
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert log["policy_loss"] == pytest.approx(policy_loss, rel=1e-5)
    assert log["entropy_loss"] == pytest.approx(entropy, rel=1e-5)
    assert log["total_loss"] == pytest.approx(policy_loss - 0.01 * entropy, rel=1e-5)
    assert log["return_mean"] == pytest.approx(0.5)
    # The gradient of log p(a) by logit 0 is [a = 0] - 1/4; that of the entropy -p (log p + H).
    expected = -(2 * 0.75 - 1 * -0.25) / 2 + 0.01 * 0.25 * (math.log(0.25) + entropy)
    assert network.logit.grad[0].item() == pytest.approx(expected, rel=1e-4)


def test_normalised_returns_by_hand():
    policy = build(PGPolicy, FixedActorCritic(), learn=dict(learning_rate=0.0, adv_norm=True))
    (log,) = policy.learn_mode.forward(samples([0, 1], [4.0, 10.0]))
    # They become minus and plus 1 / sqrt(2), by n - 1.
    expected = (math.log(0.25) - math.log(0.75)) / 2 / math.sqrt(2)
    assert log["policy_loss"] == pytest.approx(expected, rel=1e-5)


def test_gradients_are_clipped():
    network = FixedActorCritic()
    policy = build(PGPolicy, network, learn=dict(learning_rate=0.0, grad_norm=0.1))
    policy.learn_mode.forward(samples([0, 1], [20.0, -10.0]))
    assert network.logit.grad.norm().item() == pytest.approx(0.1, rel=1e-4)


def test_clipped_returns_by_hand():
    learn = dict(learning_rate=0.0, ppo_param_init=False, epoch_per_collect=3, entropy_weight=0.5)
    policy = build(PPOPGPolicy, FixedActorCritic(), learn=learn)
    # The policy of then chose both with the same probability: ratios 0.5, 1.5.
    logs = policy.learn_mode.forward(samples([0, 1], [-2.0, 2.0], logit=torch.zeros(2, 2)))
    assert len(logs) == 3
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    loss = -(0.8 * -2 + 1.2 * 2) / 2
    assert logs[0]["policy_loss"] == pytest.approx(loss, rel=1e-5)
    assert logs[0]["total_loss"] == pytest.approx(loss - 0.5 * entropy, rel=1e-5)
    assert logs[0]["clipfrac"] == 1


def test_evaluation_may_draw():
    for deterministic, mean in ((True, 1.0), (False, 0.75)):
        policy = build(PGPolicy, FixedActorCritic(), deterministic_eval=deterministic)
        action = evaluates(policy, torch.zeros(4000, 3))["action"].float()
        assert action.mean().item() == pytest.approx(mean, abs=0.03)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", ["discrete", "several", "continuous"])
def test_action_spaces(cls, kind):
    space = "continuous" if kind == "continuous" else "discrete"
    shape = [2, 3] if kind == "several" else 2
    model = dict(obs_shape=3, action_shape=shape, action_space=space)
    policy = build(cls, action_space=space, model=model)
    data = episodes(policy, [4, 3], [1.0] * 7)
    logs = policy.learn_mode.forward(data)
    assert all(math.isfinite(log["total_loss"]) for log in logs)
    assert set(policy.learn_mode.monitor_vars()) <= set(logs[0])
    action = policy.eval_mode.forward({1: torch.zeros(3)})[1]["action"]
    assert action.shape == ((1,) if kind == "discrete" else (2,))


@pytest.mark.parametrize("cls", BOTH)
def test_what_cannot_be(cls):
    with pytest.raises(ConfigError, match="'hybrid'"):
        build(cls, action_space="hybrid")
    with pytest.raises(DataError, match="return"):
        build(cls, FixedActorCritic()).learn_mode.forward(
            samples([0, 1], [math.nan, 1.0], logit=torch.zeros(2, 2))
        )


class Recall(gymnasium.Env):
    """Four steps; each shows a sign, and pays for going there."""

    observation_space = spaces.Box(-1, 1, (1,))

    def __init__(self, continuous):
        self.continuous = continuous
        self.action_space = spaces.Box(-3, 3, (1,)) if continuous else spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._observe(), {}

    def _observe(self):
        self.sign = self.np_random.choice([-1, 1])
        return np.array([self.sign], np.float32)

    def step(self, action):
        self.time += 1
        miss = (
            abs(float(action[0]) - self.sign)
            if self.continuous
            else 2 * int(action) - 1 != self.sign
        )
        return self._observe(), 1.0 - miss, self.time == 4, False, {}


@pytest.mark.parametrize("type_", ["pg", "ppo_pg"])
@pytest.mark.parametrize("continuous", [False, True])
def test_learns(type_, continuous, tmp_path, learned):
    space = "continuous" if continuous else "discrete"
    learn = dict(batch_size=64, learning_rate=0.01, adv_norm=True)
    sizes = [16, 16]
    main = EasyDict(
        exp_name=str(tmp_path / "run"),
        env=dict(collector_env_num=8, evaluator_env_num=8, n_evaluator_episode=8, stop_value=3.6),
        policy=dict(
            action_space=space,
            model=dict(
                obs_shape=1,
                action_shape=1 if continuous else 2,
                action_space=space,
                encoder_hidden_size_list=sizes,
            ),
            learn=learn,
            collect=dict(n_episode=32, discount_factor=0.1),
            eval=dict(evaluator=dict(eval_freq=20)),
        ),
    )
    create = EasyDict(
        env_manager=dict(type="base"), policy=dict(type=type_), collector=dict(type="episode")
    )

    def make(cfg):
        return DingEnvWrapper(Recall(continuous), EasyDict(clip_action=continuous))

    envs = [make, [EasyDict()] * 8, [EasyDict()] * 8]
    policy = serial_pipeline_onpolicy(
        (main, create), seed=learned.seed, env_setting=envs, max_env_step=40_000
    )
    obs = {i: torch.tensor([sign]) for i, sign in enumerate((-1.0, 1.0))}
    actions = [out["action"].item() for out in policy.eval_mode.forward(obs).values()]
    learned.near(actions, [-1, 1] if continuous else [0, 1], 0.3)

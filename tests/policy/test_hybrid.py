"""Actions that are a choice and its arguments, from the environment to the losses."""

import math

import numpy as np
import pytest
import torch
from easydict import EasyDict
from gymnasium import spaces
from torch import nn

from ding.data import Columns
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.envs import BaseEnv, BaseEnvManager, BaseEnvTimestep, SyncSubprocessEnvManager
from ding.policy import PolicyFactory, PPOOffPolicy, PPOPolicy
from ding.utils import ENV_REGISTRY, deep_merge_dicts, set_pkg_seed
from ding.utils.errors import ConfigError
from ding.worker import SampleSerialCollector
from tests.policy.attributes import evaluates

STEPS = 4


@ENV_REGISTRY.register("aim")
class Aim(BaseEnv):
    """Shows a bit and a place; pays for naming the bit, and for how near the argument is."""

    def __init__(self, cfg=None):
        self.observation_space = spaces.Box(-1, 1, (2,))
        self.action_space = spaces.Dict(
            action_type=spaces.Discrete(2), action_args=spaces.Box(-1, 1, (1,))
        )
        self.reward_space = spaces.Box(-3, 1, (1,))
        self._rng = np.random.default_rng(0)

    def seed(self, seed, dynamic_seed=True):
        self._rng = np.random.default_rng(seed)

    def _observe(self):
        self._bit, self._place = int(self._rng.integers(2)), self._rng.uniform(-0.5, 0.5)
        return np.array([self._bit, self._place], np.float32)

    def reset(self):
        self._time, self._total = 0, 0.0
        return self._observe()

    def step(self, action):
        kind, argument = action["action_type"], action["action_args"]
        assert kind.shape == (1,)
        assert argument.shape == (1,)
        assert argument.dtype == np.float32
        miss = min(abs(float(argument[0]) - self._place), 2)
        reward = float(int(kind) == self._bit) - miss
        self._time += 1
        self._total += reward
        done = self._time == STEPS
        info = {"eval_episode_return": self._total} if done else {}
        return BaseEnvTimestep(self._observe(), np.array([reward], np.float32), done, info)

    def close(self):
        pass

    def __repr__(self):
        return "Aim"


MODEL = dict(
    obs_shape=2,
    action_shape=dict(action_type_shape=2, action_args_shape=1),
    encoder_hidden_size_list=[32, 32],
    actor_head_hidden_size=32,
    critic_head_hidden_size=32,
)


def build(cls, network=None, **overrides):
    cfg = EasyDict(action_space="hybrid", model=MODEL)
    set_pkg_seed(0, use_cuda=False)
    merged = deep_merge_dicts(deep_merge_dicts(cls.default_config(), cfg), EasyDict(overrides))
    return cls(merged, model=network)


class Fixed(nn.Module):
    """The same policy everywhere: probabilities 1/4 and 3/4, arguments N(1, 1); value 0."""

    def __init__(self):
        super().__init__()
        self.logit = nn.Parameter(torch.tensor([0.0, math.log(3)]))
        self.mu = nn.Parameter(torch.ones(1))

    def forward(self, x, mode):
        n = len(x)
        gaussian = {"mu": self.mu.expand(n, 1), "sigma": torch.ones(n, 1)}
        logit = {"action_type": self.logit.expand(n, 2), "action_args": gaussian}
        return {"logit": logit, "value": x.sum(-1) * 0}


def test_loss_by_hand():
    policy = build(
        PPOOffPolicy,
        Fixed(),
        learn=dict(
            learning_rate=0.0,
            value_norm=False,
            ppo_param_init=False,
            value_weight=1.0,
            entropy_weight=0.5,
        ),
    )
    zeros = torch.zeros(2, 2)
    # The policy of then: 1/2 and 1/2, and N(0, 1).
    old = {"mu": torch.zeros(2, 1), "sigma": torch.ones(2, 1)}
    action = {"action_type": torch.tensor([[1], [0]]), "action_args": torch.tensor([[0.6], [0.4]])}
    log = policy.learn_mode.forward(
        Columns(
            {
                "obs": zeros,
                "next_obs": zeros,
                "action": action,
                "logit": {"action_type": zeros, "action_args": old},
                "value": torch.zeros(2),
                "adv": torch.tensor([2.0, -1.0]),
                "reward": torch.zeros(2, 1),
                "done": np.zeros(2, bool),
            }
        )
    )
    # Choices: ratios 1.5, of which 1.2 count, and 0.5, of which 0.8 counts.
    # Arguments: exp(a - 1/2), 1.105 within the clip and 0.905, too.
    types = -(1.2 * 2 - 0.8 * 1) / 2
    args = -(math.exp(0.1) * 2 - math.exp(-0.1) * 1) / 2
    assert log["policy_loss"] == pytest.approx(types + args, rel=1e-5)
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75)) + 0.5 * math.log(
        2 * math.pi * math.e
    )
    assert log["entropy_loss"] == pytest.approx(entropy, rel=1e-5)
    assert log["value_loss"] == pytest.approx(0.5 * (4 + 1) / 2)
    assert log["clipfrac"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("manager", "way"),
    [(BaseEnvManager, "columns"), (BaseEnvManager, "rows"), (SyncSubprocessEnvManager, "columns")],
)
def test_collecting(manager, way):
    policy = build(PPOPolicy, collect=dict(n_sample=16))
    envs = manager([Aim] * 2, manager.default_config())
    envs.seed(0)
    if way == "rows":
        envs.step = envs.step  # a custom method
    cfg = SampleSerialCollector.default_config()
    mode = policy.collect_mode
    collector = SampleSerialCollector(cfg, envs, mode, exp_name="run")
    samples = collector.collect(n_sample=16)
    collector.close()
    assert samples[0]["action"]["action_args"].shape == (1,)
    assert set(samples[0]["logit"]) == {"action_type", "action_args"}
    logs = policy.learn_mode.forward(samples)
    assert all(math.isfinite(log["total_loss"]) for log in logs)
    output = policy.eval_mode.forward({3: torch.zeros(2)})
    assert set(output[3]["action"]) == {"action_type", "action_args"}


def test_greedy_action_is_the_likeliest():
    policy = build(PPOPolicy, Fixed(), learn=dict(ppo_param_init=False))
    action = evaluates(policy, torch.zeros(3, 2))["action"]
    assert action["action_type"].tolist() == [1, 1, 1]
    assert action["action_args"].tolist() == [[1], [1], [1]]


def test_random_actions():
    space = Aim().action_space
    mode = build(PPOPolicy).eval_mode
    action = PolicyFactory.get_random_policy(mode, space).batched.forward(np.zeros((5, 2)))[
        "action"
    ]
    assert action["action_type"].shape == (5,)
    assert action["action_args"].shape == (5, 1)


def test_agents_have_no_hybrid_actions():
    with pytest.raises(ConfigError, match="hybrid"):
        build(PPOPolicy, multi_agent=True)


@pytest.mark.parametrize("type_", ["ppo", "ppo_offpolicy"])
def test_learns(type_, tmp_path, learned):
    main = EasyDict(
        exp_name=str(tmp_path / "run"),
        env=dict(
            collector_env_num=8,
            evaluator_env_num=8,
            n_evaluator_episode=16,
            stop_value=STEPS * 0.9,
        ),
        policy=dict(
            action_space="hybrid",
            model=MODEL,
            learn=dict(batch_size=64, learning_rate=0.003, value_weight=0.5, adv_norm=True),
            collect=dict(n_sample=128, discount_factor=0.5),
            eval=dict(evaluator=dict(eval_freq=50)),
        ),
    )
    if type_ == "ppo_offpolicy":
        main.policy.other = dict(replay_buffer=dict(replay_buffer_size=256))
        main.policy.learn.update_per_collect = 20
    create = EasyDict(env=dict(type="aim"), env_manager=dict(type="base"), policy=dict(type=type_))
    pipeline = serial_pipeline_onpolicy if type_ == "ppo" else serial_pipeline
    pipeline((main, create), seed=learned.seed, max_env_step=30_000)
    learned.converged(tmp_path / "run", 30_000)

"""Several agents in one environment: each learns to act on what it sees."""

import json

import numpy as np
import pytest
import torch
from easydict import EasyDict
from gymnasium import spaces

from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.envs import BaseEnv, BaseEnvTimestep
from ding.policy import PPOPolicy
from ding.utils import ENV_REGISTRY, deep_merge_dicts
from tests.policy.batches import collected, make

AGENTS, STEPS = 3, 8


@ENV_REGISTRY.register("echo_agents")
class EchoAgents(BaseEnv):
    """Each agent sees its own bit and its neighbour's, and is to say the latter.

    The critics' state is given from each agent's point of view. The reward, the share of right
    answers, is the team's.
    """

    def __init__(self, cfg):
        self._cfg = cfg
        self.observation_space = spaces.Dict(
            agent_state=spaces.Box(0, 1, (AGENTS, 2)),
            global_state=spaces.Box(0, 1, (AGENTS, AGENTS)),
            action_mask=spaces.Box(0, 1, (AGENTS, 3)),
        )
        self.action_space = spaces.MultiDiscrete([3] * AGENTS)
        self.reward_space = spaces.Box(0, 1, (1,))
        self._rng = np.random.default_rng(0)

    def seed(self, seed, dynamic_seed=True):
        self._rng = np.random.default_rng(seed)

    def _observe(self):
        self._bits = self._rng.integers(2, size=AGENTS)
        hint = np.roll(self._bits, -1)
        mask = np.ones((AGENTS, 3), np.float32)
        mask[:, 2] = 0
        return {
            "agent_state": np.stack([self._bits, hint], -1).astype(np.float32),
            "global_state": np.stack([np.roll(self._bits, -i) for i in range(AGENTS)]).astype("f4"),
            "action_mask": mask,
        }

    def reset(self):
        self._time, self._total = 0, 0.0
        return self._observe()

    def step(self, action):
        assert action.shape == (AGENTS,)
        assert (action < 2).all(), "a masked action came"
        reward = float((action == np.roll(self._bits, -1)).mean())
        self._time += 1
        self._total += reward
        done = self._time == STEPS
        info = {"eval_episode_return": self._total, "truncated": False} if done else {}
        return BaseEnvTimestep(self._observe(), np.array([reward], np.float32), done, info)

    def close(self):
        pass

    def __repr__(self):
        return "EchoAgents"


def configs(tmp_path, policy, **more):
    main = EasyDict(
        exp_name=str(tmp_path / "run"),
        env=dict(
            collector_env_num=4, evaluator_env_num=4, n_evaluator_episode=8, stop_value=STEPS - 0.01
        ),
        policy=dict(
            multi_agent=True,
            model=dict(agent_obs_shape=2, global_obs_shape=AGENTS, action_shape=3),
            eval=dict(evaluator=dict(eval_freq=50)),
        ),
    )
    create = dict(
        env=dict(type="echo_agents"), env_manager=dict(type="base"), policy=dict(type=policy)
    )
    return deep_merge_dicts(main, EasyDict(policy=more)), EasyDict(create)


def ended(tmp_path):
    return json.loads((tmp_path / "run" / "run.json").read_text())


@pytest.mark.parametrize("policy", ["ppo", "happo"])
@pytest.mark.timeout(180)
def test_on_policy_agents_learn(policy, tmp_path, learned):
    sizes = {"encoder_hidden_size_list": [32]} if policy == "happo" else {}
    main, create = configs(
        tmp_path,
        policy,
        model=dict(
            agent_num=AGENTS, actor_head_hidden_size=32, critic_head_hidden_size=32, **sizes
        ),
        learn=dict(epoch_per_collect=4, batch_size=64, learning_rate=0.01),
        collect=dict(n_sample=128, discount_factor=0.5),
    )
    serial_pipeline_onpolicy((main, create), seed=learned.seed, max_env_step=20_000)
    learned.converged(tmp_path / "run", 20_000)


@pytest.mark.timeout(180)
def test_discrete_sac_of_agents_learns(tmp_path, learned):
    main, create = configs(
        tmp_path,
        "discrete_sac",
        random_collect_size=200,
        model=dict(twin_critic=True),
        learn=dict(
            batch_size=64,
            update_per_collect=16,
            learning_rate_q=0.003,
            learning_rate_policy=0.003,
            auto_alpha=False,
            alpha=0.01,
        ),
        collect=dict(n_sample=16),
        other=dict(replay_buffer=dict(replay_buffer_size=5000)),
    )
    main.policy.model.global_obs_shape = AGENTS
    serial_pipeline((main, create), seed=learned.seed, max_env_step=4_000)
    learned.at_most(1 - ended(tmp_path)["best_return"] / STEPS, 0.1, "missing share of the return")


def test_advantages_of_agents_by_hand():
    policy = make(
        PPOPolicy,
        multi_agent=True,
        model=dict(agent_obs_shape=2, global_obs_shape=3, action_shape=2, agent_num=2),
        collect=dict(discount_factor=0.5, gae_lambda=1.0),
        learn=dict(value_norm=False),
    )

    def obs(n):
        return {
            "agent_state": np.random.rand(n, 2, 2).astype(np.float32),
            "global_state": np.random.rand(n, 2, 3).astype(np.float32),
        }

    now, after = obs(3), obs(3)
    value = np.asarray(policy.collect_mode.batched.forward(now)["value"])
    assert value.shape == (3, 2)
    data = collected(policy, now, [1.0, 2.0, 4.0], [3], next_obs=after)
    # Returns 1 + 1 + 1, 2 + 2 and 4, the same for both; λ = 1 takes the values off.
    expected = np.array([3.0, 4.0, 4.0])[:, None] - value
    np.testing.assert_allclose(data.column("adv"), expected, rtol=1e-5)


def test_ppo_of_agents_with_continuous_actions_by_hand():
    """Two agents, N(0, 1) then and N(1, 1) now; each has its own advantage."""

    class Fixed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mu = torch.nn.Parameter(torch.ones(1))

        def forward(self, x, mode):
            shape = (*x["agent_state"].shape[:-1], 1)
            mu = self.mu.expand(shape)
            return {"logit": {"mu": mu, "sigma": torch.ones(shape)}, "value": mu[..., 0] * 0}

    learn = dict(
        learning_rate=0.0,
        value_norm=False,
        ppo_param_init=False,
        adv_norm=False,
        entropy_weight=1.0,
        epoch_per_collect=1,
    )
    config = EasyDict(multi_agent=True, action_space="continuous", recompute_adv=False, learn=learn)
    policy = PPOPolicy(deep_merge_dicts(PPOPolicy.default_config(), config), model=Fixed())
    obs = {"agent_state": torch.zeros(1, 2, 2), "global_state": torch.zeros(1, 3)}
    (log,) = policy.learn_mode.forward(
        {
            "obs": obs,
            "next_obs": obs,
            "action": torch.tensor([[[0.6], [1.5]]]),
            "logit": {"mu": torch.zeros(1, 2, 1), "sigma": torch.ones(1, 2, 1)},
            "value": torch.zeros(1, 2),
            "adv": torch.tensor([[2.0, 4.0]]),
            "reward": torch.zeros(1),
            "done": torch.zeros(1),
        }
    )
    # Ratios exp(a - 1/2): 1.105, and 2.718 of which 1.2 count.
    assert log["policy_loss"] == pytest.approx(-(np.exp(0.1) * 2 + 1.2 * 4) / 2, rel=1e-5)
    assert log["value_loss"] == pytest.approx(0.5 * (2**2 + 4**2) / 2)
    assert log["entropy_loss"] == pytest.approx(0.5 * np.log(2 * np.pi * np.e), rel=1e-5)

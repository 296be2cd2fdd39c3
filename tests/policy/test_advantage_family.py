"""A2C and off-policy PPO against numbers worked out by hand, and all of them on a small task."""

import math

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.entry import (
    serial_pipeline,
    serial_pipeline_onpolicy,
    serial_pipeline_onpolicy_ppg,
)
from ding.policy import A2CPolicy, PPGOffPolicy, PPOOffPolicy
from ding.policy.advantage_actor_critic import CountedSteps
from ding.rl_utils import ppo_value_error
from ding.utils.errors import ConfigError
from tests.policy.attributes import model_of, optimizer_of, value_norm_of
from tests.policy.batches import collected, make as build, rollout as samples
from tests.policy.networks import FixedActorCritic


def test_a2c_by_hand():
    network = FixedActorCritic()
    policy = build(A2CPolicy, network, learn=dict(learning_rate=0.0, grad_norm=1e9))
    log = policy.learn_mode.forward(samples([1.0, 2.0], [0, 1], [2.0, -1.0]))
    # Probabilities 1/4 and 3/4; returns are value + adv, so that the value's error is adv.
    policy_loss = -(2 * math.log(0.25) - math.log(0.75)) / 2
    value_loss = (2.0**2 + 1.0**2) / 2
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert log["policy_loss"] == pytest.approx(policy_loss, rel=1e-5)
    assert log["value_loss"] == pytest.approx(value_loss)
    assert log["entropy_loss"] == pytest.approx(entropy, rel=1e-5)
    total = policy_loss + 0.5 * value_loss - 0.01 * entropy
    assert log["total_loss"] == pytest.approx(total, rel=1e-5)
    # d/dscale of half the mean of (return - scale * value)^2.
    assert network.scale.grad.item() == pytest.approx(0.5 * -2 * (2 * 1 - 1 * 2) / 2)


def test_a2c_clips_its_gradient():
    network = FixedActorCritic()
    policy = build(A2CPolicy, network, learn=dict(learning_rate=0.0, grad_norm=0.1))
    policy.learn_mode.forward(samples([1.0, 2.0], [0, 1], [2.0, -2.0]))
    norm = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in network.parameters()))
    assert norm == pytest.approx(0.1, rel=1e-4)


def test_a2c_passes_over_its_data_once():
    policy = build(A2CPolicy, FixedActorCritic(), learn=dict(batch_size=4))
    updates = []
    optimizer_of(policy).register_step_post_hook(lambda *args: updates.append(args))
    log = policy.learn_mode.forward(samples([1.0] * 10, [0] * 10, [1.0] * 10))
    assert len(updates) == 3
    assert log["adv_abs_max"] == 1


def test_offpolicy_ppo_by_hand():
    network = FixedActorCritic()
    policy = build(
        PPOOffPolicy,
        network,
        learn=dict(learning_rate=0.0, value_norm=False, ppo_param_init=False, grad_clip_type=None),
    )
    # The policy of then chose both with the same probability.
    data = samples([1.0, 2.0], [1, 0], [2.0, -2.0], logit=torch.zeros(2, 2))
    log = policy.learn_mode.forward(data)
    # Ratios 1.5, of which 1.2 count, and 0.5, of which 0.8 counts.
    assert log["policy_loss"] == pytest.approx(-(1.2 * 2 - 0.8 * 2) / 2, rel=1e-5)
    assert log["value_loss"] == pytest.approx(0.5 * (2.0**2 + 2.0**2) / 2)
    assert log["clipfrac"] == 1


def test_offpolicy_ppo_weighs_samples():
    policy = build(
        PPOOffPolicy,
        FixedActorCritic(),
        priority=True,
        priority_IS_weight=True,
        learn=dict(learning_rate=0.0, value_norm=False, ppo_param_init=False),
    )
    more = dict(logit=torch.zeros(2, 2), IS=torch.tensor([0.0, 1.0]))
    log = policy.learn_mode.forward(samples([1.0, 2.0], [1, 0], [2.0, -2.0], **more))
    assert log["policy_loss"] == pytest.approx(0.8 * 2 / 2, rel=1e-5)
    assert log["priority"].tolist() == [2, 2]


def one_step_episodes(policy, rng, n=32):
    """Episodes of a step, whose returns are their rewards, 49 on average with a deviation of 10."""
    obs = rng.normal(size=(n, 3)).astype(np.float32)
    made = collected(policy, obs, 49 + 10 * rng.normal(size=n), np.ones(n, np.int64)).columns
    return {name: torch.as_tensor(np.asarray(part)) for name, part in made.items()}


@pytest.mark.parametrize("cls", [PPOOffPolicy, PPGOffPolicy])
def test_stored_values_stay_right_while_their_unit_moves(cls, monkeypatch):
    policy = build(cls, learn=dict(value_norm=True, learning_rate=0.01, ppo_param_init=True))
    seen = []

    def error(data, *args):
        seen.append(data)
        return ppo_value_error(data, *args)

    monkeypatch.setattr("ding.policy.ppo.ppo_value_error", error)
    monkeypatch.setattr("ding.policy.ppg.ppo_value_error", error)
    rng, buffer, drawn = np.random.default_rng(0), [], set()
    for _ in range(8):
        buffer.append(one_step_episodes(policy, rng))
        stored = {name: torch.cat([part[name] for part in buffer]) for name in buffer[0]}
        for _ in range(3):
            index = torch.from_numpy(rng.integers(len(stored["reward"]), size=64))
            policy.learn_mode.forward({name: part[index] for name, part in stored.items()})
            std = value_norm_of(policy).std
            _, value_old, return_, _ = seen.pop()
            torch.testing.assert_close(return_ * std, stored["reward"][index, 0], rtol=1e-4, atol=0)
            torch.testing.assert_close(value_old * std, stored["value"][index])
            drawn |= set(index.tolist())
    # Each sample counts once, however often it was drawn.
    returns = stored["reward"][sorted(drawn), 0]
    statistics = value_norm_of(policy).state_dict()
    assert statistics["count"] == pytest.approx(len(drawn), abs=0.01)
    assert statistics["mean"] == pytest.approx(returns.mean().item(), rel=1e-3)
    assert value_norm_of(policy).std == pytest.approx(returns.std().item(), rel=0.01)


def test_a_collectors_copy_stores_values_in_the_unit_of_the_reward():
    policy, collector = (build(PPOOffPolicy) for _ in range(2))
    policy.learn_mode.forward(one_step_episodes(policy, np.random.default_rng(0)))
    collector.collect_mode.load_state_dict(policy.learn_mode.state_dict())
    obs = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    value = collector.collect_mode.batched.forward(obs)["value"]
    raw = model_of(policy)(torch.from_numpy(obs), mode="compute_critic")["value"]
    std = value_norm_of(policy).std
    assert std > 5
    torch.testing.assert_close(value, raw.detach() * std)


def test_a_resumed_policy_counts_no_sample_again():
    policy, resumed = (build(PPOOffPolicy) for _ in range(2))
    data = one_step_episodes(policy, np.random.default_rng(0))
    policy.learn_mode.forward(dict(data))
    resumed.learn_mode.load_state_dict(policy.learn_mode.state_dict())
    resumed.learn_mode.forward(dict(data))
    assert value_norm_of(resumed).state_dict()["count"] == pytest.approx(32, abs=0.01)
    # Nor are its next samples taken for those.
    more = one_step_episodes(resumed, np.random.default_rng(1))
    assert not set(more["step_id"].tolist()) & set(data["step_id"].tolist())


def test_counted_steps_are_forgotten_when_no_buffer_can_have_them():
    counted = CountedSteps(buffer_size=2)
    assert counted.take_new(torch.tensor([3, 1, 3])).tolist() == [0, 1]
    assert counted.take_new(torch.tensor([1, 5, 6])).tolist() == [1, 2]
    assert counted.take_new(torch.tensor([7, 3])).tolist() == [0]
    assert counted.take_new(torch.tensor([3])).tolist() == [0]  # the oldest of five
    assert counted.take_new(None) == slice(None)


@pytest.mark.parametrize("cls", [A2CPolicy, PPOOffPolicy])
def test_unknown_action_space(cls):
    with pytest.raises(ConfigError, match="'general'"):
        build(cls, action_space="general")


ADVANCED = dict(batch_size=64, update_per_collect=20, adv_norm=True)
ROUNDS = dict(actor_epoch_per_collect=4, critic_epoch_per_collect=4, aux_train_epoch=2)
BUFFER = dict(replay_buffer_size=512, max_use=10)
#: By policy: settings to learn with, the replay buffer, the size of layers, and of collections.
BALANCE = {
    "a2c": (dict(batch_size=40, learning_rate=0.003, grad_norm=0.5, adv_norm=True), {}, 64, 160),
    "ppo_offpolicy": ({**ADVANCED, "learning_rate": 0.001}, dict(replay_buffer_size=320), 64, 160),
    "ppg": (
        dict(batch_size=64, learning_rate=0.002, adv_norm=True, value_norm=True, **ROUNDS),
        *({}, 32, 256),
    ),
    "ppg_offpolicy": (
        {**ADVANCED, "learning_rate": 0.002, "aux_train_epoch": 2, "aux_freq": 40},
        dict(multi_buffer=True, policy=BUFFER, value=BUFFER),
        *(32, 256),
    ),
}
PIPELINES = {"a2c": serial_pipeline_onpolicy, "ppg": serial_pipeline_onpolicy_ppg}
SLOW = ("a2c", "ppo_offpolicy")


@pytest.mark.parametrize(
    "policy", [pytest.param(p, marks=[pytest.mark.slow] * (p in SLOW)) for p in BALANCE]
)
@pytest.mark.timeout(120)
def test_learns_to_balance(policy, tmp_path, learned):
    learn, buffer, size, n_sample = BALANCE[policy]
    steps = 30_000 if policy.startswith("ppg") else 60_000
    main = EasyDict(
        exp_name=str(tmp_path / "run"),
        env=dict(
            env_id="CartPole-v1",
            collector_env_num=8,
            evaluator_env_num=5,
            n_evaluator_episode=5,
            stop_value=100 if policy.startswith("ppg") else 120,
        ),
        policy=dict(
            model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[size, size]),
            learn=learn,
            collect=dict(n_sample=n_sample, discount_factor=0.98, gae_lambda=0.95),
            eval=dict(evaluator=dict(eval_freq=40)),
        ),
    )
    if buffer:
        main.policy.other = dict(replay_buffer=buffer)
    create = EasyDict(
        env=dict(type="gymnasium"), env_manager=dict(type="base"), policy=dict(type=policy)
    )
    pipeline = PIPELINES.get(policy, serial_pipeline)
    pipeline((main, create), seed=learned.seed, max_env_step=steps)
    learned.converged(tmp_path / "run", steps)

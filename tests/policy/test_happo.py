"""Agents that learn one after the other."""

import copy
import re

import numpy as np
import pytest
import torch
from torch import nn

from ding.model import HAVAC
from ding.policy.happo import HAPPOPolicy
from ding.rl_utils import ppo_policy_error
from ding.utils.errors import ConfigError
from tests.policy.attributes import model_of
from tests.policy.batches import collected, make

AGENTS = 3
MODEL = dict(agent_obs_shape=4, global_obs_shape=5, action_shape=2, agent_num=AGENTS)


def build(network=None, **overrides):
    model = {**MODEL, "encoder_hidden_size_list": [16], **overrides.pop("model", {})}
    return make(HAPPOPolicy, network, model=model, **overrides)


def seen(n, rng):
    return {
        "agent_state": rng.normal(size=(n, AGENTS, 4)).astype(np.float32),
        "global_state": rng.normal(size=(n, 5)).astype(np.float32),
    }


def trajectory(policy, n=24):
    rng = np.random.default_rng(0)
    now, after = seen(n, rng), seen(n, rng)
    return collected(policy, now, rng.normal(size=n), [n], next_obs=after)


def test_network():
    network = HAVAC(4, 5, 2, AGENTS)
    rng = np.random.default_rng(0)
    obs = {name: torch.from_numpy(value) for name, value in seen(6, rng).items()}
    output = network(obs, mode="compute_actor_critic")
    assert output["logit"].shape == (6, AGENTS, 2)
    assert output["value"].shape == (6, AGENTS)
    for agent in range(AGENTS):
        own = {"agent_state": obs["agent_state"][:, agent], "global_state": obs["global_state"]}
        alone = network.agent_models[agent](own, mode="compute_actor_critic")
        assert torch.equal(output["logit"][:, agent], alone["logit"])
        assert torch.equal(output["value"][:, agent], alone["value"])
    mask = torch.ones(6, AGENTS, 2)
    mask[:, 1, 0] = 0
    logit = network({**obs, "action_mask": mask}, mode="compute_actor")["logit"]
    assert logit.softmax(-1)[:, 1, 0].max() == 0
    assert logit.softmax(-1)[:, 0, 0].min() > 0


def agents_of(logs):
    """Whose update each log is of."""
    return [int(re.search(r"agent(\d+)_policy_loss", " ".join(log))[1]) for log in logs]


@pytest.mark.parametrize("action_space", ["discrete", "continuous"])
def test_factors_are_the_changes_of_those_before(action_space, ppo_batches):
    space = {"action_space": action_space}
    learn = dict(learning_rate=0.01, epoch_per_collect=3, adv_norm=False)
    policy = build(**space, model=space, recompute_adv=False, learn=learn)
    data = trajectory(policy)
    before = copy.deepcopy(model_of(policy))
    order = agents_of(policy.learn_mode.forward(data))[::3]
    assert sorted(order) == list(range(AGENTS))
    adv = torch.as_tensor(data.columns["adv"])
    turns = [(i, part.adv / adv[:, i]) for i, part in zip(order, ppo_batches["policy"][::3])]
    obs = {name: torch.as_tensor(value) for name, value in data.columns["obs"].items()}
    action = torch.as_tensor(data.columns["action"])

    def log_prob(network, agent):
        logit = network(obs, mode="compute_actor")["logit"]
        if action_space == "discrete":
            logp = logit[:, agent].log_softmax(-1)
            return logp.gather(1, action[:, agent : agent + 1])[:, 0]
        normal = torch.distributions.Normal(logit["mu"][:, agent], logit["sigma"][:, agent])
        return normal.log_prob(action[:, agent]).sum(-1)

    expected = torch.ones(len(action))
    with torch.no_grad():
        for agent, factor in turns:
            assert torch.allclose(factor, expected, rtol=1e-4)
            ratio = (log_prob(model_of(policy), agent) - log_prob(before, agent)).exp()
            assert not torch.allclose(ratio, torch.ones(len(action)), atol=1e-3)
            expected = expected * ratio


def test_an_agents_loss_by_hand():
    policy = build(
        model={"agent_num": AGENTS},
        recompute_adv=False,
        learn=dict(
            learning_rate=0.0,
            epoch_per_collect=1,
            adv_norm=False,
            value_norm=False,
            entropy_weight=0.0,
        ),
    )
    data = trajectory(policy)
    logs = policy.learn_mode.forward(data)
    adv = torch.as_tensor(data.columns["adv"])
    # Nothing has changed: all ratios and factors are 1, and errors of values are advantages.
    assert len(logs) == AGENTS
    for agent, log in zip(agents_of(logs), logs):
        assert log[f"agent{agent}_policy_loss"] == pytest.approx(
            -adv[:, agent].mean().item(), abs=1e-5
        )
        assert log[f"agent{agent}_value_loss"] == pytest.approx(
            0.5 * adv[:, agent].pow(2).mean().item(), rel=1e-4
        )


def test_only_the_agent_whose_turn_it_is_moves(monkeypatch):
    policy = build(learn=dict(epoch_per_collect=1, learning_rate=0.01))
    states = []

    def watched(*args, **kwargs):
        states.append(copy.deepcopy(model_of(policy)))
        return ppo_policy_error(*args, **kwargs)

    monkeypatch.setattr("ding.policy.ppo.ppo_policy_error", watched)
    order = agents_of(policy.learn_mode.forward(trajectory(policy)))
    for agent, before, after in zip(order, states, [*states[1:], model_of(policy)]):
        moved = [
            any(not torch.equal(a, b) for a, b in zip(old.parameters(), new.parameters()))
            for old, new in zip(before.agent_models, after.agent_models)
        ]
        assert moved == [number == agent for number in range(AGENTS)]


def test_the_rates_of_all_agents_fall():
    schedule = dict(epoch_num=2, min_lr_lambda=0.5)
    learn = dict(lr_scheduler=schedule, learning_rate=1.0, epoch_per_collect=1)
    policy = build(learn=learn)
    logs = [policy.learn_mode.forward(trajectory(policy)) for _ in range(3)]
    rates = [{value for log in one for k, value in log.items() if "cur_lr" in k} for one in logs]
    assert rates == [{1.0}, {0.75}, {0.5}]


def test_critics_have_a_rate_of_their_own():
    policy = build(learn=dict(learning_rate=0.0, critic_learning_rate=0.01))
    before = copy.deepcopy(model_of(policy))
    policy.learn_mode.forward(trajectory(policy))
    for old, new in zip(before.agent_models, model_of(policy).agent_models):
        assert all(map(torch.equal, old.actor.parameters(), new.actor.parameters()))
        assert not all(map(torch.equal, old.critic.parameters(), new.critic.parameters()))


def test_what_cannot_be():
    for wrong, name in (
        (dict(model=dict(use_lstm=True)), "use_lstm"),
        (dict(agent_num=2), "agent_num=2"),
        (dict(action_space="hybrid"), "hybrid"),
        (dict(learn=dict(kl_beta=0.1)), "kl_beta"),
        (dict(network=nn.Linear(1, 1)), "Linear"),
    ):
        with pytest.raises(ConfigError, match=name):
            build(**wrong)

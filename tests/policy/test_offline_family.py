"""EDAC, implicit Q-learning and batch-constrained Q-learning against numbers worked out by hand."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

from ding.data import Columns
from ding.policy.cql import CQLPolicy, EDACPolicy
from ding.policy.ddpg import TD3BCPolicy
from ding.policy.offline_actor_critic import BCQPolicy, IQLPolicy
from ding.utils.errors import ConfigError
from tests.policy.attributes import evaluates, model_of, target_of
from tests.policy.batches import make, random_steps, steps
from tests.policy.networks import TWO_CRITICS, Linear

SMALL = dict(actor_head_hidden_size=16, critic_head_hidden_size=16)
MODELS = {
    CQLPolicy: SMALL,
    TD3BCPolicy: SMALL,
    EDACPolicy: dict(SMALL, ensemble_num=3),
    IQLPolicy: SMALL,
    BCQPolicy: dict(
        actor_head_hidden_size=[16], critic_head_hidden_size=[16, 16], vae_hidden_dims=[16]
    ),
}
STILL = dict(learning_rate_q=0.0, learning_rate_policy=0.0, discount_factor=0.5)


def build(cls, network=None, seed=0, **overrides):
    overrides["model"] = {**MODELS[cls], **overrides.get("model", {})}
    return make(cls, network, seed, **overrides)


@pytest.mark.parametrize("cls", MODELS)
class TestFamily:
    def test_critics_learn(self, cls, learned):
        rate = "learning_rate_critic" if cls is TD3BCPolicy else "learning_rate_q"
        learn = {"discount_factor": 0.0, rate: 0.01}
        policy = build(cls, seed=learned.seed, learn=learn)
        data = random_steps(64, 2)
        errors = [policy.learn_mode.forward(data)["td_error"] for _ in range(250)]
        learned.lowered(errors, 0.9)


# ---------------------------------------------------------------------- EDAC


def single_critics(policy, obs, action):
    """The critics' values ``[E, B]``, computed one after the other."""
    weights = [
        (layer.weight.view(layer.shape).transpose(1, 2), layer.bias.view(layer.shape[:2]))
        for layer, *_ in model_of(policy).critic.pred
    ]
    values = []
    for e in range(len(weights[0][0])):
        x = torch.cat([obs, action], -1)
        for depth, (weight, bias) in enumerate(weights):
            x = x @ weight[e] + bias[e]
            x = x if depth == len(weights) - 1 else x.relu()
        values.append(x.squeeze(-1))
    return values


def test_edac_penalises_critics_whose_gradients_agree():
    # Targets do not count: the learning rates are 0 and the two differ by the penalty alone.
    data, losses = random_steps(8, 2), []
    for eta in (0.0, 2.0):
        policy = build(EDACPolicy, learn=dict(STILL, eta=eta))
        torch.manual_seed(1)
        log = policy.learn_mode.forward(data)
        losses.append(log["total_loss"] - log["policy_loss"])
    obs, action = data.columns["obs"], data.columns["action"].clone().requires_grad_(True)
    gradients = [
        torch.autograd.grad(value.sum(), action)[0] for value in single_critics(policy, obs, action)
    ]
    cosines = [
        torch.cosine_similarity(a, b, -1).mean().item()
        for a, b in itertools.permutations(gradients, 2)
    ]
    assert losses[1] - losses[0] == pytest.approx(2.0 * sum(cosines) / (3 - 1), abs=1e-4)


def test_edac_takes_the_least_of_its_critics():
    policy, data = build(EDACPolicy, learn=dict(STILL, eta=0.0)), random_steps(8, 2)
    batch = {name: data.columns[name] for name in ("next_obs", "obs", "action")}
    torch.manual_seed(1)
    mu, sigma = model_of(policy)(batch["next_obs"], mode="compute_actor")["logit"]
    action = torch.tanh(mu + sigma * torch.randn_like(mu))
    each = single_critics(policy, batch["next_obs"], action)
    value = torch.stack(each).amin(0).detach()
    # Losses are the critics' mean squared errors.
    reward, done = data.columns["reward"][:, 0], torch.from_numpy(data.columns["done"]).float()
    target = reward + 0.5 * value * (1 - done)
    expected = [
        (q - target).pow(2).mean().item()
        for q in single_critics(policy, batch["obs"], batch["action"])
    ]
    torch.manual_seed(1)
    log = policy.learn_mode.forward(data)
    assert [log["critic_loss"], log["twin_critic_loss"]] == pytest.approx(expected[:2], rel=1e-5)
    assert log["total_loss"] - log["policy_loss"] == pytest.approx(sum(expected), rel=1e-4)
    assert log["priority"].shape == (8,)


# ---------------------------------------------------------------------- IQL


def test_iql_by_hand():
    network = Linear(0.4, TWO_CRITICS, sigma=0.5, value=0.5)
    policy = build(IQLPolicy, network, learn=dict(STILL, tau=0.8, beta=2.0))
    ones = [1.0, 1.0]
    data = steps(ones, [4.0, 4.0], [[0.3], [-1.0]], [[1.0], [1.0]], [False, True])
    log = policy.learn_mode.forward(data)
    # V(s') = 2, targets 1 + 0.5 * 2 and 1. Q = 1.6, 1.3 and -1, 0.
    errors = np.array([[1.6 - 2, -1 - 1], [1.3 - 2, 0 - 1]])
    # The minimum of Q minus V = 0.5: 0.8 and -1.5, which weigh 0.8 and 0.2.
    value_loss = (0.8 * 0.8**2 + 0.2 * 1.5**2) / 2
    losses = (errors**2).mean(1)
    assert [log["critic_loss"], log["critic_twin_loss"]] == pytest.approx(losses, rel=1e-5)
    critics = log["total_loss"] - log["actor_loss"]
    assert critics == pytest.approx(losses.sum() + value_loss, rel=1e-5)
    assert log["priority"].tolist() == pytest.approx(np.abs(errors).mean(0), rel=1e-5)
    weights = np.exp(2 * np.array([0.8, -1.5]))

    def log_prob(action):
        return -0.5 * ((action - 0.4) / 0.5) ** 2 - math.log(0.5 * math.sqrt(2 * math.pi))

    expected = -(weights * [log_prob(0.3), log_prob(-1.0)]).mean()
    assert log["actor_loss"] == pytest.approx(expected, rel=1e-5)
    assert log["bc_weight"] == pytest.approx(weights.mean(), rel=1e-5)
    # d/dv: -2 * weight * advantage * s.
    assert network.v.grad.item() == pytest.approx(-(2 * 0.8 * 0.8 - 2 * 0.2 * 1.5) / 2, rel=1e-4)


@pytest.mark.slow
def test_iql_value_is_an_expectile(learned):
    """With tau 0.9 the value lies near the best of several actions, with 0.5 at their mean."""
    values = {}
    for tau in (0.5, 0.9):
        policy = build(
            IQLPolicy,
            seed=learned.seed,
            model=dict(obs_shape=1, action_shape=1),
            learn=dict(tau=tau, learning_rate_q=0.01, target_theta=0.05),
        )
        ones, action = [1.0] * 32, [[-1.0], [1.0]] * 16
        data = steps(ones, ones, action, action, [True] * 32)
        for _ in range(400):
            policy.learn_mode.forward(data)
        with torch.no_grad():
            values[tau] = model_of(policy)(torch.ones(1, 1), mode="compute_value")["v_value"].item()
    # Of rewards -1 and 1 the expectile m solves 0.9 (1 - m) = 0.1 (m + 1).
    learned.near([values[0.5], values[0.9]], [0.0, 0.8], 0.1)


def test_iql_mistakes():
    with pytest.raises(ConfigError, match=r"learn\.tau is 1"):
        build(IQLPolicy, learn=dict(tau=1.0))


# ---------------------------------------------------------------------- BCQ


class Proposing(nn.Module):
    """Proposes ``p`` at all times, changes it by ``w``; critics ``Q = c s + d a``."""

    def __init__(self):
        super().__init__()
        self.actor = nn.Linear(1, 1)
        self.critic = nn.ParameterList([nn.Parameter(torch.tensor([[1.0, 2.0], [1.0, 1.0]]))])
        self.vae = nn.ParameterList([nn.Parameter(torch.tensor(0.3))])

    def forward(self, inputs, mode):
        if mode == "compute_vae":
            shape = inputs["obs"]
            recons = self.vae[0] * torch.ones_like(shape)
            if "action" not in inputs:
                return {"recons_action": recons}
            return {"recons_action": recons, "mu": shape * 0 + 0.5, "sigma": shape * 0 + 2.0}
        if mode == "compute_actor":
            return {"action": inputs["action"] + self.actor.bias}
        obs, action = inputs["obs"][:, 0], inputs["action"][:, 0]
        return {"q_value": [c[0] * obs + c[1] * action for c in self.critic[0]]}


def test_bcq_by_hand():
    network = Proposing()
    policy = build(BCQPolicy, network, learn=dict(STILL, learning_rate_vae=0.0, lmbda=0.75))
    with torch.no_grad():
        network.actor.bias.fill_(0.1)
        target_of(policy).actor.bias.fill_(-0.1)
    log = policy.learn_mode.forward(steps([1.0], [2.0], [[0.5]], [[1.0]], [False]))
    # Reconstruction 0.3 of 0.5; KL of N(0.5, 2) from N(0, 1).
    divergence = 0.5 * (0.25 + 4 - math.log(4) - 1)
    assert log["vae_loss"] == pytest.approx(0.2**2 + 0.5 * divergence, rel=1e-5)
    # Next: the target actor makes 0.2 of 0.3, Q 2.4 and 2.2.
    following = 0.75 * 2.2 + 0.25 * 2.4
    assert log["target_q_value"] == pytest.approx(following, rel=1e-5)
    losses = [(2 - 1 - 0.5 * following) ** 2, (1.5 - 1 - 0.5 * following) ** 2]
    assert [log["critic_loss"], log["twin_critic_loss"]] == pytest.approx(losses, rel=1e-4)
    assert log["td_error"] == pytest.approx(sum(losses) / 2, rel=1e-4)
    assert log["vae_loss"] == pytest.approx(log["recons_loss"] + 0.5 * log["kld_loss"], rel=1e-5)
    assert log["actor_loss"] == pytest.approx(-(1 + 2 * 0.4), rel=1e-5)
    assert network.actor.bias.grad.item() == pytest.approx(-2)


def test_bcq_takes_the_best_of_ten():
    class Drawing(Proposing):
        def forward(self, inputs, mode):
            if mode == "compute_vae" and "action" not in inputs:
                number = torch.arange(len(inputs["obs"]), dtype=torch.float32)
                return {"recons_action": (number % 10)[:, None] / 10}
            return super().forward(inputs, mode)

    policy = build(BCQPolicy, Drawing())
    with torch.no_grad():
        target_of(policy).actor.bias.fill_(0.0)
    obs, zeros = [0.0, 1.0], [[0.0], [0.0]]
    log = policy.learn_mode.forward(steps(obs, obs, zeros, zeros, [False, False]))
    # The best is 0.9, of which the critics say 1.8 and 0.9.
    best = 0.75 * 0.9 + 0.25 * 1.8
    assert log["target_q_value"] == pytest.approx(best + 0.5)


def test_bcq_stays_near_the_data(learned):
    model, learn = dict(obs_shape=1, action_shape=1), dict(learning_rate_vae=0.01)
    policy = build(BCQPolicy, seed=learned.seed, model=model, learn=learn)
    obs, next_obs = torch.randn(2, 64).tolist()
    data = steps(obs, next_obs, [[0.6]] * 64, [[-1.0]] * 64, [True] * 64)
    for _ in range(200):
        policy.learn_mode.forward(data)
    action = evaluates(policy, torch.randn(20, 1))["action"]
    learned.near(action.flatten().tolist(), [0.6], 0.15)


@pytest.mark.parametrize("cls", [BCQPolicy, EDACPolicy])
def test_own_networks_may_take_dicts(cls):
    class OfDict(nn.Module):
        """The network of this package on the sum of two parts."""

        def __init__(self):
            super().__init__()
            self.inner = model_of(build(cls))
            self.actor, self.critic = self.inner.actor, self.inner.critic
            if cls is BCQPolicy:
                self.vae = self.inner.vae

        def forward(self, inputs, mode):
            if "obs" in inputs:
                return self.inner({**inputs, "obs": sum(inputs["obs"].values())}, mode)
            return self.inner(sum(inputs.values()), mode)

    columns = random_steps(8, 2).columns
    parts = {name: dict.fromkeys("ab", columns[name] / 2) for name in ("obs", "next_obs")}
    log = build(cls, OfDict()).learn_mode.forward(Columns({**columns, **parts}))
    assert math.isfinite(log["total_loss"])

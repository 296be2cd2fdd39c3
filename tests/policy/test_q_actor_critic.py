"""DDPG, TD3, SAC and discrete SAC against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch
from easydict import EasyDict
from torch import nn

from ding.data import Columns
from ding.policy.ddpg import DDPGPolicy, TD3BCPolicy, TD3Policy
from ding.policy.sac import DiscreteSACPolicy, SACPolicy, squashed
from ding.utils import deep_merge_dicts, set_pkg_seed
from ding.utils.errors import ConfigError
from tests.policy.attributes import collects, evaluates, target_of
from tests.policy.batches import make, random_steps, steps
from tests.policy.networks import TWO_CRITICS, Linear

CONTINUOUS = {
    DDPGPolicy: {"action_space": "regression"},
    TD3Policy: {"action_space": "regression"},
    SACPolicy: {},
}
ALL = [*CONTINUOUS, DiscreteSACPolicy]


def build(cls, network=None, seed=0, **overrides):
    overrides["model"] = {**CONTINUOUS.get(cls, {}), **overrides.get("model", {})}
    return make(cls, network, seed, **overrides)


def samples(obs, action, reward, next_obs, done, **more):
    action, reward = ([[number] for number in column] for column in (action, reward))
    return steps(obs, next_obs, action, reward, done, **more)


STILL = dict(learning_rate_actor=0.0, learning_rate_critic=0.0, discount_factor=0.5)


def test_ddpg_by_hand():
    network = Linear()
    policy = build(DDPGPolicy, network, learn=STILL)
    data = samples([1.0, 1.0], [0.3, 0.3], [1.0, 1.0], [2.0, 2.0], [False, True])
    log = policy.learn_mode.forward(data)
    # Next: action 1, Q 4, target 1 + 2; or 1 at the end. Q(1, 0.3) = 1.6.
    assert log["priority"].tolist() == pytest.approx([1.4, 0.6])
    assert log["critic_loss"] == pytest.approx((1.4**2 + 0.6**2) / 2)
    # The actor's own action is 0.5: -Q(1, 0.5) = -2, and d/dw = -d s.
    assert log["actor_loss"] == pytest.approx(-2)
    assert network.w.grad.item() == pytest.approx(-2)
    # d/dc = mean of 2 δ s, with δ = Q - target; the actor's loss adds nothing to it.
    assert network.c.grad[0].tolist() == pytest.approx([-1.4 + 0.6, 0.3 * (-1.4 + 0.6)])


def test_importance_weights_scale_the_critics_loss():
    weighted = build(
        DDPGPolicy, Linear(), learn=STILL, priority=True, priority_IS_weight=True
    ).learn_mode.forward(
        samples(
            *([1.0, 1.0], [0.3, 0.3], [1.0, 1.0], [2.0, 2.0], [False, True]),
            IS=torch.tensor([0.5, 1.0]),
        )
    )
    assert weighted["critic_loss"] == pytest.approx((0.5 * 1.4**2 + 0.6**2) / 2)


@pytest.mark.parametrize("gamma", [0.5, 0.99])
def test_normalised_rewards_end_where_a_sample_does(gamma):
    # Rewards 1 and 2, and 6 of a sample that ends after one step: mean 3, deviation sqrt(7).
    network = Linear(critics=((0.0, 0.0),))
    learn = dict(discount_factor=gamma)
    policy = make(DDPGPolicy, network, nstep=2, reward_batch_norm=True, learn=learn)
    batch = steps([0.0, 0.0], [0.0, 0.0], [[0.0], [0.0]], [[1.0, 2.0], [6.0, 0.0]], [False, True])
    discount = torch.tensor([gamma**2, gamma])
    log = policy.learn_mode.forward(batch.with_columns(value_gamma=discount))
    targets = np.array([-2 - gamma, 3]) / math.sqrt(7)
    assert log["critic_loss"] == pytest.approx((targets**2).mean(), rel=1e-5)


def test_td3_takes_the_lesser_critic_and_delays_the_actor():
    network = Linear(critics=TWO_CRITICS)
    policy = build(TD3Policy, network, learn=dict(STILL, noise=False, target_theta=1.0))
    data = samples([1.0], [0.3], [1.0], [2.0], [False])
    log = policy.learn_mode.forward(data)
    # Next: Q 4 and 3, target 1 + 1.5; Q(1, 0.3) = 1.6 and 1.3.
    assert [log["critic_loss"], log["critic_twin_loss"]] == pytest.approx([0.9**2, 1.2**2])
    assert log["td_error"] == pytest.approx((0.9**2 + 1.2**2) / 2)
    assert log["target_q_value"] == 3
    assert log["priority"].tolist() == pytest.approx([(0.9 + 1.2) / 2])
    assert "actor_loss" not in log
    with torch.no_grad():
        network.c.add_(1)
    assert target_of(policy).c.tolist() == [[1, 2], [1, 1]]
    log = policy.learn_mode.forward(data)
    assert log["actor_loss"] == pytest.approx(-(2 + 3 * 0.5))  # of the first critic
    assert target_of(policy).c.tolist() == [[2, 3], [2, 2]]


def test_td3_smooths_its_targets_within_bounds():
    learn = dict(STILL, noise_sigma=100.0, noise_range=dict(min=-0.1, max=0.1))
    network = Linear(actor=0.45, critics=((0.0, 1.0), (0.0, 1.0)))
    policy = build(TD3Policy, network, learn=learn)
    n = 400
    data = samples([0.0] * n, [0.0] * n, [0.0] * n, [2.0] * n, [False] * n)
    error = policy.learn_mode.forward(data)["priority"] / 0.5
    # The action 0.9 plus noise of about ±0.1; more than 1 it cannot be.
    assert sorted({round(e, 2) for e in error.tolist()})[0] == pytest.approx(0.8, abs=0.01)
    assert error.max().item() == pytest.approx(1.0, abs=1e-5)


def test_td3_bc_by_hand():
    network = Linear(critics=TWO_CRITICS)
    learn = dict(learning_rate_actor=0.0, learning_rate_critic=0.0, actor_update_freq=1, alpha=3.0)
    policy = build(TD3BCPolicy, network, learn=learn)
    data = samples([1.0, -3.0], [0.3, 0.0], [1.0, 1.0], [2.0, 2.0], [True, True])
    log = policy.learn_mode.forward(data)
    # Actions 0.5 and -1.5, Q of the first critic 2 and -6: λ = 3 / 4, mean Q -2.
    bc_loss = (0.2**2 + 1.5**2) / 2
    assert log["bc_loss"] == pytest.approx(bc_loss)
    assert log["actor_loss"] == pytest.approx(bc_loss + 0.75 * 2)
    # d/dw: of the data's part 2 (a - a') s, of the critic's -λ d s; λ carries no gradient.
    gradient = (2 * 0.2 * 1 + 2 * -1.5 * -3) / 2 - 0.75 * (2 * 1 + 2 * -3) / 2
    assert network.w.grad.item() == pytest.approx(gradient, rel=1e-5)


def test_squashed_log_prob():
    torch.manual_seed(0)
    mu, sigma = torch.randn(50, 3) * 2, torch.rand(50, 3) + 0.1
    action, log_prob = squashed([mu, sigma])
    normal = torch.distributions.Normal(mu.double(), sigma.double())
    squash = torch.distributions.transforms.TanhTransform(cache_size=1)
    reference = torch.distributions.TransformedDistribution(normal, [squash])
    inner = action.abs().amax(-1) < 0.999  # beyond, float32 has lost the draw
    expected = reference.log_prob(action.double()).sum(-1)
    assert inner.sum() > 10
    assert torch.allclose(log_prob[inner].double(), expected[inner], atol=2e-3)


def test_sac_by_hand():
    network = Linear(critics=TWO_CRITICS, sigma=0.3)
    learn = dict(learning_rate_q=0.0, learning_rate_policy=0.0, discount_factor=0.5)
    policy = build(SACPolicy, network, learn=dict(learn, alpha=0.2, auto_alpha=False))
    torch.manual_seed(1)
    log = policy.learn_mode.forward(samples([1.0], [0.3], [1.0], [2.0], [False]))
    torch.manual_seed(1)

    def act(mean):
        draw = mean + 0.3 * torch.randn(1, 1).item()
        density = -0.5 * ((draw - mean) / 0.3) ** 2 - math.log(0.3 * math.sqrt(2 * math.pi))
        return math.tanh(draw), density - math.log(1 - math.tanh(draw) ** 2)

    action, log_prob = act(1.0)
    following = min(2 + 2 * action, 2 + action) - 0.2 * log_prob
    target = 1 + 0.5 * following
    assert log["target_q_value"] == pytest.approx(following, rel=1e-5)
    assert log["critic_loss"] == pytest.approx((1.6 - target) ** 2, rel=1e-5)
    assert log["twin_critic_loss"] == pytest.approx((1.3 - target) ** 2, rel=1e-5)
    action, log_prob = act(0.5)
    assert log["policy_loss"] == pytest.approx(
        0.2 * log_prob - min(1 + 2 * action, 1 + action), rel=1e-5
    )
    assert log["alpha"] == 0.2


@pytest.mark.parametrize("log_space", [True, False])
@pytest.mark.parametrize(("target_entropy", "rises"), [(5.0, True), (-5.0, False)])
def test_temperature_follows_the_entropy(log_space, target_entropy, rises):
    policy = build(
        SACPolicy,
        learn=dict(
            log_space=log_space, target_entropy=target_entropy, learning_rate_alpha=0.01, alpha=0.2
        ),
    )
    alphas = [policy.learn_mode.forward(random_steps(16, 2))["alpha"] for _ in range(10)]
    assert (alphas[-1] > 0.21) if rises else (alphas[-1] < 0.19)
    assert min(alphas) >= 0


class Table(nn.Module):
    """Logits and two critics' values of two actions, the same in every state."""

    def __init__(self, logit, q_values):
        super().__init__()
        self.logit = nn.Parameter(torch.tensor(logit))
        self.q = nn.Parameter(torch.tensor(q_values))
        self.actor, self.critic = nn.ParameterList([self.logit]), nn.ParameterList([self.q])

    def forward(self, inputs, mode):
        if mode == "compute_actor":
            return {"logit": self.logit.expand(len(inputs), -1)}
        return {"q_value": [q.expand(len(inputs), -1) for q in self.q]}


def test_discrete_sac_by_hand():
    network = Table([0.0, math.log(3)], [[1.0, 2.0], [3.0, 1.0]])
    learn = dict(learning_rate_q=0.0, learning_rate_policy=0.0, discount_factor=0.5)
    policy = build(DiscreteSACPolicy, network, learn=dict(learn, alpha=0.2, auto_alpha=False))
    data = samples([1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [False, True])
    data = Columns({**data.columns, "action": torch.tensor([1, 0])})
    log = policy.learn_mode.forward(data)
    prob, least = np.array([0.25, 0.75]), np.array([1.0, 1.0])
    value = (prob * (least - 0.2 * np.log(prob))).sum()
    targets = np.array([1 + 0.5 * value, 1])
    errors = np.array([[2, 1], [1, 3]]) - targets  # critics by samples
    losses = [log["critic_loss"], log["twin_critic_loss"]]
    assert losses == pytest.approx((errors**2).mean(1), rel=1e-5)
    assert log["priority"].tolist() == pytest.approx(np.abs(errors).mean(0), rel=1e-5)
    assert log["policy_loss"] == pytest.approx(
        (prob * (0.2 * np.log(prob) - least)).sum(), rel=1e-5
    )
    assert network.q.grad.abs().sum() > 0


def test_sac_knows_the_density_of_what_it_collects():
    policy = build(SACPolicy, collect=dict(collector_logit=True))
    assert policy.collect_mode.batched.transition_outputs == ("logit", "log_prob")
    out = collects(policy, torch.zeros(50, 3))
    drawn = torch.distributions.Normal(out["logit"]["mu"], out["logit"]["sigma"])
    tanh = torch.distributions.TransformedDistribution(drawn, torch.distributions.TanhTransform())
    expected = tanh.log_prob(out["action"]).sum(-1)
    torch.testing.assert_close(out["log_prob"], expected, rtol=1e-3, atol=1e-3)


def test_discrete_sac_draws_from_its_policy():
    policy = build(DiscreteSACPolicy, Table([0.0, math.log(3)], [[1.0, 2.0]] * 2))
    action = collects(policy, torch.zeros(20_000, 1))["action"]
    assert action.float().mean().item() == pytest.approx(0.75, abs=0.02)
    assert evaluates(policy, torch.zeros(2, 1))["action"].tolist() == [1, 1]


def test_usual_entropies():
    for cls, usual in ((SACPolicy, -2), (DiscreteSACPolicy, 0.98 * math.log(2))):
        policy = build(cls, learn=dict(alpha=0.2))
        log = policy.learn_mode.forward(random_steps(8, None if cls is DiscreteSACPolicy else 2))
        # The loss is the logarithm of alpha times the excess of entropy.
        excess = log["alpha_loss"] / math.log(0.2)
        assert log["entropy"] - excess == pytest.approx(usual, abs=1e-5)


@pytest.mark.parametrize("cls", ALL)
class TestFamily:
    def test_critics_learn(self, cls, learned):
        policy = build(cls, seed=learned.seed, learn=dict(discount_factor=0.0))
        data = random_steps(64, None if cls is DiscreteSACPolicy else 2)
        losses = [policy.learn_mode.forward(data)["critic_loss"] for _ in range(200)]
        learned.lowered(losses, 0.7)

    def test_a_network_of_another_kind_is_refused(self, cls):
        with pytest.raises(ConfigError, match="compute_actor"):
            build(cls, nn.Linear(3, 2))


def agents_samples(n, agents=3, continuous=False, mask=None):
    rng = np.random.default_rng(0)

    def obs():
        part = {
            "agent_state": torch.from_numpy(rng.normal(size=(n, agents, 4)).astype(np.float32)),
            "global_state": torch.from_numpy(rng.normal(size=(n, 6)).astype(np.float32)),
        }
        return part if mask is None else {**part, "action_mask": mask.expand(n, agents, -1)}

    action = torch.from_numpy(rng.integers(2, size=(n, agents)))
    if continuous:
        action = torch.from_numpy(rng.uniform(-1, 1, (n, agents, 2)).astype(np.float32))
    return Columns(
        {
            "obs": obs(),
            "next_obs": obs(),
            "action": action,
            "reward": torch.from_numpy(rng.normal(size=(n, 1)).astype(np.float32)),
            "done": rng.random(n) < 0.3,
        }
    )


@pytest.mark.parametrize("cls", ALL)
def test_several_agents(cls):
    model = dict(agent_obs_shape=4, global_obs_shape=6, action_shape=2, twin_critic=True)
    if cls is not DiscreteSACPolicy:
        model["action_space"] = CONTINUOUS[cls].get("action_space", "reparameterization")
    cfg = deep_merge_dicts(cls.default_config(), EasyDict(model=model, multi_agent=True))
    set_pkg_seed(0, use_cuda=False)
    policy = cls(cfg)
    data = agents_samples(16, continuous=cls is not DiscreteSACPolicy)
    logs = [policy.learn_mode.forward(data) for _ in range(4)]
    assert all(math.isfinite(log["total_loss"]) for log in logs)
    assert logs[0]["priority"].shape == (16,)
    obs = {
        i: {"agent_state": np.ones((3, 4), "f4"), "global_state": np.ones(6, "f4")} for i in (0, 2)
    }
    for mode in (policy.collect_mode, policy.eval_mode):
        shape = (3,) if cls is DiscreteSACPolicy else (3, 2)
        assert {i: tuple(out["action"].shape) for i, out in mode.forward(obs).items()} == {
            0: shape,
            2: shape,
        }


@pytest.mark.parametrize("alpha", [0.2, 3.0])
def test_masked_actions_have_no_probability(alpha):
    model = dict(agent_obs_shape=4, global_obs_shape=6, action_shape=2, twin_critic=True)
    given = EasyDict(model=model, learn=dict(alpha=alpha))
    cfg = deep_merge_dicts(DiscreteSACPolicy.default_config(), given)
    policy = DiscreteSACPolicy(EasyDict(cfg, multi_agent=True))
    data = agents_samples(16, mask=torch.tensor([0.0, 1.0]))
    log = policy.learn_mode.forward(data)
    # One action is left: its entropy is 0.
    assert log["entropy"] == pytest.approx(0, abs=1e-6)
    assert math.isfinite(log["policy_loss"])
    out = collects(policy, data.columns["obs"], eps=0.5)
    assert out["action"].unique().tolist() == [1]


def test_overrides_of_the_critic_reach_the_actors_loss():
    class Doubled(Linear):
        def forward(self, inputs, mode):
            output = super().forward(inputs, mode)
            if mode == "compute_critic":
                output["q_value"] = [2 * q for q in output["q_value"]]
            return output

        def first_q_value(self, inputs):
            raise AssertionError("another way around forward")

    class Shifted(TD3Policy):
        def _judge(self, model, obs, action):
            return [q + 1 for q in super()._judge(model, obs, action)]

    model = {"obs_shape": 1, "action_shape": 1, "action_space": "regression"}
    set_pkg_seed(0, use_cuda=False)
    cfg = deep_merge_dicts(Shifted.default_config(), EasyDict(model=model))
    cfg.learn.update(learning_rate_critic=0.0, actor_update_freq=1)
    policy = Shifted(cfg, model=Doubled(critics=((1.0, 2.0), (3.0, 4.0))))
    data = samples([0.5, -1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [True, True])
    obs = data.columns["obs"]
    expected = -(2 * (obs + 2 * 0.5 * obs) + 1).mean()
    log = policy.learn_mode.forward(data)
    assert log["actor_loss"] == pytest.approx(expected.item())

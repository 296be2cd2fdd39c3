"""C51, QR-DQN, Rainbow, soft Q-learning and Munchausen DQN against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from ding.model import FQF
from ding.policy.dqn import C51Policy, RainbowDQNPolicy
from ding.policy.qrdqn import FQFPolicy, IQNPolicy, QRDQNPolicy
from ding.policy.sql import MDQNPolicy, SQLPolicy
from ding.utils.errors import ConfigError
from tests.policy.attributes import collects, evaluates, model_of, target_of
from tests.policy.batches import make as build, random_steps, steps as samples
from tests.policy.networks import Table, TableQuantiles

FAMILY = [C51Policy, QRDQNPolicy, IQNPolicy, FQFPolicy, RainbowDQNPolicy, SQLPolicy, MDQNPolicy]


class TableAtoms(nn.Module):
    """Probabilities of the returns -1, 0 and 1, by state and action."""

    def __init__(self, probabilities):
        super().__init__()
        self.scores = nn.Parameter(torch.tensor(probabilities).log())

    def forward(self, x):
        distribution = self.scores[x[:, 0].long()].softmax(-1)
        return {
            "logit": distribution @ torch.tensor([-1.0, 0.0, 1.0]),
            "distribution": distribution,
        }


def test_c51_by_hand():
    low, even, high = [0.98, 0.01, 0.01], [1 / 3, 1 / 3, 1 / 3], [0.01, 0.01, 0.98]
    network = TableAtoms([[even, low], [low, high]])
    policy = build(C51Policy, network, discount_factor=0.5, model=dict(v_min=-1, v_max=1, n_atom=3))
    data = samples([0.0, 0.0], [1.0, 1.0], [0, 0], [[0.5], [0.25]], [False, True])
    log = policy.learn_mode.forward(data)
    # Next state: action 1, atoms move to 0, 0.5 and 1; the one at 0.5 is shared out by halves.
    # Done: all mass at 0.25, of which a quarter goes to 1. Every probability here is 1/3.
    assert log["priority"].tolist() == pytest.approx([math.log(3)] * 2)
    assert log["total_loss"] == pytest.approx(math.log(3))
    # dL/dscore = p - target: the mean over both samples of 1/3 - target, for action 0.
    target = (np.array([0, 0.01 + 0.005, 0.98 + 0.005]) + np.array([0, 0.75, 0.25])) / 2
    gradient = network.scores.grad[0]
    assert gradient[0].tolist() == pytest.approx((1 / 3 - target).tolist(), abs=1e-6)
    assert gradient[1].tolist() == [0, 0, 0]


def test_qrdqn_by_hand():
    network = TableQuantiles([[[0.0, 1.0], [9.0, 9.0]], [[0.0, 0.0], [2.0, 4.0]]])
    policy = build(QRDQNPolicy, network, discount_factor=0.5)
    log = policy.learn_mode.forward(samples([0.0], [1.0], [0], [[-1.0]], [False]))
    # Targets -1 + 0.5 * (2, 4) = (0, 1) against predictions (0, 1): errors 0, 1; -1, 0. Huber of 1
    # is 1/2. Prediction 0 lies below target 1: weight 0.25. Prediction 1 above 0: |0.75 - 1|.
    assert log["priority"].tolist() == pytest.approx([(0.25 / 2) / 2 + (0.25 / 2) / 2])


@pytest.mark.parametrize("place", [dict(learn=dict(kappa=0.5)), dict(kappa=0.5)])
def test_quantile_loss_is_linear_beyond_kappa(place):
    network = TableQuantiles([[[0.0, 0.0], [0.0, 0.0]]])
    policy = build(QRDQNPolicy, network, **place)
    log = policy.learn_mode.forward(samples([0.0], [0.0], [0], [[2.0]], [True]))
    # Each error is 2: Huber 0.5 * (2 - 0.25), over kappa 1.75; weights 0.25 and 0.75.
    assert log["priority"].tolist() == pytest.approx([1.75 * (0.25 + 0.75)])


def test_iqn_draws_to_learn_and_not_to_act():
    policy = build(IQNPolicy, model=dict(obs_shape=3, action_shape=2, num_quantiles=8))
    obs = torch.randn(4, 3)
    acting = [evaluates(policy, obs)["q"] for _ in range(2)]
    assert torch.equal(*acting)
    policy.learn_mode.forward(random_samples(4))
    learning = [model_of(policy)(obs) for _ in range(2)]
    assert not torch.equal(learning[0]["tau"], learning[1]["tau"])
    assert learning[0]["tau"].shape == (4, 8, 1)
    assert target_of(policy).forward(obs)["tau"].std() > 0.1


@pytest.mark.slow
def test_iqn_learns_the_quantiles_of_a_noisy_reward(learned):
    policy = build(
        IQNPolicy,
        seed=learned.seed,
        discount_factor=0.0,
        # A loss that is linear nearly everywhere, as that of quantiles without Huber's.
        learn=dict(learning_rate=0.003, kappa=0.02),
        model=dict(obs_shape=1, action_shape=2, encoder_hidden_size_list=[32, 32]),
    )
    for _ in range(400):
        reward = torch.rand(64, 1).tolist()
        zeros, done = [0.0] * 64, [True] * 64
        policy.learn_mode.forward(samples(zeros, zeros, [0] * 64, reward, done))
    out = evaluates(policy, torch.zeros(1, 1))
    # Of a uniform reward, the quantile at τ is τ.
    deviation = (out["q"][0, 0] - out["tau"][0, :, 0]).abs()
    learned.at_most(deviation.mean().item(), 0.08, "mean deviation")


def wasserstein_distance(fractions, quantile):
    """Of a quantile function from its steps at the middles of ``fractions``, by small pieces."""
    share = (np.arange(200_000) + 0.5) / 200_000
    piece = np.searchsorted(fractions[1:-1], share)
    middles = (fractions[1:] + fractions[:-1]) / 2
    return np.abs(quantile(share) - quantile(middles[piece])).mean()


def test_fqf_shares_go_down_the_distance():
    policy = build(FQFPolicy)
    fractions = np.array([0, 0.2, 0.35, 0.8, 1])

    def quantile(tau):
        return 3 * tau**2 - 1

    leaf = torch.tensor(fractions[None], requires_grad=True)
    other = torch.full((4,), 7.0)
    output = {
        "fractions": leaf,
        "q": torch.stack([other, torch.from_numpy(quantile((fractions[1:] + fractions[:-1]) / 2))])[
            None
        ],
        "q_fractions": torch.stack([other[1:], torch.from_numpy(quantile(fractions[1:-1]))])[None],
        "entropy": torch.zeros(1),
    }
    policy._fraction_loss(output, torch.tensor([1])).backward()
    for i in (1, 2, 3):
        step = np.zeros(5)
        step[i] = 1e-3
        ends = [wasserstein_distance(fractions + sign * step, quantile) for sign in (1, -1)]
        assert leaf.grad[0, i].item() == pytest.approx((ends[0] - ends[1]) / 2e-3, abs=2e-3)


def test_fqf_values_are_means_over_the_proposed_shares():
    torch.manual_seed(0)
    network = FQF(3, 2, num_quantiles=5)
    torch.nn.init.normal_(network.head.quantiles_proposal[0].bias)
    out = network(torch.randn(4, 3))
    fractions = out["fractions"]
    assert torch.allclose(fractions[:, [0, -1]], torch.tensor([0.0, 1.0]).expand(4, 2))
    share = fractions.diff()
    assert torch.allclose(out["logit"], (out["q"] * share[:, None]).sum(-1), atol=1e-5)
    assert torch.allclose(out["tau"][..., 0], fractions[:, :-1] + share / 2, atol=1e-6)
    assert torch.allclose(out["entropy"], -(share * share.log()).sum(1), atol=1e-5)


def test_fqf_learns_shares_and_values_apart():
    policy = build(FQFPolicy, nstep=1, learn=dict(learning_rate_fraction=0.0, ent_coef=0.1))
    other = build(
        FQFPolicy, nstep=1, learn=dict(learning_rate_fraction=0.1, learning_rate_quantile=0.0)
    )

    def parameters(policy, wanted):
        items = model_of(policy).state_dict().items()
        return [v.clone() for k, v in items if ("quantiles_proposal" in k) == wanted]

    def changed(before, after):
        return any(not torch.equal(one, two) for one, two in zip(before, after))

    for one, share_moves in ((policy, False), (other, True)):
        shares, values = parameters(one, True), parameters(one, False)
        log = one.learn_mode.forward(random_samples(16))
        assert changed(shares, parameters(one, True)) == share_moves
        assert changed(values, parameters(one, False)) != share_moves
    assert {"cur_lr_fraction_loss", "fraction_loss", "quantile_loss"} <= log.keys()


def test_fqf_needs_a_network_that_proposes():
    with pytest.raises(ConfigError, match=r"it lacks .*fractions"):
        build(FQFPolicy, Table([[0.0, 1.0]]))


def test_sql_by_hand():
    alpha = 0.5
    policy = build(
        SQLPolicy, Table([[1.0, 2.0], [3.0, 4.0]]), discount_factor=0.5, learn=dict(alpha=alpha)
    )
    data = samples([0.0, 0.0], [1.0, 1.0], [0, 1], [[1.0], [1.0]], [False, True])
    log = policy.learn_mode.forward(data)
    soft = alpha * math.log(math.exp(3 / alpha) + math.exp(4 / alpha))
    assert log["priority"].tolist() == pytest.approx([1 + 0.5 * soft - 1, 1])


def test_sql_draws_by_its_soft_policy():
    policy = build(SQLPolicy, Table([[0.0, math.log(3)]]), learn=dict(alpha=1.0))
    action = collects(policy, torch.zeros(20_000, 1), eps=0.0)["action"]
    assert action.float().mean().item() == pytest.approx(0.75, abs=0.02)
    action = evaluates(policy, torch.zeros(10, 1))["action"]
    assert action.tolist() == [1] * 10


def test_mdqn_by_hand():
    tau, m_alpha, q, next_q = 0.5, 0.9, np.array([1.0, 2.0]), np.array([3.0, 4.0])
    policy = build(
        MDQNPolicy,
        Table([q.tolist(), next_q.tolist()]),
        discount_factor=0.5,
        entropy_tau=tau,
        m_alpha=m_alpha,
    )
    log = policy.learn_mode.forward(samples([0.0], [1.0], [1], [[1.0]], [False]))
    log_policy = q / tau - math.log(np.exp(q / tau).sum())
    policy_next = np.exp(next_q / tau) / np.exp(next_q / tau).sum()
    soft = (policy_next * (next_q - tau * np.log(policy_next))).sum()
    target = 1 + m_alpha * tau * log_policy[1] + 0.5 * soft
    assert log["priority"].tolist() == pytest.approx([abs(target - 2)], rel=1e-5)


def test_mdqn_bounds_its_bonus_and_gives_it_to_the_first_reward():
    policy = build(MDQNPolicy, Table([[0.0, 100.0]]), nstep=2, discount_factor=0.5)
    data = samples([0.0], [0.0], [0], [[1.0, 4.0]], [True], value_gamma=torch.tensor([0.25]))
    log = policy.learn_mode.forward(data)
    # tau * log π = -100 is cut to -1; nothing comes after the end.
    assert log["priority"].tolist() == pytest.approx([1 - 0.9 + 0.5 * 4])


def random_samples(n, **more):
    return random_steps(n, value_gamma=torch.full((n,), 0.9), IS=torch.ones(n), **more)


@pytest.mark.parametrize("cls", FAMILY)
class TestFamily:
    def test_update_lowers_the_loss(self, cls, learned):
        rates = dict.fromkeys(("learning_rate", "learning_rate_quantile"), 0.003)
        policy = build(cls, seed=learned.seed, learn=rates, nstep=3)
        data = random_samples(64, nstep=3)
        logs = [policy.learn_mode.forward(data) for _ in range(60)]
        # FQF's fractions have a loss that may be negative.
        losses = [log["total_loss"] - log.get("fraction_loss", 0) for log in logs]
        learned.lowered(losses, 1.0)

    def test_several_action_parts(self, cls):
        policy = build(cls, nstep=1, model=dict(obs_shape=3, action_shape=[2, 2, 2]))
        log = policy.learn_mode.forward(
            random_samples(8).with_columns(action=torch.randint(2, (8, 3)))
        )
        assert math.isfinite(log["total_loss"])
        assert log["priority"].shape == (8,)
        out = policy.collect_mode.forward({0: torch.zeros(3), 4: torch.ones(3)}, eps=0.5)
        assert set(out) == {0, 4}
        assert out[0]["action"].shape == (3,)


def test_unusable_atoms_are_refused():
    with pytest.raises(ConfigError, match="v_min=1, v_max=1"):
        build(C51Policy, model=dict(obs_shape=3, action_shape=2, v_min=1, v_max=1))


@pytest.mark.parametrize(
    ("cls", "wrong", "key"),
    [(SQLPolicy, {"learn": {"alpha": 0}}, "alpha"), (MDQNPolicy, {"entropy_tau": 0}, "tau")],
)
def test_temperatures_are_positive(cls, wrong, key):
    with pytest.raises(ConfigError, match=key):
        build(cls, **wrong)

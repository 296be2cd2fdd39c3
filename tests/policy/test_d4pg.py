"""D4PG, and n-step targets of the other actor-critics, against numbers worked out by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from ding.data import Columns
from ding.model import QACDIST
from ding.policy import D4PGPolicy, DDPGPolicy, SACPolicy, TD3Policy
from ding.utils.errors import ConfigError
from tests.policy.attributes import model_of
from tests.policy.batches import make, random_steps, steps

ATOMS = torch.tensor([-1.0, 0.0, 1.0])


class TwoStates(nn.Module):
    """Actor ``a = w s``; three returns with the probabilities of the state, whatever the action."""

    def __init__(self, distributions):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(0.5))
        self.scores = nn.Parameter(torch.tensor(distributions).log())
        self.actor, self.critic = nn.ParameterList([self.w]), nn.ParameterList([self.scores])

    def forward(self, inputs, mode):
        if mode == "compute_actor":
            return {"action": self.w * inputs}
        distribution = self.scores.softmax(-1)[inputs["obs"][:, 0].long()]
        q_value = distribution @ ATOMS + 0.1 * inputs["action"][:, 0]
        return {"q_value": q_value, "distribution": distribution}


def build(cls, network=None, seed=0, **overrides):
    own = {"action_space": "regression"} if cls in (DDPGPolicy, TD3Policy) else {}
    overrides["model"] = {**own, **overrides.get("model", {})}
    return make(cls, network, seed, **overrides)


def test_d4pg_by_hand():
    network = TwoStates([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    learn = dict(learning_rate_actor=0.0, learning_rate_critic=0.0, discount_factor=0.5)
    policy = build(
        D4PGPolicy,
        network,
        learn=learn,
        nstep=2,
        model=dict(v_min=-1, v_max=1, n_atom=3),
        priority_IS_weight=False,
    )
    # Two steps, and one after which the episode ended.
    rewards, gamma = [[0.25, 0.5], [0.25, 0.0]], torch.tensor([0.25, 0.5])
    data = steps(
        *([0.0, 0.0], [1.0, 1.0], [[0.3], [0.3]], rewards, [False, True]), value_gamma=gamma
    )
    log = policy.learn_mode.forward(data)
    # The atoms move to 0.5 - 0.25, 0.5 and 0.5 + 0.25; or all mass is at 0.25.
    first = torch.tensor([0.0, 0.1 * 0.75 + 0.1 * 0.5 + 0.8 * 0.25, 0.0])
    first[2] = 1 - first[1]
    second = torch.tensor([0.0, 0.75, 0.25])
    log_p = torch.tensor([0.2, 0.5, 0.3]).log()
    expected = [-(first @ log_p).item(), -(second @ log_p).item()]
    assert log["priority"].tolist() == pytest.approx(expected)
    assert log["critic_loss"] == pytest.approx(sum(expected) / 2)
    # The actor's gradient comes from the mean of the distribution at its own action, 0.
    assert log["actor_loss"] == pytest.approx(-0.1, abs=1e-6)


def trajectory():
    """Three steps of one, whose last terminates, in columns."""
    rng = np.random.default_rng(0)
    return {
        "obs": rng.normal(size=(3, 3)).astype(np.float32),
        "next_obs": rng.normal(size=(3, 3)).astype(np.float32),
        "action": rng.uniform(-1, 1, (3, 2)).astype(np.float32),
        "reward": np.array([1.0, 2.0, 4.0], np.float32),
        "done": np.array([False, False, True]),
        "collect_iter": np.zeros(3, np.int64),
    }


@pytest.mark.parametrize("cls", [DDPGPolicy, TD3Policy, SACPolicy])
def test_nstep_targets(cls):
    class Fixed(cls):
        def _next_value(self, batch):
            return torch.full((3,), 8.0)

    policy = build(Fixed, nstep=2, learn=dict(discount_factor=0.5))
    columns = trajectory()
    made = policy.collect_mode.batched.get_train_columns(columns, np.array([3]))
    assert made["reward"].tolist() == [[1, 2], [2, 4], [4, 0]]
    assert made["next_obs"].tolist() == columns["next_obs"][[1, 2, 2]].tolist()
    samples = Columns({**made, "reward": torch.from_numpy(made["reward"])})
    inputs = {name: torch.as_tensor(samples.columns[name]) for name in ("obs", "action")}
    with torch.no_grad():
        q_values = model_of(policy)(inputs, mode="compute_critic")["q_value"]
    log = policy.learn_mode.forward(samples)
    assert log["target_q_value"] == 8
    # Two steps and 8 / 4; two and one step to the end.
    targets = torch.tensor([1 + 1 + 2, 2 + 2, 4.0])
    q_values = q_values if isinstance(q_values, list) else [q_values]
    errors = torch.stack([q_value - targets for q_value in q_values])
    assert log["td_error"] == pytest.approx(errors.square().mean().item(), rel=1e-5)


class TestD4PG:
    def test_the_critic_learns(self, learned):
        policy = build(D4PGPolicy, seed=learned.seed, learn=dict(discount_factor=0.0))
        ones = torch.ones(32)
        data = random_steps(32, 2, nstep=3, IS=ones, value_gamma=0 * ones)
        losses = [policy.learn_mode.forward(data)["critic_loss"] for _ in range(100)]
        learned.at_most(losses[-1] / losses[0], 0.8)

    def test_unusable_atoms_are_refused(self):
        with pytest.raises(ConfigError, match="v_min=1, v_max=1"):
            build(D4PGPolicy, model=dict(v_min=1, v_max=1))


def test_one_action_dimension():
    output = QACDIST(3, 1)(torch.randn(5, 3), mode="compute_actor")
    assert output["action"].shape == (5, 1)
    inputs = {"obs": torch.randn(5, 3), "action": output["action"][:, 0]}
    output = QACDIST(3, 1, n_atom=7)(inputs, mode="compute_critic")
    assert output["distribution"].shape == (5, 7)
    assert torch.allclose(output["distribution"].sum(-1), torch.ones(5))
    assert output["q_value"].shape == (5,)


@pytest.mark.parametrize(
    "wrong",
    [{"action_space": "hybrid"}, {"critic_head_type": "quantile"}, {"obs_shape": [1, 8, 8]}],
)
def test_what_the_network_does_not_have(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        QACDIST(**{"obs_shape": 3, "action_shape": 2, **wrong})

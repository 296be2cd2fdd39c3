"""Actions that an observation's ``action_mask`` forbids: no policy takes them or learns of them."""

import numpy as np
import pytest
import torch
from torch import nn

from ding.data import tree_map
from ding.policy import DQNPolicy
from ding.utils import POLICY_REGISTRY, set_pkg_seed
from tests.policy.attributes import model_of
from tests.policy.batches import LENGTHS, explores_by_eps, make
from tests.policy.networks import Table

ACTIONS, FORBIDDEN = 3, -1e8
SPACED = ["pg", "ppo_pg", "a2c", "ppo", "ppo_offpolicy", "impala", "acer"]
VALUED = ["dqn", "sql", "mdqn"]


class Seeing(nn.Module):
    """A network on a part of the observation. What is forbidden it leaves to the policy, or it
    gives it next to no probability by itself."""

    def __init__(self, inner, masks):
        super().__init__()
        self.inner, self.masks = inner, masks

    def forward(self, obs, **options):
        output = self.inner(obs.get("seen"), **options)
        if self.masks and "logit" in output:
            forbidden = obs["action_mask"] == 0
            return {**output, "logit": output["logit"].masked_fill(forbidden, FORBIDDEN)}
        return output

    @property
    def actor(self):
        return self.inner.actor

    @property
    def critic(self):
        return self.inner.critic


def build(name, masks):
    cls, unroll = POLICY_REGISTRY.get(name), {}
    if name in ("impala", "acer"):
        unroll = dict(unroll_len=4, collect=dict(unroll_len=4), learn=dict(unroll_len=4))
    model = dict(obs_shape=3, action_shape=ACTIONS)
    inner = model_of(make(cls, model=model, **unroll))
    learn = {**unroll.pop("learn", {}), "ppo_param_init": False, "epoch_per_collect": 2}
    return make(cls, Seeing(inner, masks), model=model, learn=learn, **unroll)


def transitions(policy, name):
    rng, n = np.random.default_rng(0), int(LENGTHS.sum())
    set_pkg_seed(0, use_cuda=False)
    mask = np.ones((n, ACTIONS), np.float32)
    mask[::2, 0] = mask[::3, 2] = 0
    seen, next_seen = rng.normal(size=(2, n, 3)).astype(np.float32)
    obs = {"seen": seen, "action_mask": mask}
    done = np.zeros(n, bool)
    done[np.cumsum(LENGTHS)[:-1] - 1] = True
    next_mask = np.roll(mask, -1, 0) * ~done[:, None]  # no action is legal after an end
    batched = policy.collect_mode.batched
    output = batched.forward(obs, **({"eps": 0.2} if explores_by_eps(name) else {}))
    output = tree_map(np.asarray, output)
    assert mask[np.arange(n), output["action"]].all()
    columns = {name: output[name] for name in ("action", *batched.transition_outputs)}
    columns |= {"obs": obs, "next_obs": {"seen": next_seen, "action_mask": next_mask}}
    columns |= {"done": done, "reward": rng.normal(size=n).astype(np.float32)}
    made = batched.get_train_columns(columns, LENGTHS)
    return tree_map(lambda leaf: torch.from_numpy(np.asarray(leaf)), dict(made))


@pytest.mark.parametrize("name", [*SPACED, *VALUED])
def test_learns_as_with_a_network_that_forbids_them(name):
    found = []
    for masks in (False, True):
        policy = build(name, masks)
        data = transitions(policy, name)
        policy.learn_mode.forward(data)
        set_pkg_seed(0, use_cuda=False)
        log = policy.learn_mode.forward(data)
        log = log[-1] if isinstance(log, list) else log
        names = ("total_loss", "policy_loss", "entropy_loss", "approx_kl")
        found.append([log[name] for name in names if name in log])
    assert found[0] == pytest.approx(found[1], rel=1e-4, abs=1e-6)


def test_the_next_action_is_a_legal_one():
    network = Table([[0.0, 0.0], [1.0, 5.0]])
    network.forward = lambda obs: Table.forward(network, obs.get("state"))
    policy = make(DQNPolicy, network, discount_factor=0.5)
    obs, next_obs = (
        {"state": torch.full((1, 1), state), "action_mask": torch.tensor([[1.0, 0.0]])}
        for state in (0.0, 1.0)
    )
    batch = dict(obs=obs, next_obs=next_obs, action=torch.zeros(1).long())
    batch |= dict(reward=torch.ones(1, 1), done=torch.zeros(1))
    # 1 + 0.5 * 1, and not 1 + 0.5 * 5.
    assert policy.learn_mode.forward(batch)["total_loss"] == pytest.approx(1.5**2)

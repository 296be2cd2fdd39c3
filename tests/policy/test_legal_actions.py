"""Actions that an observation's ``action_mask`` forbids: no policy takes them or learns of them."""

import math

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

ACTIONS = 3
SPACED = ["pg", "ppo_pg", "a2c", "ppo", "ppo_offpolicy", "ppg", "impala", "acer", "discrete_sac"]
VALUED = ["dqn", "sql", "mdqn", "discrete_cql"]


class Seeing(nn.Module):
    """A network on a part of the observation. What is forbidden it leaves to the policy, or gives
    it a logit."""

    def __init__(self, inner, forbidden):
        super().__init__()
        self.inner, self.forbidden = inner, forbidden
        for part in {"actor_critic", "aux_critic"} & vars(inner)["_modules"].keys():
            setattr(self, part, getattr(inner, part))

    def forward(self, obs, **options):
        output = self.inner(obs.get("seen"), **options)
        if self.forbidden is None or "logit" not in output:
            return output
        is_forbidden = obs["own_mask"] == 0
        return {**output, "logit": output["logit"].masked_fill(is_forbidden, self.forbidden)}

    @property
    def actor(self):
        return self.inner.actor

    @property
    def critic(self):
        return self.inner.critic


def build(name, forbidden):
    cls, unroll = POLICY_REGISTRY.get(name), {}
    if name in ("impala", "acer"):
        unroll = dict(unroll_len=4, collect=dict(unroll_len=4), learn=dict(unroll_len=4))
    model = dict(obs_shape=3, action_shape=ACTIONS)
    inner = model_of(make(cls, model=model, **unroll))
    learn = {**unroll.pop("learn", {}), "ppo_param_init": False, "epoch_per_collect": 2}
    learn["aux_freq"] = 1
    return make(cls, Seeing(inner, forbidden), model=model, learn=learn, **unroll)


def transitions(policy, name, key, forbidden):
    rng, n = np.random.default_rng(0), int(LENGTHS.sum())
    set_pkg_seed(0, use_cuda=False)
    mask = np.ones((n, ACTIONS), np.float32)
    mask[::2, 0] = mask[::3, 2] = 0
    seen, next_seen = rng.normal(size=(2, n, 3)).astype(np.float32)
    obs = {"seen": seen, key: mask}
    done = np.zeros(n, bool)
    done[np.cumsum(LENGTHS)[:-1] - 1] = True
    next_mask = np.roll(mask, -1, 0)
    if math.isfinite(forbidden):  # else all logits would be -inf
        next_mask[done] = 0  # after an end no action is legal
    batched = policy.collect_mode.batched
    output = batched.forward(obs, **({"eps": 0.0} if explores_by_eps(name) else {}))
    output = tree_map(np.asarray, output)
    assert mask[np.arange(n), output["action"]].all()
    columns = {name: output[name] for name in ("action", *batched.transition_outputs)}
    columns |= {"obs": obs, "next_obs": {"seen": next_seen, key: next_mask}}
    columns |= {"done": done, "reward": rng.normal(size=n).astype(np.float32)}
    made = batched.get_train_columns(columns, LENGTHS)
    return tree_map(lambda leaf: torch.from_numpy(np.asarray(leaf)), dict(made))


@pytest.mark.parametrize(
    ("name", "forbidden"),
    [(name, -1e8) for name in (*SPACED, *VALUED)] + [(name, -math.inf) for name in SPACED],
)
def test_learns_as_with_a_network_that_forbids_them(name, forbidden):
    found = []
    for logit in (None, forbidden):
        policy = build(name, logit)
        key = "action_mask" if logit is None else "own_mask"
        data = transitions(policy, name, key, forbidden)
        policy.learn_mode.forward(data)
        set_pkg_seed(0, use_cuda=False)
        log = policy.learn_mode.forward(data)
        log = log[-1] if isinstance(log, list) else log
        names = ("total_loss", "policy_loss", "entropy_loss", "approx_kl", "entropy")
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

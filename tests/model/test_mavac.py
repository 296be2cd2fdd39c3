"""MAVAC: shapes, what each agent sees, and masks."""

import pytest
import torch
from torch import nn

from ding.model import MAVAC
from ding.utils.errors import ConfigError


def observations(n=5, agents=3, **more):
    return {
        "agent_state": torch.randn(n, agents, 4),
        "global_state": torch.randn(n, 6),
        **more,
    }


def test_shapes():
    model = MAVAC(4, 6, 2, 3)
    output = model(observations(), mode="compute_actor_critic")
    assert output["logit"].shape == (5, 3, 2)
    assert output["value"].shape == (5, 3)


def test_continuous_actions():
    model = MAVAC([4], [6], 2, 3, action_space="continuous", bound_type="tanh")
    output = model(observations(), mode="compute_actor")["logit"]
    assert output["mu"].shape == output["sigma"].shape == (5, 3, 2)
    assert bool((output["mu"].abs() <= 1).all())


def test_actors_see_their_own_part_and_critics_all():
    model, x = MAVAC(4, 6, 2, 3), observations()
    before = model(x, mode="compute_actor_critic")
    x["agent_state"][:, 0] += 1
    after = model(x, mode="compute_actor_critic")
    assert not torch.equal(before["logit"][:, 0], after["logit"][:, 0])
    assert torch.equal(before["logit"][:, 1:], after["logit"][:, 1:])
    assert torch.equal(before["value"], after["value"])
    x["global_state"] += 1
    assert not torch.equal(model(x, mode="compute_critic")["value"], before["value"])


def test_a_state_for_each_agent():
    model, x = MAVAC(4, 6, 2, 3), observations()
    shared = model(x, mode="compute_critic")["value"]
    x["global_state"] = x["global_state"][:, None].repeat(1, 3, 1)
    assert torch.allclose(model(x, mode="compute_critic")["value"], shared)
    assert torch.allclose(shared, shared[:, :1].expand(-1, 3))


def test_masked_actions_have_no_probability():
    mask = torch.tensor([1.0, 0.0]).expand(5, 3, 2)
    logit = MAVAC(4, 6, 2, 3)(observations(action_mask=mask), mode="compute_actor")["logit"]
    assert torch.equal(logit.softmax(-1), mask)


def test_own_encoders():
    encoders = nn.Linear(4, 8), nn.Linear(6, 8)
    model = MAVAC(4, 6, 2, 3, actor_head_hidden_size=8, critic_head_hidden_size=8, encoder=encoders)
    assert model.actor_encoder is encoders[0]
    assert model(observations(), mode="compute_critic")["value"].shape == (5, 3)


def test_unknown_action_space():
    with pytest.raises(ConfigError, match="'hybrid'"):
        MAVAC(4, 6, 2, 3, action_space="hybrid")

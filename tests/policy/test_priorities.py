"""What policies give as the priorities of samples."""

import pytest
import torch

from ding.policy.acting import PRIORITY_FORMS
from ding.utils.errors import ConfigError
from tests.policy.batches import build, samples

ONE_CRITIC = {
    **{name: dict(model=dict(twin_critic=False)) for name in ("ddpg", "td3", "sac", "cql")},
    "edac": dict(model=dict(ensemble_num=1)),
}


def priorities(name, **more):
    """By form, of the same samples and draws."""
    found = {}
    for form in PRIORITY_FORMS:
        policy = build(name, priority_form=form, **more)
        data = samples(policy, name)
        torch.manual_seed(1)
        found[form] = policy.learn_mode.forward(data)["priority"]
    return found["absolute"], found["squared"]


@pytest.mark.parametrize("name", ["dqn", "mdqn", "sql", "pdqn", "bdq", "discrete_sac", *ONE_CRITIC])
def test_a_priority_is_an_absolute_td_error_or_its_square(name):
    more = dict(model=dict(twin_critic=False)) if name == "discrete_sac" else {}
    absolute, squared = priorities(name, **ONE_CRITIC.get(name, more))
    assert absolute.shape == (11,)
    torch.testing.assert_close(absolute.square(), squared)


def test_the_priority_of_two_critics_is_a_mean():
    absolute, squared = priorities("td3")
    assert bool((absolute.square() <= squared * (1 + 1e-5)).all())  # Jensen's inequality
    assert not torch.allclose(absolute.square(), squared)


def test_a_teams_priority_is_a_mean_over_agents():
    policy = build("ppo_offpolicy", "agents", priority=True)
    data = samples(policy, "ppo_offpolicy", "agents")
    assert data["adv"].shape == (11, 2)
    priority = policy.learn_mode.forward(data)["priority"]
    torch.testing.assert_close(priority, data["adv"].abs().mean(1))


def test_an_unknown_form_is_refused():
    with pytest.raises(ConfigError, match=r"policy\.priority_form.*'absolute'"):
        build("dqn", priority_form="cubed")

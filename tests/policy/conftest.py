"""Builders of small policies and transitions."""

import pytest
import torch
from easydict import EasyDict

from ding.policy import DQNPolicy, PPOPolicy
from ding.policy.command_mode_policy_instance import DQNCommandModePolicy, PPOCommandModePolicy
from ding.rl_utils import ppo_policy_error, ppo_value_error
from ding.utils import deep_merge_dicts


def _build(cls, model, overrides, seed=0, **kwargs):
    cfg = deep_merge_dicts(cls.default_config(), EasyDict(overrides))
    torch.manual_seed(seed)
    return cls(cfg, model=model, **kwargs)


@pytest.fixture
def make_dqn():
    """``make_dqn(network=None, cls=DQNPolicy, enable_field=None, **config)``."""

    def make(network=None, cls=DQNCommandModePolicy, enable_field=None, seed=0, **overrides):
        overrides.setdefault("model", {"obs_shape": 3, "action_shape": 2})
        assert issubclass(cls, DQNPolicy)
        return _build(cls, network, overrides, seed, enable_field=enable_field)

    return make


@pytest.fixture
def make_ppo():
    """As ``make_dqn``."""

    def make(network=None, cls=PPOCommandModePolicy, enable_field=None, seed=0, **overrides):
        overrides.setdefault("model", {"obs_shape": 3, "action_shape": 2})
        assert issubclass(cls, PPOPolicy)
        return _build(cls, network, overrides, seed, enable_field=enable_field)

    return make


@pytest.fixture
def ppo_batches(monkeypatch):
    """The data of each loss of PPO, with samples in the order in which they were given."""
    seen: dict[str, list] = {"policy": [], "value": []}
    randperm = torch.randperm

    def watched(name, error):
        def error_(data, *args, **kwargs):
            seen[name].append(data)
            return error(data, *args, **kwargs)

        return error_

    # The order of HAPPO's agents comes from a separate generator.
    monkeypatch.setattr(
        torch, "randperm", lambda n, **own: randperm(n, **own) if own else torch.arange(n)
    )
    monkeypatch.setattr("ding.policy.ppo.ppo_policy_error", watched("policy", ppo_policy_error))
    monkeypatch.setattr("ding.policy.ppo.ppo_value_error", watched("value", ppo_value_error))
    return seen

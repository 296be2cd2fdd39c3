"""A running learner and its master, and policies that misbehave."""

import threading

import pytest

from ding.policy.dqn import DQNPolicy
from ding.utils import POLICY_REGISTRY
from tests.worker.learner.comm.rig import Rig


@pytest.fixture
def rig(tmp_path):
    with Rig(tmp_path) as rig:
        yield rig


@pytest.fixture
def slow_policy():
    """Event that lets updates of the policy ``slow_dqn`` go on; set at the end of the test."""
    go_on = threading.Event()

    class SlowDQN(DQNPolicy):
        def _forward_learn(self, data):
            go_on.wait(60)
            return super()._forward_learn(data)

    POLICY_REGISTRY.register("slow_dqn", SlowDQN, force_overwrite=True)
    yield go_on
    go_on.set()

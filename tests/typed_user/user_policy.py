"""A user's policy: DQN that keeps the largest loss it has seen."""

from typing import Any

from ding.policy import DQNPolicy
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("typed_dqn")
class LoudDQN(DQNPolicy):
    """DQN with one more logged scalar."""

    largest = 0.0

    def _forward_learn(self, data: list[dict[str, Any]]) -> dict[str, Any]:
        log = super()._forward_learn(data)
        self.largest = max(self.largest, float(log["total_loss"]))
        return {**log, "largest_loss": self.largest}

    def _monitor_vars_learn(self) -> list[str]:
        return [*super()._monitor_vars_learn(), "largest_loss"]

"""PPG with a replay buffer, under the name of its type; see `ding.policy.ppg`."""

from ding.policy.ppg import PPGOffPolicy

__all__ = ["PPGOffPolicy"]

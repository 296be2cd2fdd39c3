"""PPO without a critic, under the name of its type; see `ding.policy.ppo`."""

from ding.policy.ppo import PPOPGPolicy

__all__ = ["PPOPGPolicy"]

"""PPO from a replay buffer, by the name of its type."""

from ding.policy.ppo import PPOOffPolicy

__all__ = ["PPOOffPolicy"]

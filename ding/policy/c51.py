"""Distributional Q-learning on fixed atoms, by the name of its type."""

from ding.policy.dqn import C51Policy

__all__ = ["C51Policy"]

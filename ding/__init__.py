"""Reinforcement-learning training systems: collectors, learners, evaluators, buffers, pipelines."""

__version__ = "0.1.0"

"""Whole models, by the kind of policy that they serve."""

from ding.model.template.q_learning import DQN
from ding.model.template.vac import VAC

__all__ = ["DQN", "VAC"]

"""SAC for discrete actions, under the name of its type; see `ding.policy.sac`."""

from ding.policy.sac import DiscreteSACPolicy

__all__ = ["DiscreteSACPolicy"]

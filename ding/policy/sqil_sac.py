"""SAC for SQIL, under the name of its type; see `ding.policy.sac`."""

from ding.policy.sac import SQILSACPolicy

__all__ = ["SQILSACPolicy"]

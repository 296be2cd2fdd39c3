"""CQL for discrete actions, under an older name of its type; see `ding.policy.cql`."""

from ding.policy.cql import DiscreteCQLPolicy

__all__ = ["DiscreteCQLPolicy"]

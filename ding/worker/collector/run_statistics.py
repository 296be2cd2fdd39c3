"""The running statistics that all normalising environments of a run share.

They are part of the policy, as its attribute ``env_statistics``: collectors write it, evaluators
and checkpoints read it.
"""

import contextlib
from collections.abc import Sequence

import torch.distributed

from ding.envs.running_statistics import Statistics, merged
from ding.utils import get_world_size
from ding.worker.collector.steps import Envs, Mode


def _known(policies: Sequence[Mode]) -> Statistics | None:
    for policy in policies:
        with contextlib.suppress(AttributeError, KeyError):  # not a `Policy` of this library
            found: Statistics | None = policy.get_attribute("env_statistics")
            if found is not None:
                return found
    return None


def freeze_statistics(env: Envs, policies: Sequence[Mode]) -> None:
    """Normalise an evaluation's environments by the collectors' statistics, without updates."""
    if hasattr(env, "load_statistics"):
        env.load_statistics(_known(policies) or {}, frozen=True)


class RunStatistics:
    """Merges the statistics of a collector's normalising environments over all ranks."""

    def __init__(self, env: Envs, policies: Sequence[Mode]) -> None:
        self._env, self._policies = env, policies
        self._known: Statistics | None = None

    @classmethod
    def of(cls, env: Envs, policies: Sequence[Mode]) -> "RunStatistics | None":
        """The statistics; ``None`` if no environment normalises."""
        return cls(env, policies) if getattr(env, "normalises", False) else None

    def load(self) -> None:
        """Before a collection: copy a loaded policy's statistics to the environments."""
        given = _known(self._policies)
        if given is not None and given is not self._known:
            self._known = given
            self._env.load_statistics(given)

    def share(self) -> None:
        """After a collection: copy the merged statistics to the policy and all environments."""
        if (news := self._env.take_statistics()) is None:
            return
        ranks = [news] * get_world_size()
        if len(ranks) > 1:
            torch.distributed.all_gather_object(ranks, news)
        self._known = merged([self._known or {}, *ranks])
        self._env.load_statistics(self._known)
        for policy in self._policies:
            policy.set_attribute("env_statistics", self._known)

"""Keeps what a run's environments normalise by in step: envs, policy and checkpoints share it.

It travels with the policy, as its attribute ``env_statistics``: collectors write it, evaluators
and checkpoints read it.
"""

from collections.abc import Sequence

import torch.distributed

from ding.envs.running_statistics import Statistics, merged
from ding.utils import get_world_size
from ding.worker.collector.steps import Envs, Mode


def statistics_of(policy: Mode) -> Statistics | None:
    """What the environments of a policy's run normalise by; ``None`` if that is unknown."""
    try:
        found: Statistics | None = policy.get_attribute("env_statistics")
        return found
    except (AttributeError, KeyError):  # of another make than `Policy`
        return None


def known_statistics(policies: Sequence[Mode]) -> Statistics | None:
    """Those of the first policy that knows any."""
    return next((found for p in policies if (found := statistics_of(p)) is not None), None)


def freeze_statistics(env: Envs, policies: Sequence[Mode]) -> None:
    """Have the environments of an evaluation normalise as collectors' do, adding nothing."""
    if hasattr(env, "load_statistics"):
        env.load_statistics(known_statistics(policies) or {}, frozen=True)


class RunStatistics:
    """Adds up what a collector's environments see, in whatever processes they are."""

    def __init__(self) -> None:
        self._known: Statistics | None = None

    def take_up(self, env: Envs, policies: Sequence[Mode]) -> None:
        """Before a collection: tell the environments what a loaded policy knows."""
        given = known_statistics(policies)
        if given is not None and given is not self._known and hasattr(env, "load_statistics"):
            self._known = given
            env.load_statistics(given)

    def share(self, env: Envs, policies: Sequence[Mode]) -> None:
        """After a collection: tell policy and environments what all of them have seen."""
        news = env.take_statistics() if hasattr(env, "take_statistics") else None
        if news is None:
            return
        self._known = merged([self._known or {}, *_of_all_ranks(news)])
        env.load_statistics(self._known)
        for policy in policies:
            policy.set_attribute("env_statistics", self._known)


def _of_all_ranks(news: Statistics) -> list[Statistics]:
    if get_world_size() == 1:
        return [news]
    found: list[Statistics] = [{}] * get_world_size()
    torch.distributed.all_gather_object(found, news)
    return found

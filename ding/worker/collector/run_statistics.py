"""Keeps what a run's environments normalise by in step: envs, policy and checkpoints share it.

It travels with the policy, as its attribute ``env_statistics``: collectors write it, evaluators
and checkpoints read it.
"""

import contextlib
from collections.abc import Sequence

import torch.distributed

from ding.envs.running_statistics import Statistics, merged
from ding.utils import get_world_size
from ding.worker.collector.steps import Envs, Mode


def known_statistics(policies: Sequence[Mode]) -> Statistics | None:
    """What the environments of the policies' run normalise by; ``None`` if that is unknown."""
    for policy in policies:
        with contextlib.suppress(AttributeError, KeyError):  # of another make than `Policy`
            found: Statistics | None = policy.get_attribute("env_statistics")
            if found is not None:
                return found
    return None


def freeze_statistics(env: Envs, policies: Sequence[Mode]) -> None:
    """Have the environments of an evaluation normalise as collectors' do, adding nothing."""
    if hasattr(env, "load_statistics"):
        env.load_statistics(known_statistics(policies) or {}, frozen=True)


class RunStatistics:
    """Adds up what a collector's environments see, in whatever processes they are.

    Args:
        env: An env manager of environments that normalise; see `of`.
        policies: Those that act in it.
    """

    def __init__(self, env: Envs, policies: Sequence[Mode]) -> None:
        self._env, self._policies = env, policies
        self._known: Statistics | None = None

    @classmethod
    def of(cls, env: Envs, policies: Sequence[Mode]) -> "RunStatistics | None":
        """``None`` for environments that normalise nothing."""
        return cls(env, policies) if getattr(env, "normalises", False) else None

    def take_up(self) -> None:
        """Before a collection: tell the environments what a loaded policy knows."""
        given = known_statistics(self._policies)
        if given is not None and given is not self._known:
            self._known = given
            self._env.load_statistics(given)

    def share(self) -> None:
        """After a collection: tell policy and environments what all of them have seen."""
        if (news := self._env.take_statistics()) is None:
            return
        self._known = merged([self._known or {}, *_of_all_ranks(news)])
        self._env.load_statistics(self._known)
        for policy in self._policies:
            policy.set_attribute("env_statistics", self._known)


def _of_all_ranks(news: Statistics) -> list[Statistics]:
    if get_world_size() == 1:
        return [news]
    found: list[Statistics] = [{}] * get_world_size()
    torch.distributed.all_gather_object(found, news)
    return found

"""Collects a number of training samples."""

import math
from typing import Any

from ding.utils import SERIAL_COLLECTOR_REGISTRY
from ding.worker.collector.base_serial_collector import INF
from ding.worker.collector.collect_stats import CollectTally
from ding.worker.collector.serial_collector import SerialCollector


@SERIAL_COLLECTOR_REGISTRY.register("sample")
class SampleSerialCollector(SerialCollector):
    """Runs one policy until ``n_sample`` training samples are there.

    A sample is a transition, or ``unroll_len`` of them. Trajectories have
    ``max(unroll_len, nstep, ceil(n_sample / env_num))`` transitions, or end with their episode.
    """

    def _traj_len(self) -> float:
        return trajectory_length(self._policies[0], self._env.env_num, self._n_sample)

    def collect(
        self,
        n_sample: int | None = None,
        train_iter: int = 0,
        drop_extra: bool | None = None,
        random_collect: bool = False,
        record_random_collect: bool = True,
        policy_kwargs: dict[str, Any] | None = None,
        level_seeds: list[int] | None = None,
    ) -> list[Any]:
        """Collect training samples.

        Args:
            n_sample: Number of samples; ``policy.collect.n_sample`` by default.
            train_iter: Training iteration of the policy; each sample carries it.
            drop_extra: What becomes of samples beyond ``n_sample``, which the last step brought.
                By default the next call begins with them, unless the policy is on-policy. True:
                they are dropped, the same share of each trajectory, and counted
                (``dropped_sample_count`` in the log). False: they are returned too.
            random_collect: The policy acts randomly, as before training.
            record_random_collect: Whether random collection writes log rows.
            policy_kwargs: Keyword arguments of the policy's ``forward``, such as ``eps``.
            level_seeds: Seed of each environment's level; each sample then carries ``seed``.

        Returns:
            Samples in columns where policy and env manager allow it, otherwise in rows.
        """
        self._n_sample = self._target(n_sample, "n_sample")
        rollout = self._start()
        rollout.traj_len = self._traj_len()
        tally = CollectTally()
        stock = self._stocks[0]
        while len(stock) < self._n_sample:
            waiting, missing = 0, self._n_sample - len(stock)
            while waiting < missing:
                waiting += self._step(
                    rollout, tally, train_iter, policy_kwargs, level_seeds=level_seeds
                ).samples
            stock.add(*rollout.harvest(0, True))
        samples = self._end_trajectories(rollout, [0], drop_extra, self._n_sample)[0]
        log = not random_collect or record_random_collect
        self._finish(tally, len(samples), train_iter, log)
        return samples


def trajectory_length(policy: Any, env_num: int, n_sample: int) -> float:
    """Transitions after which a running trajectory is turned into samples."""
    if attribute(policy, "traj_len_inf"):
        return INF
    shortest = max(policy.get_attribute("unroll_len"), attribute(policy, "nstep") or 1)
    return max(shortest, math.ceil(n_sample / env_num))


def attribute(policy: Any, name: str) -> Any:
    """An attribute of a policy; ``None`` if a policy from elsewhere does not know it."""
    try:
        return policy.get_attribute(name)
    except AttributeError:
        return None

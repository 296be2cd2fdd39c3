"""Collects a number of whole episodes."""

from typing import Any

from ding.utils import SERIAL_COLLECTOR_REGISTRY
from ding.worker.collector.collect_stats import CollectTally
from ding.worker.collector.serial_collector import SerialCollector, split_by_lengths


@SERIAL_COLLECTOR_REGISTRY.register("episode")
class EpisodeSerialCollector(SerialCollector):
    """Runs one policy until ``n_episode`` episodes have ended."""

    config = dict(
        deepcopy_obs=False,
        transform_obs=False,
        collect_print_freq=100,
        get_train_sample=False,
        reward_shaping=False,
    )

    def collect(
        self,
        n_episode: int | None = None,
        train_iter: int = 0,
        policy_kwargs: dict[str, Any] | None = None,
    ) -> list[Any]:
        """Collect whole episodes; no episode is begun that would not be returned.

        Args:
            n_episode: Number of episodes; ``policy.collect.n_episode`` by default.
            train_iter: Training iteration of the policy; each transition carries it.
            policy_kwargs: Keyword arguments of the policy's ``forward``, such as ``eps``.

        Returns:
            One list of transitions per episode, in the order in which they ended; or all their
            training samples in one list if ``get_train_sample`` is set.
        """
        n_episode = self._target(n_episode, "n_episode")
        rollout = self._start()
        tally = CollectTally()
        self._run_episodes(rollout, tally, n_episode, train_iter, policy_kwargs)
        samples, lengths = rollout.harvest(0, self._cfg.get_train_sample)
        self._finish(tally, len(samples), train_iter)
        return samples if self._cfg.get_train_sample else split_by_lengths(samples, lengths)

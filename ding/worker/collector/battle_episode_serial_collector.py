"""Collects a number of whole episodes of several policies that play each other."""

from typing import Any

from ding.utils import SERIAL_COLLECTOR_REGISTRY
from ding.worker.collector.battle import BattleCollector
from ding.worker.collector.collect_stats import CollectTally
from ding.worker.collector.serial_collector import split_by_lengths


@SERIAL_COLLECTOR_REGISTRY.register("episode_1v1")
class BattleEpisodeSerialCollector(BattleCollector):
    """Runs n policies against each other until ``n_episode`` episodes have ended."""

    config = dict(
        deepcopy_obs=False, transform_obs=False, collect_print_freq=100, get_train_sample=False
    )

    def collect(
        self,
        n_episode: int | None = None,
        train_iter: int = 0,
        policy_kwargs: Any = None,
    ) -> tuple[list[Any], list[Any]]:
        """Collect whole episodes; no episode is begun that would not be returned.

        Args:
            n_episode: Number of episodes; ``policy.collect.n_episode`` by default.
            train_iter: Training iteration of the policies; each transition carries it.
            policy_kwargs: Keyword arguments of the policies' ``forward``; a list for one each.

        Returns:
            For each player its episodes (or training samples if ``get_train_sample`` is set; none
            of a policy whose ``collect_data`` is false), and the info dicts of its episodes.
        """
        n_episode = self._target(n_episode, "n_episode")
        rollout = self._start()
        tally = CollectTally()
        self._run_episodes(rollout, tally, n_episode, train_iter, policy_kwargs)
        players = self._collecting_players()
        data: list[Any] = []
        count = 0
        for player in range(len(self._policies)):
            wanted = player in players
            samples, lengths = rollout.harvest(player, wanted and self._cfg.get_train_sample)
            if not wanted:
                data.append([])
                continue
            count += len(samples)
            as_is = self._cfg.get_train_sample
            data.append(samples if as_is else split_by_lengths(samples, lengths))
        self._finish(tally, count, train_iter)
        return data, self._infos(tally)

"""Collects a number of training samples from several policies that play each other."""

from typing import Any

from ding.utils import SERIAL_COLLECTOR_REGISTRY
from ding.worker.collector.battle import BattleCollector
from ding.worker.collector.collect_stats import CollectTally
from ding.worker.collector.sample_serial_collector import trajectory_length


@SERIAL_COLLECTOR_REGISTRY.register("sample_1v1")
class BattleSampleSerialCollector(BattleCollector):
    """Runs n policies against each other until each has ``n_sample`` training samples."""

    def _traj_len(self) -> float:
        return max(trajectory_length(p, self._env.env_num, self._n_sample) for p in self._policies)

    def collect(
        self,
        n_sample: int | None = None,
        train_iter: int = 0,
        drop_extra: bool | None = None,
        policy_kwargs: Any = None,
    ) -> tuple[list[Any], list[Any]]:
        """Collect training samples of each player.

        Args:
            n_sample: Number of samples of each player; ``policy.collect.n_sample`` by default.
            train_iter: Training iteration of the policies; each sample carries it.
            drop_extra: What becomes of a player's samples beyond ``n_sample``; see
                :meth:`SampleSerialCollector.collect`.
            policy_kwargs: Keyword arguments of the policies' ``forward``; a list for one each.

        Returns:
            The samples of each player (none of a policy whose ``collect_data`` is false), and the
            info dicts of each player's finished episodes.
        """
        self._n_sample = self._target(n_sample, "n_sample")
        rollout = self._start()
        rollout.traj_len = self._traj_len()
        tally = CollectTally()
        players = self._collecting_players()
        while any(len(self._stocks[player]) < self._n_sample for player in players):
            waiting, missing = 0, self._n_sample - min(len(self._stocks[p]) for p in players)
            while waiting < missing:
                waiting += self._step(rollout, tally, train_iter, policy_kwargs).samples
            for player in range(len(self._policies)):
                harvested = rollout.harvest(player, player in players)
                if player in players:
                    self._stocks[player].add(*harvested)
        samples = self._end_trajectories(rollout, players, drop_extra, self._n_sample)
        self._finish(tally, sum(map(len, samples)), train_iter)
        return samples, self._infos(tally)

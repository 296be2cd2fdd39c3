"""What battle collectors share: several policies, of which some may only be opponents."""

from typing import Any

from ding.utils.errors import ConfigError
from ding.worker.collector.collect_stats import CollectTally
from ding.worker.collector.serial_collector import SerialCollector


class BattleCollector(SerialCollector):
    """Collector of n policies in environments of n players."""

    battle = True

    def _collecting_players(self) -> list[int]:
        players = [p for p, policy in enumerate(self._policies) if _collects_data(policy)]
        if not players:
            raise ConfigError("collect_data is false for every policy: nobody's data is wanted")
        return players

    def _infos(self, tally: CollectTally) -> list[list[dict[str, Any]]]:
        """Info dicts of the finished episodes, one list per player."""
        return [
            [episode.infos[player] for episode in tally.episodes]
            for player in range(len(self._policies))
        ]


def _collects_data(policy: Any) -> bool:
    """Whether the data of this policy is wanted: its ``collect_data``, true where it has none."""
    if hasattr(policy, "collect_data"):
        return bool(policy.collect_data)
    try:
        return bool(policy.get_attribute("collect_data"))
    except AttributeError:
        return True

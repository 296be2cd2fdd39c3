"""Where `BattleEpisodeSerialCollector` is imported from."""

from ding.worker.collector.serial_collector import (
    BattleEpisodeSerialCollector as BattleEpisodeSerialCollector,
)

"""Import location of `BattleEpisodeSerialCollector`."""

from ding.worker.collector.serial_collector import (
    BattleEpisodeSerialCollector as BattleEpisodeSerialCollector,
)

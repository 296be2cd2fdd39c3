"""Where `BattleSampleSerialCollector` is imported from."""

from ding.worker.collector.serial_collector import (
    BattleSampleSerialCollector as BattleSampleSerialCollector,
)

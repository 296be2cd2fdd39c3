"""Import location of `BattleSampleSerialCollector`."""

from ding.worker.collector.serial_collector import (
    BattleSampleSerialCollector as BattleSampleSerialCollector,
)

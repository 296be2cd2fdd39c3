"""Where `SampleSerialCollector` is imported from."""

from ding.worker.collector.serial_collector import SampleSerialCollector as SampleSerialCollector

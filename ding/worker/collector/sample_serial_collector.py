"""Import location of `SampleSerialCollector`."""

from ding.worker.collector.serial_collector import SampleSerialCollector as SampleSerialCollector

"""Import location of `EpisodeSerialCollector`."""

from ding.worker.collector.serial_collector import EpisodeSerialCollector as EpisodeSerialCollector

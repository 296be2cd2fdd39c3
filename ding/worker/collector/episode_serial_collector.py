"""Where `EpisodeSerialCollector` is imported from."""

from ding.worker.collector.serial_collector import EpisodeSerialCollector as EpisodeSerialCollector

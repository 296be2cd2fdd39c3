"""Where `ZerglingParallelCollector` is imported from."""

from ding.worker.collector.rollout_collector import (
    ZerglingParallelCollector as ZerglingParallelCollector,
)

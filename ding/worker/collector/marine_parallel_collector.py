"""Where `MarineParallelCollector` is imported from."""

from ding.worker.collector.rollout_collector import (
    MarineParallelCollector as MarineParallelCollector,
)

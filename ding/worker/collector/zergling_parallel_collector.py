"""One policy in many environments."""

from ding.utils import PARALLEL_COLLECTOR_REGISTRY
from ding.worker.collector._rollout_collector import RolloutCollector


@PARALLEL_COLLECTOR_REGISTRY.register("zergling")
class ZerglingParallelCollector(RolloutCollector):
    """Collects with one policy, or evaluates it, and keeps it up to date meanwhile."""

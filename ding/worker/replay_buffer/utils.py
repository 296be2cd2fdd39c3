"""Collects a buffer's helper classes under one name."""

from ding.data.buffer.monitors import (
    PeriodicThruputMonitor,
    SampledDataAttrMonitor,
    UsedDataRemover,
)
from ding.data.buffer.rate_limiter import ThruputController

__all__ = [
    "PeriodicThruputMonitor",
    "SampledDataAttrMonitor",
    "ThruputController",
    "UsedDataRemover",
    "generate_id",
]


def generate_id(name: str, data_id: int) -> str:
    """The unique id of item number `data_id` of the buffer `name`."""
    return f"{name}_{data_id}"

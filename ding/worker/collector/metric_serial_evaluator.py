"""Where `IMetric` and `MetricSerialEvaluator` are imported from."""

from ding.worker.collector.serial_evaluator import (
    IMetric as IMetric,
    MetricSerialEvaluator as MetricSerialEvaluator,
)

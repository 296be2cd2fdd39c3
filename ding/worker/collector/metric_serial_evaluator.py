"""Where `IMetric` and `MetricSerialEvaluator` are imported from."""

from ding.worker.collector.serial_evaluator import IMetric as IMetric
from ding.worker.collector.serial_evaluator import MetricSerialEvaluator as MetricSerialEvaluator

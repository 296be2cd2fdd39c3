"""Where `InteractionSerialEvaluator` is imported from."""

from ding.worker.collector.serial_evaluator import (
    InteractionSerialEvaluator as InteractionSerialEvaluator,
)

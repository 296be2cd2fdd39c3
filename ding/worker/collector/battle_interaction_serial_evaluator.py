"""Where `BattleInteractionSerialEvaluator` is imported from."""

from ding.worker.collector.serial_evaluator import (
    BattleInteractionSerialEvaluator as BattleInteractionSerialEvaluator,
)

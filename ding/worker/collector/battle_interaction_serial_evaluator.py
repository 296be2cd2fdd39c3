"""Import location of `BattleInteractionSerialEvaluator`."""

from ding.worker.collector.interaction_serial_evaluator import (
    BattleInteractionSerialEvaluator as BattleInteractionSerialEvaluator,
)

"""Where `BattleInteractionSerialEvaluator` is imported from."""

from ding.worker.collector.interaction_serial_evaluator import (
    BattleInteractionSerialEvaluator as BattleInteractionSerialEvaluator,
)

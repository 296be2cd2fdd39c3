"""A user's callback: ends the run at a return."""

import ding
from ding.utils.callbacks import Evaluated, RunFinished


class StopAt(ding.RunCallback):
    """Ends the run once an evaluation reaches a return."""

    def __init__(self, goal: float) -> None:
        self.goal = goal
        self.status = ""

    def on_evaluation(self, event: Evaluated) -> bool:
        return bool(event.returns) and min(event.returns) >= self.goal

    def on_end(self, event: RunFinished) -> None:
        self.status = event.status

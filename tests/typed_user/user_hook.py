"""A user's learner hook: counts updates."""

from ding.worker import BaseLearner, LearnerHook


class CountUpdates(LearnerHook):
    """Counts the learner's updates."""

    def __init__(self) -> None:
        super().__init__("count_updates", priority=50, position="after_iter")
        self.count = 0

    def __call__(self, engine: BaseLearner) -> None:
        self.count = engine.train_iter

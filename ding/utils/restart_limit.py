"""How often, and how soon, whatever has died is started again."""

from ding.utils import durations


class RestartLimit:
    """Counts the deaths of one process or worker.

    Args:
        most: How often it may be started again; a good life makes that anew.

    Attributes:
        count: How often it was started again.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0

    def after_death(self, life: float) -> float | None:
        """Seconds to wait before it is started again; ``None``: it shall not be.

        Args:
            life: Seconds that it has lived.
        """
        if life > durations.GOOD_LIFE:
            self.count = 0
        if self.count >= self.most:
            return None
        self.count += 1
        return durations.RESTART_WAITS[min(self.count, len(durations.RESTART_WAITS)) - 1]

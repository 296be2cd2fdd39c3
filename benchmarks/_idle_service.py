"""A worker that answers what it has, and does nothing else."""

import threading
from typing import Any

from ding.worker.messages import Resources


class IdleService:
    kind = "collector"
    failed = None

    def __init__(self) -> None:
        self._ended = threading.Event()

    def start(self) -> None:
        """It needs none."""

    def handle(self, request: Any) -> Any:
        return Resources(cpu=1)

    def coordinator_lost(self, cause: str) -> None:
        self.close()

    def released(self) -> None:
        self.close()

    def close(self) -> None:
        self._ended.set()

    def join(self, timeout: float | None = None) -> bool:
        return self._ended.wait(timeout)


def idle_service(spec: Any, stores: Any) -> IdleService:
    return IdleService()

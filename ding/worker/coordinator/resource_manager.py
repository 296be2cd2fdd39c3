"""Keeps track of free workers and of those that have a task."""

from collections.abc import Mapping
from typing import TypedDict

from ding.worker.messages import Json, Task

_Resources = Mapping[str, Json]


class Assigned(TypedDict, total=False):
    """Which worker got a task, ``collector_id`` or ``learner_id``, and what it has."""

    collector_id: str
    learner_id: str
    resource_info: _Resources


class NaiveResourceManager:
    """Assigns workers in the order in which they became free. Kinds are named ``collector`` and
    ``learner``; another name is a `KeyError`."""

    def __init__(self) -> None:
        self._free: dict[str, dict[str, _Resources]] = {"collector": {}, "learner": {}}
        self._assigned: dict[str, dict[str, _Resources]] = {"collector": {}, "learner": {}}

    def assign_collector(self, collector_task: Task) -> Assigned | None:
        """A collector for the task; ``None`` if all of them work."""
        if (taken := self.take("collector")) is None:
            return None
        return {"collector_id": taken[0], "resource_info": taken[1]}

    def assign_learner(self, learner_task: Task) -> Assigned | None:
        """A learner for the task; ``None`` if all of them work."""
        if (taken := self.take("learner")) is None:
            return None
        return {"learner_id": taken[0], "resource_info": taken[1]}

    def have_assigned(self, name: str, worker_id: str) -> bool:
        """Whether a worker of kind `name` was given work and has not been free since."""
        return worker_id in self._assigned[name]

    def delete(self, name: str, worker_id: str) -> bool:
        """Forget a worker of kind `name`; whether it was known."""
        was_free = self._free[name].pop(worker_id, None) is not None
        return self._assigned[name].pop(worker_id, None) is not None or was_free

    def update(self, name: str, worker_id: str, resource_info: _Resources) -> None:
        """A worker of kind `name` is free and has these resources."""
        self._assigned[name].pop(worker_id, None)
        self._free[name][worker_id] = resource_info

    def free(self, name: str) -> int:
        """How many workers of kind `name` wait for work."""
        return len(self._free[name])

    def take(self, kind: str) -> tuple[str, _Resources] | None:
        """A worker of that kind, and what it has; ``None`` if all of them work."""
        worker_id = next(iter(self._free[kind]), None)
        if worker_id is None:
            return None
        info = self._assigned[kind][worker_id] = self._free[kind].pop(worker_id)
        return worker_id, info

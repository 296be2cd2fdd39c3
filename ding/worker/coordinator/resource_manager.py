"""Tracks idle and assigned workers."""

from collections.abc import Mapping

from ding.worker.messages import Json, Task

_Resources = Mapping[str, Json]


class NaiveResourceManager:
    """Assigns workers in the order in which they became idle; for custom coordinators.

    Kinds are ``collector`` and ``learner``; other names raise `KeyError`.
    """

    def __init__(self) -> None:
        self._free: dict[str, dict[str, _Resources]] = {"collector": {}, "learner": {}}
        self._assigned: dict[str, dict[str, _Resources]] = {"collector": {}, "learner": {}}

    def assign_collector(self, collector_task: Task) -> dict[str, object] | None:
        """``collector_id`` and ``resource_info`` of a collector for the task; ``None`` if no
        collector is idle."""
        return self._assign("collector")

    def assign_learner(self, learner_task: Task) -> dict[str, object] | None:
        """As `assign_collector`, with ``learner_id``."""
        return self._assign("learner")

    def have_assigned(self, name: str, worker_id: str) -> bool:
        """Whether a worker of kind `name` was assigned and has not become idle since."""
        return worker_id in self._assigned[name]

    def delete(self, name: str, worker_id: str) -> bool:
        """Remove a worker of kind `name`; returns whether it was known."""
        was_free = self._free[name].pop(worker_id, None) is not None
        return self._assigned[name].pop(worker_id, None) is not None or was_free

    def update(self, name: str, worker_id: str, resource_info: _Resources) -> None:
        """Add an idle worker of kind `name` with these resources."""
        self._assigned[name].pop(worker_id, None)
        self._free[name][worker_id] = resource_info

    def _assign(self, kind: str) -> dict[str, object] | None:
        worker_id = next(iter(self._free[kind]), None)
        if worker_id is None:
            return None
        info = self._assigned[kind][worker_id] = self._free[kind].pop(worker_id)
        return {f"{kind}_id": worker_id, "resource_info": info}

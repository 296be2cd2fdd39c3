"""The open tasks of one kind, and how many there may be."""

import uuid
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class TaskSpace(Generic[T]):
    """Places for tasks; who takes one leaves a note.

    Not safe for threads: commanders hold their lock.

    Args:
        kind: First part of the ids.
        space: How many tasks may be open at once.
    """

    def __init__(self, kind: str, space: int) -> None:
        self.space = int(space)
        self.opened: dict[str, T] = {}
        self.issued = 0
        self._kind = kind

    @property
    def has_room(self) -> bool:
        return len(self.opened) < self.space

    def open(self, note: T) -> str:
        """Take a place; the id of the new task is unique over all runs."""
        self.issued += 1
        task_id = f"{self._kind}_{self.issued}_{uuid.uuid4().hex[:8]}"
        self.opened[task_id] = note
        return task_id

    def close(self, task_id: Any) -> T | None:
        """Give the place of a task back: its note, or None if that was done before."""
        return self.opened.pop(task_id, None)

    def increase(self) -> None:
        self.space += 1

    def decrease(self) -> None:
        """One place less; tasks that are open may stay so."""
        self.space = max(0, self.space - 1)

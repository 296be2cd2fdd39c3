"""Types of the callbacks of a task's start."""

from collections.abc import Callable
from uuid import UUID

#: Called with the task's id.
_BEFORE_HOOK_TYPE = Callable[[UUID], object]
#: Called with the task's id.
_AFTER_HOOK_TYPE = Callable[[UUID], object]
#: Called with the task's id and what went wrong.
_ERROR_HOOK_TYPE = Callable[[UUID, Exception], object]

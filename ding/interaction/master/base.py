"""Types of the callbacks for the start of a task."""

from collections.abc import Callable
from uuid import UUID

#: Called with the task's id.
_BEFORE_HOOK_TYPE = Callable[[UUID], object]
#: Called with the task's id.
_AFTER_HOOK_TYPE = Callable[[UUID], object]
#: Called with the task's id and the error.
_ERROR_HOOK_TYPE = Callable[[UUID, Exception], object]

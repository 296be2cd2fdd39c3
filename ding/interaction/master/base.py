"""Types of the functions that are told of a task's start."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

#: Called with the task's id.
_BEFORE_HOOK_TYPE = Callable[[UUID], Any]
#: Called with the task's id.
_AFTER_HOOK_TYPE = Callable[[UUID], Any]
#: Called with the task's id and what went wrong.
_ERROR_HOOK_TYPE = Callable[[UUID, Exception], Any]

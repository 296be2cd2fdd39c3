"""Error codes, and the exceptions that are raised for error answers."""

from .base import *  # noqa: F403
from .master import *  # noqa: F403
from .slave import *  # noqa: F403

"""Error codes, and the exceptions that error answers are raised as."""

from .base import *  # noqa: F403
from .master import *  # noqa: F403
from .slave import *  # noqa: F403

"""Values that remember what they were during the last ticks or seconds."""

from .data import *  # noqa: F403
from .model import *  # noqa: F403
from .time_ctl import *  # noqa: F403  # noqa: F403
from .value import *  # noqa: F403

"""Values that remember what they were during the last ticks or seconds."""

from .base import TimeMode
from .data import RangedData, TimeRangedData
from .model import LoggedModel
from .time_ctl import BaseTime, NaturalTime, TickTime, TimeProxy
from .value import LoggedValue

__all__ = [
    "BaseTime",
    "LoggedModel",
    "LoggedValue",
    "NaturalTime",
    "RangedData",
    "TickTime",
    "TimeMode",
    "TimeProxy",
    "TimeRangedData",
]

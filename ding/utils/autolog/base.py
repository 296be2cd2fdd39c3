"""What the parts of autolog agree on."""

from enum import IntEnum, unique


@unique
class TimeMode(IntEnum):
    """What the times of a history count from."""

    RELATIVE_LIFECYCLE = 1
    """The moment at which the model was made."""
    RELATIVE_CURRENT_TIME = 2
    """Now: times are zero or negative."""
    ABSOLUTE = 3
    """The zero of the clock."""

"""Numbers and texts that workers reported, made safe to count with and to show."""

import math
from collections.abc import Mapping

from ding.utils.errors import DingError
from ding.utils.usage import FIGURES
from ding.worker.tasks import CollectorReport


def as_number(value: object) -> float | None:
    """A finite number; ``None`` if it is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None  # type: ignore[arg-type]


def as_count(value: object) -> int:
    """A number of things; 0 if it is none."""
    number = as_number(value)
    return 0 if number is None or number < 0 else int(number)


def usage_figures(reported: object) -> dict[str, float]:
    """The CPU, memory and GPU figures in a report; nonsense is left out."""
    given = reported if isinstance(reported, Mapping) else {}
    numbers = {name: as_number(given.get(name)) for name in FIGURES}
    return {name: value for name, value in numbers.items() if value is not None and value >= 0}


def mean_return(info: CollectorReport, is_eval: bool) -> float | None:
    """The mean return in a collector's report.

    ``None`` without an episode, whatever it says, and for an evaluation that was cut off: the
    episodes that it has are those that were short.
    """
    if as_number(info.get("real_episode_count")) == 0:
        return None
    if is_eval and info.get("collector_done") is False:
        return None
    return as_number(info.get("reward_mean"))


def one_line(text: object, most: int = 600) -> str:
    """A text fit for a terminal: no control characters, and not too long."""
    line = " ".join(str(text).split())
    return "".join(letter for letter in line if letter.isprintable())[:most]


def error_line(error: BaseException) -> str:
    """An error in one line; with its type, unless it is a `DingError`."""
    if isinstance(error, DingError):
        return one_line(error)
    return one_line(f"{type(error).__name__}: {error}").removesuffix(":")

"""What a run's parent and its parts (coordinator, learners, collectors) send to each other."""

from dataclasses import dataclass
from typing import Any

from ding.utils.ending import Ending

# ---------------------------------------------------------------------- from a part


@dataclass(frozen=True)
class Up:
    """It works.

    Attributes:
        where: The coordinator's port, an aggregator's address for its learners, or nothing.
    """

    where: Any = None


@dataclass(frozen=True)
class Failed:
    """What it fails of, in one line."""

    cause: str


@dataclass(frozen=True)
class RunEnded:
    """The coordinator's verdict; what comes now is its own end."""

    ending: Ending


# ---------------------------------------------------------------------- to a part


@dataclass(frozen=True)
class Stop:
    """It is to end, for this reason."""

    ending: Ending


@dataclass(frozen=True)
class WorkerStarted:
    """For the coordinator: should the parent be killed, it has to end the others.

    Attributes:
        process: A `process_identity`.
    """

    name: str
    process: dict[str, Any]


@dataclass(frozen=True)
class WorkerEnded:
    """For the coordinator, which owns the terminal: a worker's process has ended."""

    name: str
    cause: str


PartMessage = Up | Failed | RunEnded
ParentMessage = Stop | WorkerStarted | WorkerEnded

"""The messages of a parallel run: which part sends which message to which.

A part's interface shows the messages that it receives; this module shows who sends them. Tests
compare it with the messages of a real run, and with the drawing in ``docs/architecture.md``.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ding.worker.coordinator.base_parallel_commander import BaseCommander
from ding.worker.coordinator.buffer_pace import BufferPace
from ding.worker.coordinator.chunk_buffer import ChunkBuffer
from ding.worker.coordinator.comm_coordinator import CommCoordinator
from ding.worker.coordinator.core import Core
from ding.worker.coordinator.run_events import RunEvents
from ding.worker.engines.carrier import EndWorker
from ding.worker.messages import (
    CloseTask,
    DemandRequest,
    OpenMeeting,
    Request,
    ResourceRequest,
    SamplesRequest,
    StartTask,
    TrainRequest,
)
from ding.worker.seams import Arrivals, Artifacts, Control, SampleStore, WeightStore

#: A method that is called, or a request that is sent.
Message: TypeAlias = Callable[..., Any] | type[Request[Any]]


@dataclass(frozen=True)
class Arrow:
    """One component sends messages to another."""

    source: str
    target: str
    messages: tuple[Message, ...]


def methods(seam: type) -> tuple[Message, ...]:
    """All methods of a protocol, or of a base class."""
    found = (value for name, value in vars(seam).items() if not name.startswith("_"))
    return tuple(value for value in found if inspect.isfunction(value))


#: The modules of each sending part, below ``ding.worker``.
PARTS: Mapping[str, tuple[str, ...]] = {
    "Coordinator": (
        *("coordinator.coordinator", "coordinator.run", "coordinator.run_events"),
        "coordinator.run_files",
    ),
    "Buffers": (
        *("coordinator.chunk_buffer", "coordinator.chunk_table"),
        *("coordinator.buffer_pace", "coordinator.row_server"),
    ),
    "CommCoordinator": ("coordinator.comm_coordinator",),
    "Core": ("coordinator.core", "coordinator.worker_session", "coordinator.worker_jobs"),
    "Control": ("engines.control", "engines.flask_fs"),
    "BaseCommCollector": ("collector",),
    "BaseCommLearner": ("learner",),
}

GRAPH = (
    Arrow("Coordinator", "Commander", methods(BaseCommander)),
    Arrow(
        "Coordinator",
        "CommCoordinator",
        (
            *(CommCoordinator.start, CommCoordinator.schedule, CommCoordinator.workers),
            *(CommCoordinator.close_tasks, CommCoordinator.close),
        ),
    ),
    Arrow("CommCoordinator", "Control", methods(Control)),
    Arrow("Control", "CommCoordinator", methods(Arrivals)),
    Arrow("CommCoordinator", "Coordinator", (RunEvents.warn, RunEvents.fatal)),
    Arrow(
        "CommCoordinator",
        "Core",
        (
            *(Core.came, Core.next, Core.lost, Core.end, Core.left, Core.schedule),
            Core.close_tasks,
        ),
    ),
    # The core decides, the worker's thread sends the request, and the worker answers.
    Arrow(
        "CommCoordinator",
        "BaseCommCollector",
        (ResourceRequest, StartTask, SamplesRequest, CloseTask),
    ),
    Arrow(
        "CommCoordinator",
        "BaseCommLearner",
        (ResourceRequest, StartTask, DemandRequest, TrainRequest, CloseTask),
    ),
    Arrow("Control", "BaseCommCollector", (ResourceRequest, EndWorker)),
    Arrow("Control", "BaseCommLearner", (ResourceRequest, OpenMeeting, EndWorker)),
    # Answers are passed to the coordinator and into the buffers.
    Arrow("Core", "Coordinator", methods(RunEvents)),
    Arrow(
        "Core",
        "Buffers",
        (
            *(ChunkBuffer.begin, ChunkBuffer.take_chunks, ChunkBuffer.note_replay),
            *(ChunkBuffer.permit, ChunkBuffer.holds_learner, ChunkBuffer.release),
            *(BufferPace.has_room, BufferPace.paces, BufferPace.grant),
        ),
    ),
    # Samples and weights bypass the coordinator.
    Arrow("BaseCommCollector", "SampleStore", (SampleStore.put, SampleStore.remove)),
    Arrow("BaseCommLearner", "SampleStore", (SampleStore.get,)),
    Arrow("Buffers", "SampleStore", (SampleStore.size, SampleStore.remove, SampleStore.clear)),
    Arrow("BaseCommLearner", "WeightStore", (WeightStore.publish, WeightStore.version)),
    Arrow(
        "BaseCommCollector",
        "WeightStore",
        (WeightStore.version, WeightStore.newest, WeightStore.keep, WeightStore.remove),
    ),
    Arrow(
        "Coordinator",
        "WeightStore",
        (
            *(WeightStore.newest, WeightStore.publish, WeightStore.version),
            *(WeightStore.remove, WeightStore.clear),
        ),
    ),
    Arrow("BaseCommLearner", "Artifacts", (Artifacts.save, Artifacts.load)),
    Arrow("Coordinator", "Artifacts", (Artifacts.save, Artifacts.load)),
)

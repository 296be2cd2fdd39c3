"""The graph of messages matches a real run, and the drawing on the page."""

import functools
import runpy
import sys
import threading
from typing import get_args

import pytest

from ding.entry import parallel_pipeline
from ding.worker import seams
from ding.worker.coordinator.base_parallel_commander import BaseCommander
from ding.worker.coordinator.buffer_pace import BufferPace
from ding.worker.coordinator.chunk_buffer import ChunkBuffer
from ding.worker.coordinator.chunk_table import ChunkTable
from ding.worker.coordinator.comm_coordinator import CommCoordinator
from ding.worker.coordinator.coordinator import Coordinator
from ding.worker.coordinator.core import Core
from ding.worker.coordinator.run_events import RunEvents
from ding.worker.coordinator.solo_parallel_commander import SoloCommander
from ding.worker.engines import carrier
from ding.worker.engines.carrier import CarrierWeights, WithFiles
from ding.worker.engines.control import RunControl
from ding.worker.engines.local import LocalCarrier
from ding.worker.engines.shared_folder import FolderArtifacts
from ding.worker.message_graph import GRAPH, PARTS, methods
from ding.worker.messages import Request
from tests.docs.fences import ROOT
from tests.entry.parallel_runs import small_configs

pytestmark = pytest.mark.timeout(60)

#: Who hears the methods of each interface; of a part itself, those that the graph names.
HEARERS = {
    ("Commander", SoloCommander): BaseCommander,
    ("Coordinator", Coordinator): RunEvents,
    ("CommCoordinator", CommCoordinator): (CommCoordinator, seams.Arrivals),
    ("Core", Core): Core,
    ("Control", RunControl): seams.Control,
    ("Buffers", ChunkBuffer): ChunkBuffer,
    ("Buffers", ChunkTable): ChunkTable,
    ("Buffers", BufferPace): BufferPace,
    ("SampleStore", LocalCarrier): seams.SampleStore,
    ("WeightStore", CarrierWeights): seams.WeightStore,
    ("Artifacts", FolderArtifacts): seams.Artifacts,
}


def callers():
    """The modules, below ``ding.worker``, from which the wrapped method was called."""
    frame = sys._getframe(2)
    while frame is not None:
        yield frame.f_globals["__name__"].removeprefix("ding.worker.")
        frame = frame.f_back


def part_of(module):
    for part, modules in PARTS.items():
        if any(module == name or module.startswith(f"{name}.") for name in modules):
            return part
    return None


@pytest.fixture
def heard(monkeypatch):
    """Arrows and messages of what is said from now on, but what parts say to themselves."""
    said = set()

    def listen(cls, target, message):
        real = getattr(cls, message.__name__)

        @functools.wraps(real)
        def method(*args, **kwargs):
            if sys._getframe(1).f_globals["__name__"] == carrier.__name__:
                return real(*args, **kwargs)  # what it makes its stores of
            speaker = next((part for part in map(part_of, callers()) if part), "unknown")
            said.add((speaker, target, message))
            return real(*args, **kwargs)

        monkeypatch.setattr(cls, message.__name__, method)

    named = {message for arrow in GRAPH for message in arrow.messages}
    for (target, cls), interfaces in HEARERS.items():
        for interface in interfaces if isinstance(interfaces, tuple) else (interfaces,):
            for message in methods(interface):
                if interface is not cls or message in named:
                    listen(cls, target, message)
    real_call = LocalCarrier.call

    def call(self, handle, request, timeout):
        kind = "BaseCommCollector" if handle.name.startswith("collector") else "BaseCommLearner"
        # A worker's thread asks through a peer, which is of the control.
        is_thread = threading.current_thread().name.startswith("worker-")
        said.add(("CommCoordinator" if is_thread else "Control", kind, type(request)))
        return real_call(self, handle, request, timeout)

    monkeypatch.setattr(LocalCarrier, "call", call)
    return said


def test_a_run_says_nothing_else(heard):
    parallel_pipeline(small_configs(engine="local"), 0)
    known = {(a.source, a.target, message) for a in GRAPH for message in a.messages}
    said = {entry for entry in heard if entry[0] != entry[1]}
    assert said <= known, sorted(map(str, said - known))
    arrows = {(source, target) for source, target, _ in said}
    of_trouble = {RunEvents.warn, RunEvents.fatal}
    expected = {(a.source, a.target) for a in GRAPH if not of_trouble.issuperset(a.messages)}
    assert arrows == expected


def test_every_request_is_in_it():
    there = {message for arrow in GRAPH for message in arrow.messages if isinstance(message, type)}
    assert there == set(Request.__subclasses__()) - {WithFiles}  # which carries another one


def drawn():
    """The graph as a Mermaid flowchart; of methods, the protocol that they are of."""
    lines = ["flowchart LR"]
    for arrow in GRAPH:
        protocols = dict.fromkeys(message.__qualname__.split(".")[0] for message in arrow.messages)
        lines.append(f'    {arrow.source} -->|"{"<br>".join(protocols)}"| {arrow.target}')
    return "\n".join(lines)


def listed():
    """The graph as a table in Markdown, with every message."""
    lines = ["| from | to | what |", "|---|---|---|"]
    for arrow in GRAPH:
        said = ", ".join(f"`{said_by(message)}`" for message in arrow.messages)
        lines.append(f"| {arrow.source} | {arrow.target} | {said} |")
    return "\n".join(lines)


def said_by(message):
    """A message's name; with a request stands what it is answered with."""
    if not isinstance(message, type):
        return message.__name__
    (answer,) = get_args(message.__orig_bases__[0])
    has_answer = answer is not type(None)
    return f"{message.__name__} → {answer.__name__}" if has_answer else message.__name__


def test_the_page_draws_it():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert f"```mermaid\n{drawn()}\n```" in page
    assert listed() in page


def test_the_picture_of_the_site_is_drawn_of_it():
    drawing = runpy.run_path(str(ROOT / "docs" / "draw_message_graph.py"))["svg"]()
    assert (ROOT / "docs" / "message_graph.svg").read_text(encoding="utf-8") == drawing, (
        "run docs/draw_message_graph.py"
    )

"""A run whose replay buffer is the learner's: the coordinator passes chunks on, and counts."""

import sys
import threading

import numpy as np
import pytest
from easydict import EasyDict

from ding.data import Columns
from ding.utils.errors import ConfigError
from ding.worker.coordinator.chunk_buffer import ChunkBuffer
from ding.worker.coordinator.space_quota import SpaceQuota
from ding.worker.engines.shared_folder import SharedFolderSamples
from ding.worker.replay_buffer.rate_limiter import SampleRatio

NAME = "buffer_7"


@pytest.fixture
def store(tmp_path):
    return SharedFolderSamples(str(tmp_path / "data"))


def make(store, ratio=None, **cfg) -> ChunkBuffer:
    cfg = EasyDict(type="advanced", replay_buffer_size=40, **cfg)
    return ChunkBuffer(cfg, store, SpaceQuota(None), "exp", NAME, None, ratio, at_learner=True)


def push(buffer, store, serial: int, n: int = 8, **more) -> str:
    name = f"{NAME}.collector0.{serial}"
    size = store.put(name, Columns({"obs": np.full((n, 3), serial, np.float32)}))
    meta = {"data_id": name, "sample_num": n, "size": size, "collect_iter": serial, **more}
    buffer.push(meta, envstep=n)
    return name


def test_chunks_are_passed_on_once_and_removed_when_taken_in(store):
    buffer = make(store)
    names = [push(buffer, store, serial) for serial in range(2)]
    assert [chunk.data_id for chunk in buffer.outbox.take_chunks()] == names
    assert buffer.outbox.take_chunks() == ()
    buffer.outbox.received(names[:1], 8)
    assert [store.size(name) is None for name in names] == [True, False]
    assert buffer.count() == 16
    buffer.outbox.received(names[1:], 16)
    assert store.size(names[1]) is None
    assert (buffer.count(), buffer.bytes, buffer.files) == (16, 0, 0)


def test_what_a_learner_is_told_of_a_chunk(store):
    buffer = make(store)
    push(buffer, store, 3, n=2, priority=[0.5, 2.0])
    (chunk,) = buffer.outbox.take_chunks()
    assert chunk.meta == {"sample_num": 2, "collect_iter": 3, "priority": [0.5, 2.0]}


def test_no_batch_is_permitted_before_there_is_enough(store):
    buffer = make(store)
    push(buffer, store, 0)
    assert not buffer.wait(16, 0.0)
    assert buffer.permit(16, 1) == 0
    push(buffer, store, 1)
    assert buffer.wait(16, 0.0)
    assert buffer.permit(16, 3) == 3


def test_what_a_lost_learner_has_not_taken_in_is_for_the_next_one(store):
    buffer = make(store)
    names = [push(buffer, store, serial) for serial in range(3)]
    buffer.outbox.take_chunks()
    buffer.outbox.received(names[:1], 8)
    buffer.outbox.take_back()
    assert buffer.outbox.begin(0) == 8
    assert [chunk.data_id for chunk in buffer.outbox.take_chunks()] == names[1:]
    assert buffer.count() == 16


def test_a_learner_that_goes_on_has_lost_nothing(store):
    buffer = make(store)
    buffer.outbox.received([push(buffer, store, 0)], 8)
    buffer.outbox.take_back()
    assert buffer.outbox.begin(8) == 0


def test_a_bad_chunk_is_counted_and_forgotten(store):
    buffer = make(store)
    names = [push(buffer, store, serial) for serial in range(2)]
    buffer.outbox.take_chunks()
    assert buffer.drop_chunk(names[0], "damaged") == 8
    buffer.outbox.received(names[1:], 8)
    assert buffer.count() == 8
    buffer.outbox.take_back()
    assert buffer.outbox.take_chunks() == ()


def test_the_state_has_what_was_not_taken_in(store):
    buffer = make(store)
    names = [push(buffer, store, serial) for serial in range(3)]
    buffer.outbox.take_chunks()
    buffer.outbox.received(names[:1], 8)
    other = make(store)
    assert other.load_state_dict(buffer.state_dict()) == []
    assert other.outbox.begin(0) == 8
    assert [chunk.data_id for chunk in other.outbox.take_chunks()] == names[1:]


def test_collectors_are_held_when_the_learner_is_behind(store):
    buffer = make(store, SampleRatio(2.0, tolerance=32.0, min_size=8))
    for serial in range(3):
        buffer.outbox.received([push(buffer, store, serial)], 8 * serial)
    assert not buffer.pace.wait_for_room(0.0)
    assert buffer.pace.grant("collector0", 1000) == 1000
    assert buffer.permit(8, 1) == 1
    assert buffer.pace.grant("collector0", 1000) > 1000


def test_it_can_be_counted_while_chunks_come_and_go():
    buffer, counting = make(None), threading.Event()
    errors = []

    def count():
        while not counting.is_set():
            try:
                buffer.count()
            except RuntimeError as error:
                errors.append(error)
                return

    thread = threading.Thread(target=count)
    thread.start()
    for serial in range(1000):
        for number in range(3):
            buffer.push({"data_id": f"{NAME}.c.{3 * serial + number}", "sample_num": 1}, 1)
        buffer.outbox.received([chunk.data_id for chunk in buffer.outbox.take_chunks()], 8)
    counting.set()
    thread.join()
    assert errors == []


def test_a_learner_that_keeps_no_samples_is_refused(store):
    buffer = make(store)
    push(buffer, store, 0)
    with pytest.raises(ConfigError, match="buffer='learner'"):
        buffer.sample_rows(4, 0)


def steps_of(call) -> int:
    """How many bytecodes a call runs, in all functions of this thread."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def cost_of_a_round(waiting: int) -> int:
    """Of a report, a question and an answer, while so many chunks wait to be taken in."""
    buffer = ChunkBuffer(
        EasyDict(type="advanced", replay_buffer_size=10**6), None, SpaceQuota(10**9), "exp", NAME,
        at_learner=True,
    )  # fmt: skip
    meta = {"sample_num": 8, "size": 100}
    for number in range(waiting):
        buffer.push({"data_id": f"{NAME}.c.{number}", **meta}, 1)
    buffer.outbox.take_chunks()

    def message():
        buffer.push({"data_id": f"{NAME}.c.new", **meta}, 1)
        assert buffer.pace.grant("c", 100) >= 100
        assert [chunk.data_id for chunk in buffer.outbox.take_chunks()] == [f"{NAME}.c.new"]
        assert buffer.wait(64, 0.0)
        assert buffer.permit(64, 8) == 8
        buffer.outbox.received([f"{NAME}.c.new"], 8)

    return steps_of(message)


def test_a_message_costs_the_same_however_many_chunks_wait():
    assert cost_of_a_round(1000) <= 1.1 * cost_of_a_round(20)


def test_a_learner_is_permitted_many_batches_at_one_go(store):
    """A thousand collectors' threads take turns wherever the lock is asked for."""
    buffer = make(store)
    for serial in range(2):
        push(buffer, store, serial)
    assert steps_of(lambda: buffer.permit(8, 64)) < 64 * 100
    assert buffer.permit(8, 64) == 64


def test_no_more_batches_are_permitted_than_the_ratio_allows(store):
    buffer = make(store, SampleRatio(2.0, tolerance=16.0, min_size=8))
    push(buffer, store, 0)
    assert buffer.permit(8, 64) == 2
    assert buffer.permit(8, 64) == 0
    push(buffer, store, 1)
    assert buffer.permit(8, 64) == 2
    assert buffer.permit(8, 1) == 0

"""The coordinator's buffer of references to files."""

import itertools
import json
import multiprocessing
import os
import random
import threading
import time
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from easydict import EasyDict
from hypothesis import given, settings, strategies as st

from ding.data import Columns
from ding.data.chunks import (
    ChunkCache,
    SharedFolder,
    chunk_name,
    chunk_pattern,
    read_chunk,
    write_chunk,
)
from ding.utils import BUFFER_REGISTRY, CheckpointWriteError, ConfigError, DataError
from ding.worker.coordinator.chunk_buffer import ChunkBuffer
from ding.worker.coordinator.space_quota import SpaceQuota
from ding.worker.replay_buffer import IBuffer
from ding.worker.replay_buffer.rate_limiter import SampleRatio

KINDS = ["advanced", "naive", "deque"]
NAME = "buffer_7"


@pytest.fixture
def folder(tmp_path):
    return SharedFolder(str(tmp_path / "data"))


class NoWriter:
    def add_scalar(self, *_):
        pass


def make(folder, kind="advanced", size=40, max_bytes=None, ratio=None, **cfg) -> ChunkBuffer:
    cfg = EasyDict(type=kind, replay_buffer_size=size, **cfg)
    return ChunkBuffer(cfg, folder, SpaceQuota(max_bytes), "exp", NAME, NoWriter(), ratio)


def chunk(folder, serial: int, n: int = 8, worker: str = "collector0", **more) -> dict:
    """Write a file; its metadata. Sample i of chunk k has x = 1000 k + i."""
    name = chunk_name(NAME, worker, str(serial))
    data = Columns({"x": torch.arange(n) + 1000 * serial, "obs": torch.randn(n, 4)})
    size = write_chunk(folder, name, data)
    return {"data_id": name, "sample_num": n, "size": size, "collect_iter": serial, **more}


def over_the_wire(message):
    return json.loads(json.dumps(message))


# ---------------------------------------------------------------------- in and out


@pytest.mark.parametrize("kind", KINDS)
def test_samples_come_back_from_their_files(folder, kind):
    buffer, cache = make(folder, kind), ChunkCache(partial(read_chunk, folder), 40)
    assert buffer.sample(4, 0) is None
    seen = set()
    for i in range(5):
        buffer.push(chunk(folder, i), 8 * i)
        wire = over_the_wire(buffer.sample(8, i))
        batch = cache.batch(wire)
        assert len(batch) == 8
        seen.update(batch.columns["x"].tolist())
        buffer.release(wire)
    assert seen <= {1000 * k + i for k in range(5) for i in range(8)}
    assert len(seen) > 15
    assert (buffer.count(), buffer.capacity, buffer.push_count, buffer.files) == (40, 40, 40, 5)
    assert buffer.bytes == sum(os.path.getsize(folder.file(name)) for name in folder.names())
    buffer.close(remove_files=True)
    assert os.listdir(folder.path) == []


@pytest.mark.parametrize("kind", KINDS)
def test_files_go_with_their_last_sample(folder, kind):
    buffer = make(folder, kind)
    for i in range(12):
        buffer.push(chunk(folder, i), 0)
        assert folder.names() == sorted(chunk_name(NAME, "collector0", str(k))
                                        for k in range(max(0, i - 4), i + 1))  # fmt: skip
    buffer.push(chunk(folder, 12, n=4), 0)
    assert len(folder.names()) == 6  # half of the oldest is still drawn
    buffer.push(chunk(folder, 13, n=100), 0)
    assert folder.names() == [chunk_name(NAME, "collector0", "13")]
    assert buffer.count() == 40
    buffer.close(remove_files=True)


def test_a_file_that_a_batch_needs_stays_until_it_is_released(folder):
    buffer, cache = make(folder, size=8), ChunkCache(partial(read_chunk, folder), 8)
    buffer.push(chunk(folder, 0), 0)
    first, second = buffer.sample(4, 0), buffer.sample(4, 0)
    for i in range(1, 4):
        buffer.push(chunk(folder, i), 0)
    assert len(folder.names()) == 2
    assert buffer.files == 2
    buffer.release(first)
    buffer.release(first)
    assert len(folder.names()) == 2
    assert cache.batch(second).columns["x"].max() < 1000
    buffer.release(second)
    assert len(folder.names()) == 1
    third = buffer.sample(4, 0)
    buffer.push(chunk(folder, 4), 0)
    buffer.release(third)
    assert folder.names() == [chunk_name(NAME, "collector0", "4")]
    buffer.release(third)
    buffer.close(remove_files=True)


def test_used_up_and_stale_samples_take_their_files_along(folder):
    buffer = make(folder, max_use=1, max_staleness=3)
    buffer.push(chunk(folder, 0), 0)
    wire = buffer.sample(8, 0)
    assert buffer.count() == 0
    assert len(folder.names()) == 1
    assert len(ChunkCache(partial(read_chunk, folder), 8).batch(wire)) == 8
    buffer.release(wire)
    assert folder.names() == []
    buffer.push(chunk(folder, 1), 0)
    assert buffer.sample(4, 1 + 4) is None
    assert folder.names() == []
    buffer.close(remove_files=True)


def test_samples_that_the_buffer_turns_away_leave_no_file(folder):
    limit = dict(push_sample_rate_limit=dict(max=1, min=0), window_seconds=30)
    buffer = make(folder, thruput_controller=limit)
    buffer.push(chunk(folder, 0), 0)
    buffer.release(buffer.sample(4, 0))
    buffer.push(chunk(folder, 1), 0)
    assert len(folder.names()) == 1
    assert buffer.count() == 8
    buffer.close(remove_files=True)


def test_metadata_that_comes_twice_counts_once(folder):
    buffer = make(folder)
    meta = chunk(folder, 0)
    buffer.push(meta, 0)
    buffer.push(over_the_wire(meta), 0)
    assert (buffer.count(), buffer.push_count, buffer.files) == (8, 8, 1)
    buffer.close(remove_files=True)


@pytest.mark.parametrize(
    "change",
    [
        {"data_id": "../x"}, {"data_id": "/etc/passwd"}, {"data_id": 3}, {"data_id": None},
        {"data_id": ""}, {"data_id": "x" * 300}, {"sample_num": 0}, {"sample_num": -1},
        {"sample_num": 1.5}, {"sample_num": "8"}, {"sample_num": 1 << 40}, {"sample_num": True},
        {"collect_iter": [1, 2]}, {"collect_iter": "x"}, {"collect_iter": {}},
        {"collect_iter": 1 << 80}, {"priority": [1.0]}, {"priority": -1.0},
        {"priority": float("nan")}, {"priority": "high"},
    ],
    ids=repr,
)  # fmt: skip
def test_nonsense_metadata_is_refused_and_nothing_is_stored(folder, change):
    buffer = make(folder)
    with pytest.raises(DataError):
        buffer.push({**chunk(folder, 0), **change}, 0)
    with pytest.raises(DataError):
        buffer.push([], 0)
    assert (buffer.count(), buffer.files, buffer.bytes) == (0, 0, 0)
    buffer.close(remove_files=True)
    assert folder.names() == []


def test_sequence_buffers_are_refused_with_a_way_out(folder):
    with pytest.raises(ConfigError, match=r"'sequence'.*'advanced'"):
        make(folder, "sequence")


# ---------------------------------------------------------------------- priorities


@pytest.mark.parametrize("as_texts", [True, False])
@pytest.mark.parametrize(
    ("kind", "cfg"), [("advanced", {}), ("deque", dict(priority=True, priority_IS_weight=True))]
)
def test_priorities_come_back_and_count(folder, kind, cfg, as_texts):
    buffer, cache = make(folder, kind, **cfg), ChunkCache(partial(read_chunk, folder), 40)
    for i in range(5):
        buffer.push(chunk(folder, i), 0)
    columns = cache.batch(over_the_wire(buffer.sample(40, 0))).columns
    ids = columns["replay_unique_id"]
    info = {
        "replay_buffer_idx": columns["replay_buffer_idx"].tolist(),
        "replay_unique_id": ids.tolist()
        if as_texts
        else {"prefix": ids.prefix, "numbers": ids.numbers.tolist()},
        "priority": (1e9 * (columns["x"] == 3005)).tolist(),
    }
    buffer.update(over_the_wire(info))
    buffer.update({})
    batch = cache.batch(over_the_wire(buffer.sample(16, 0))).columns
    assert batch["x"].tolist() == [3005] * 16
    assert batch["IS"].dtype == np.float32
    buffer.close(remove_files=True)


@pytest.mark.parametrize(
    "change",
    [
        {"priority": [float("nan"), 1.0]}, {"priority": [1.0]}, {"priority": "ab"},
        {"replay_buffer_idx": [0, 99]}, {"replay_buffer_idx": [0, -1]},
        {"replay_buffer_idx": [0, 1 << 70]}, {"replay_buffer_idx": ["a", "b"]},
        {"replay_unique_id": [1, 2]}, {"replay_unique_id": {"prefix": NAME}},
        {"replay_unique_id": {"prefix": NAME, "numbers": ["x", "y"]}},
        {"replay_unique_id": {"prefix": NAME, "numbers": [1]}},
    ],
    ids=repr,
)  # fmt: skip
def test_damaged_priorities_are_refused(folder, change):
    buffer = make(folder)
    buffer.push(chunk(folder, 0), 0)
    info = {"priority": [1.0, 2.0], "replay_buffer_idx": [0, 1],
            "replay_unique_id": [f"{NAME}_0", f"{NAME}_1"]}  # fmt: skip
    buffer.update(info)
    with pytest.raises(DataError):
        buffer.update({**info, **change})
    buffer.close(remove_files=True)


def test_priorities_of_the_collector_are_taken(folder):
    buffer, cache = make(folder), ChunkCache(partial(read_chunk, folder), 40)
    buffer.push(chunk(folder, 0, priority=0.0), 0)
    buffer.push(chunk(folder, 1, priority=[0.0] * 7 + [1e9]), 0)
    assert set(cache.batch(buffer.sample(16, 0)).columns["x"].tolist()) == {1007}
    buffer.close(remove_files=True)


# ---------------------------------------------------------------------- foreign peers


def test_foreign_metadata_and_learners(folder):
    buffer, cache = make(folder, size=4), ChunkCache(partial(read_chunk, folder), 4)
    for i in range(6):
        torch.save({"obs": torch.full((3,), i)}, folder.file(f"env_{i}"))
        buffer.push({"data_id": f"env_{i}", "env_id": i, "buffer_id": NAME}, i)
    assert folder.names() == [f"env_{i}" for i in range(2, 6)]
    wire = buffer.sample(4, 0)
    assert sorted(row["obs"][0].item() for row in cache.batch(wire)) == [2, 3, 4, 5]
    buffer.release(wire)
    rows = over_the_wire(buffer.sample_rows(4, 0))
    assert sorted(row["data_id"] for row in rows) == folder.names()
    assert all(row["env_id"] == int(row["data_id"][-1]) for row in rows)
    assert {"replay_buffer_idx", "replay_unique_id", "IS", "priority"} <= rows[0].keys()
    ids = {name: [row[name] for row in rows] for name in ("replay_buffer_idx", "replay_unique_id")}
    buffer.update({**ids, "priority": [1, 2, 3, 4]})
    buffer.release(rows)
    rows = buffer.sample_rows(4, 0)
    for i in range(6, 10):
        torch.save({"obs": torch.full((3,), i)}, folder.file(f"env_{i}"))
        buffer.push({"data_id": f"env_{i}"}, i)
    assert len(folder.names()) > 4
    buffer.release(rows)
    assert len(folder.names()) == 4
    buffer.close(remove_files=True)
    assert folder.names() == []


def test_a_step_of_a_foreign_trajectory(folder):
    buffer = make(folder)
    torch.save([{"x": torch.tensor(i)} for i in range(5)], folder.file("trajectory"))
    buffer.push({"data_id": "trajectory", "unroll_split_begin": 3, "unroll_len": 1}, 0)
    assert ChunkCache(partial(read_chunk, folder), 9).batch(buffer.sample(1, 0))[0]["x"] == 3
    with pytest.raises(DataError, match="unroll_len=2"):
        buffer.push({"data_id": "other", "unroll_split_begin": 3, "unroll_len": 2}, 0)
    buffer.close(remove_files=True)


class RowBuffer(IBuffer):
    """What a user may write: rows in a list, nothing else."""

    config = dict(type="test_rows")
    gone: Counter

    def __init__(self, cfg, tb_logger=None, exp_name="", instance_name="buffer"):
        self.size, self.rows, self.updates = cfg.replay_buffer_size, [], []
        self.rng = random.Random(0)

    def push(self, data, cur_collector_envstep):
        for row in data if isinstance(data, list) else [data]:
            self.rows.append({**row, "my_id": f"row-{len(self.updates)}"})
        self.rows = self.rows[-self.size :]

    def sample(self, batch_size, cur_learner_iter):
        return self.rng.sample(self.rows, batch_size) if len(self.rows) >= batch_size else None

    def update(self, info):
        self.updates.append(info)

    def clear(self):
        self.rows = []

    def count(self):
        return len(self.rows)

    def save_data(self, file_name):
        raise NotImplementedError

    def load_data(self, file_name):
        raise NotImplementedError

    def state_dict(self):
        return {"rows": list(self.rows)}

    def load_state_dict(self, _state_dict):
        self.rows = list(_state_dict["rows"])


@pytest.fixture
def users_buffer():
    BUFFER_REGISTRY.register("test_rows", RowBuffer, force_overwrite=True)
    yield
    del BUFFER_REGISTRY["test_rows"]


def test_a_users_buffer_of_rows(folder, users_buffer):
    buffer, cache = make(folder, "test_rows", size=20), ChunkCache(partial(read_chunk, folder), 20)
    for i in range(9):
        buffer.push(chunk(folder, i), 0)
        wire = over_the_wire(buffer.sample(8, 0))
        batch = cache.batch(wire)
        assert [row["my_id"] for row in batch] == ["row-0"] * 8
        buffer.release(wire)
    assert len(folder.names()) == 3
    assert buffer.capacity == 20
    buffer.update({"priority": [1.0], "replay_unique_id": ["a"], "replay_buffer_idx": [0]})
    assert buffer.buffer.updates[0]["replay_unique_id"] == ["a"]
    assert buffer.drop_chunk(chunk_name(NAME, "collector0", "8"), "gone") == 8
    for _ in range(20):
        wire = buffer.sample(8, 0)
        assert cache.batch(wire)[0]["x"] < 8000
        buffer.release(wire)
    state = buffer.state_dict()
    buffer.close(remove_files=False)
    buffer = make(folder, "test_rows", size=20)
    assert buffer.load_state_dict(state) == []
    assert len(cache.batch(buffer.sample(8, 0))) == 8
    buffer.close(remove_files=True)
    assert folder.names() == []


class TellingBuffer(RowBuffer):
    """One that lets its newest rows leave, and says so."""

    on_leave = None

    def push(self, data, cur_collector_envstep):
        rows = [*self.rows, *data]
        self.rows, left = rows[: self.size], rows[self.size :]
        if left:
            self.on_leave(left)


def test_a_users_buffer_that_tells_who_leaves(folder, users_buffer):
    BUFFER_REGISTRY.register("test_rows", TellingBuffer, force_overwrite=True)
    buffer = make(folder, "test_rows", size=20)
    metas = [chunk(folder, i) for i in range(5)]
    for meta in metas:
        buffer.push(meta, 0)
    assert folder.names() == [meta["data_id"] for meta in metas[:3]]
    assert buffer.drop_chunk(metas[0]["data_id"], "gone") == 8
    assert (buffer.count(), len(folder.names())) == (12, 2)
    assert metas[0]["data_id"] not in buffer.sample(8, 0)["chunks"]
    buffer.close(remove_files=True)


# ---------------------------------------------------------------------- bad chunks


@pytest.mark.parametrize("kind", KINDS)
def test_a_dropped_chunk_is_never_drawn_again(folder, kind):
    buffer, cache = make(folder, kind), ChunkCache(partial(read_chunk, folder), 40)
    metas = [chunk(folder, i) for i in range(5)]
    for meta in metas:
        buffer.push(meta, 0)
    assert buffer.drop_chunk(metas[1]["data_id"], "cut short") == 8
    assert buffer.drop_chunk(metas[3]["data_id"], "cut short") == 8
    assert buffer.drop_chunk(metas[3]["data_id"], "cut short") == 0
    assert buffer.drop_chunk("unknown", "") == 0
    assert len(folder.names()) == 3
    assert buffer.count() == 24
    for _ in range(20):
        wire = buffer.sample(16, 0)
        assert len(wire["row"]) == 16
        assert {x // 1000 for x in cache.batch(wire).columns["x"].tolist()} <= {0, 2, 4}
        buffer.release(wire)
    for meta in metas[::2]:
        buffer.drop_chunk(meta["data_id"], "all gone")
    assert buffer.sample(16, 0) is None
    assert (buffer.count(), folder.names()) == (0, [])
    for i in range(5, 7):
        buffer.push(chunk(folder, i), 0)
    assert {x // 1000 for x in cache.batch(buffer.sample(8, 0)).columns["x"].tolist()} <= {5, 6}
    buffer.close(remove_files=True)


# ---------------------------------------------------------------------- the truth


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([*KINDS, "tight"]), st.integers(0, 2**32))
def test_files_are_those_that_samples_and_batches_need(tmp_path_factory, kind, seed):
    rng = random.Random(seed)
    folder = SharedFolder(str(tmp_path_factory.mktemp("truth")))
    if kind == "tight":
        buffer = make(folder, "advanced", 30, max_use=3, max_staleness=6)
    else:
        buffer = make(folder, kind, 30)
    buffer.buffer.rng = rng
    batches, n, now = [], 0, 0
    for _ in range(40):
        step = rng.randrange(8)
        if step < 3:
            buffer.push(chunk(folder, n, rng.randint(1, 12)), 0)
            n += 1
        elif step < 5:
            wire = buffer.sample(rng.randint(1, 12), now)
            batches += [wire] if wire else []
        elif step == 5 and batches:
            buffer.release(batches.pop(rng.randrange(len(batches))))
        elif step == 6:
            now += 1
        elif step == 7 and folder.names() and rng.random() < 0.5:
            buffer.drop_chunk(rng.choice(folder.names()), "test")
        there = set(folder.names())
        for wire in batches:
            assert there >= set(wire["chunks"])
        if not batches and buffer.count():
            # All that can be drawn is there, and nothing else.
            probe = buffer.sample(buffer.count(), now) if kind != "tight" else None
            if probe is not None:
                assert buffer.buffer.count() != buffer.count() or set(probe["chunks"]) == there
                buffer.release(probe)
        assert buffer.files == len(there)
        assert buffer.bytes == sum(os.path.getsize(folder.file(name)) for name in there)
    buffer.close(remove_files=True)
    assert os.listdir(folder.path) == []


def test_many_threads(folder):
    buffer = make(folder, size=200)
    cache = ChunkCache(partial(read_chunk, folder), 200)
    stop, errors, lock = threading.Event(), [], threading.Lock()
    serials = iter(range(10**6))

    def run(work):
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            errors.append(error)
            stop.set()

    def push():
        with lock:
            serial = next(serials)
        buffer.push(chunk(folder, serial, 1 + serial % 9), serial)

    def sample():
        if not buffer.wait(16, 0.1):
            return
        wire = buffer.sample(16, 0)
        columns = cache.batch(wire).columns
        assert (columns["x"] % 1000 < 9).all()
        buffer.update({"replay_buffer_idx": columns["replay_buffer_idx"].tolist(),
                       "replay_unique_id": columns["replay_unique_id"].tolist(),
                       "priority": [1.0] * 16})  # fmt: skip
        buffer.release(wire)

    threads = [threading.Thread(target=run, args=(work,)) for work in (push, push, sample, sample)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 20
    while not stop.is_set() and buffer.push_count < 1500 and time.monotonic() < deadline:
        stop.wait(0.05)
    stop.set()
    for thread in threads:
        thread.join(20)
    assert not errors
    assert cache.take_bad() == []
    assert len(folder.names()) == buffer.files
    buffer.close(remove_files=True)
    assert os.listdir(folder.path) == []


def test_waiting_for_enough(folder):
    buffer = make(folder)
    assert not buffer.wait(12, 0.01)
    thread = threading.Thread(target=lambda: [buffer.push(chunk(folder, i), 0) for i in range(2)])
    thread.start()
    assert buffer.wait(12, 20)
    thread.join()
    assert buffer.wait(12, 0)
    closer = threading.Thread(target=lambda: buffer.close(remove_files=True))
    waiter_says = []
    waiter = threading.Thread(target=lambda: waiter_says.append(buffer.wait(10**6, 20)))
    waiter.start()
    closer.start()
    waiter.join(10)
    closer.join(10)
    assert waiter_says == [False]


# ---------------------------------------------------------------------- sampling against collecting


def limited(folder, per_insert=2.0, tolerance=32.0, **more) -> ChunkBuffer:
    """Batches of 8: 8 samples begin, then 16 more may come before any is drawn."""
    return make(folder, ratio=SampleRatio(per_insert, tolerance, min_size=8), **more)


def test_a_learner_waits_for_collectors_that_are_behind(folder):
    buffer = limited(folder)
    buffer.push(chunk(folder, 0), 0)
    assert [buffer.sample(8, 0) is None for _ in range(5)] == [False] * 4 + [True]
    assert not buffer.wait(8, 0.0)
    assert buffer.holds_learner(8)
    assert buffer.pace.wait_for_room(0.0)
    buffer.push(chunk(folder, 1, n=4), 0)
    assert buffer.wait(8, 0.0)
    assert not buffer.holds_learner(8)
    assert buffer.sample(8, 0) is not None
    assert buffer.sample(8, 0) is None
    assert buffer.pace.ratio_status() == {
        "target": 2.0,
        "reached": 40 / 12,
        "balance": -32.0,
        "tolerance": 32.0,
    }


def test_a_waiting_learner_goes_on_as_soon_as_samples_come(folder):
    buffer = limited(folder)
    buffer.push(chunk(folder, 0), 0)
    while buffer.sample(8, 0):
        pass
    waited = []
    waiter = threading.Thread(target=lambda: waited.append(buffer.wait(8, 10)))
    waiter.start()
    buffer.push(chunk(folder, 1), 0)
    waiter.join(5)
    assert waited == [True]


def test_collectors_wait_for_a_learner_that_is_behind(folder):
    buffer, told = limited(folder), 0
    for i in range(3):
        assert buffer.pace.wait_for_room(0.0)
        meta = chunk(folder, i)
        assert buffer.pace.grant("collector0", told, meta["size"]) >= told + meta["size"]
        buffer.push(meta, 0)
        told += meta["size"]
    assert buffer.pace.grant("collector0", told) == told  # nothing more
    assert buffer.pace.grant("collector0", told, need=100) == told
    assert buffer.pace.paces("collector0")
    assert not buffer.pace.wait_for_room(0.0)
    waited = []
    waiter = threading.Thread(target=lambda: waited.append(buffer.pace.wait_for_room(10)))
    waiter.start()
    while not waited:
        assert buffer.sample(8, 0) is not None
        waiter.join(0.1)
    assert waited == [True]
    assert buffer.pace.grant("collector0", told, need=100) >= told + 100


def test_room_is_shared_among_collectors(folder):
    buffer = limited(folder, tolerance=20_000.0, size=50_000)
    size = chunk(folder, 10**6)["size"]
    buffer.push(chunk(folder, 0), 0)
    alone = buffer.pace.grant("a", 0)
    buffer.pace.grant("b", 0)
    shared = buffer.pace.grant("a", 0)
    assert 0.4 * alone < shared < 0.6 * alone
    assert alone > 1000 * size
    buffer.forget_worker("b")
    assert buffer.pace.grant("a", 0) == alone


def test_a_buffer_that_lost_its_samples_unused_does_not_hold_collectors(folder):
    buffer = limited(folder, size=400, max_staleness=1)
    for i in range(3):
        buffer.push(chunk(folder, i), 0)
    assert not buffer.pace.wait_for_room(0.0)
    assert buffer.wait(8, 0.0)
    assert buffer.sample(8, 100) is None  # they are too old
    assert buffer.pace.wait_for_room(0.0)


def test_samples_that_may_be_used_once_do_not_hold_collectors_for_ever(folder):
    buffer = limited(folder, per_insert=8.0, tolerance=64.0, size=400, max_use=1)
    drawn = 0
    for i in range(40):
        if buffer.pace.wait_for_room(0.0):
            buffer.push(chunk(folder, i), 0)
        while buffer.wait(8, 0.0) and buffer.sample(8, 0):
            drawn += 8
    assert drawn >= 8 * 30


def test_the_ratio_goes_on_after_a_resume(folder):
    first = limited(folder)
    first.push(chunk(folder, 0), 0)
    while first.sample(8, 0):
        pass
    second = limited(folder)
    second.load_state_dict(first.state_dict())
    assert second.pace.ratio_status() == first.pace.ratio_status()
    assert second.holds_learner(8)
    third = make(folder)  # turned off meanwhile
    third.load_state_dict(first.state_dict())
    assert third.pace.ratio_status() is None
    assert third.sample(8, 0) is not None
    fourth = limited(folder)  # turned on meanwhile
    fourth.load_state_dict(third.state_dict())
    assert fourth.pace.wait_for_room(0.0)


# ---------------------------------------------------------------------- space


def test_grants_and_files_never_exceed_the_limit(folder):
    size = chunk(folder, 10**6)["size"]
    folder.clear(chunk_pattern(NAME))
    limit = 30 * size
    buffer = make(folder, size=10_000, max_bytes=limit)
    rng = random.Random(0)
    quota = dict.fromkeys(["a", "b", "c"], 0)
    written, told = Counter(), Counter()
    pending: list[tuple[str, dict]] = []
    n = most = 0
    for step in range(1500):
        worker = rng.choice("abc")
        if rng.random() < 0.5:
            if written[worker] + size <= quota[worker]:
                meta = chunk(folder, n, worker=worker)
                n += 1
                written[worker] += meta["size"]
                pending.append((worker, meta))
        else:
            for who, meta in [p for p in pending if p[0] == worker]:
                buffer.push(meta, 0)
                told[who] += meta["size"]
            pending = [p for p in pending if p[0] != worker]
            need = size if written[worker] + size > quota[worker] else 0
            given = buffer.pace.grant(worker, told[worker], need)
            assert given >= (written if need else quota)[worker]
            quota[worker] = given
        used = sum(os.path.getsize(folder.file(name)) for name in folder.names())
        most = max(most, used)
        could_be = used + sum(quota[w] - written[w] for w in quota)
        assert could_be <= limit, step
        if buffer.count() >= 8 and rng.random() < 0.2:
            wire = buffer.sample(8, 0)
            assert all(os.path.exists(folder.file(name)) for name in wire["chunks"])
            buffer.release(wire)
    assert n > 100
    assert most > limit / 2
    buffer.close(remove_files=True)
    assert os.listdir(folder.path) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_oldest_leave_when_the_limit_binds_with_one_warning(folder, kind, caplog):
    size = chunk(folder, 0)["size"]
    buffer = make(folder, kind, size=10_000, max_bytes=20 * size)
    told = 0
    for i in range(60):
        given = buffer.pace.grant("collector0", told, need=size)
        assert given >= told + size
        meta = chunk(folder, i)
        buffer.push(meta, 0)
        told += meta["size"]
    kept = sorted(int(name.rpartition(".")[2]) for name in folder.names())
    assert kept == list(range(60 - len(kept), 60))
    assert 10 <= len(kept) <= 20
    assert buffer.count() == 8 * len(kept)
    columns = ChunkCache(partial(read_chunk, folder), 200).batch(buffer.sample(64, 0)).columns
    assert {x // 1000 for x in columns["x"].tolist()} <= set(kept)
    warnings = [r.getMessage() for r in caplog.records if "path_data_limit" in r.getMessage()]
    assert len(warnings) == 1
    assert "about 160 samples, fewer than replay_buffer_size=10000" in warnings[0]
    buffer.close(remove_files=True)


def test_a_worker_that_left_gives_back_what_it_did_not_use(folder):
    size = chunk(folder, 0)["size"]
    folder.clear(chunk_pattern(NAME))
    buffer = make(folder, max_bytes=3 * size)
    assert buffer.pace.grant("a", 0, need=2 * size) >= 2 * size
    assert buffer.pace.grant("b", 0, need=2 * size) == 0
    chunk(folder, 0, worker="a")  # never told of
    chunk(folder, 1, worker="ab")
    with open(os.path.join(folder.path, f".{NAME}.a.9.{'0' * 16}"), "w"):
        pass
    buffer.forget_worker("a")
    assert os.listdir(folder.path) == [chunk_name(NAME, "ab", "1")]
    assert buffer.pace.grant("b", 0, need=2 * size) >= 2 * size
    buffer.forget_worker("nobody")
    buffer.close(remove_files=True)


def test_collectors_that_wait_do_not_keep_each_other_waiting(folder):
    size = chunk(folder, 0)["size"]
    folder.clear(chunk_pattern(NAME))
    limit = 4 * size
    buffer = make(folder, max_bytes=limit)
    needs = {"a": int(2.6 * size), "b": int(2.8 * size)}
    told = dict.fromkeys(needs, 0)
    for serial in range(40):
        given = {w: buffer.pace.grant(w, told[w], need) - told[w] for w, need in needs.items()}
        served = [w for w in needs if given[w] >= needs[w]]
        assert served
        buffer.push(chunk(folder, serial, worker=served[0]), 0)
        told[served[0]] += size
        assert buffer.bytes <= limit
    buffer.close(remove_files=True)


def test_buffers_of_one_folder_share_its_space(folder):
    size = chunk(folder, 0)["size"]
    folder.clear(chunk_pattern(NAME))
    limit = 12 * size
    space = SpaceQuota(limit)
    buffers = [
        ChunkBuffer({"replay_buffer_size": 10_000}, folder, space, "exp", name, NoWriter())
        for name in ("first", "second")
    ]
    told = 0
    for serial in range(80):
        buffer = buffers[serial // 40]
        assert buffer.pace.grant("collector0", told, need=size) >= told + size
        buffer.push(chunk(folder, serial), 0)
        told += size
        used = sum(os.path.getsize(folder.file(name)) for name in folder.names())
        assert used == sum(buffer.bytes for buffer in buffers) <= limit
    assert all(buffer.count() >= 8 for buffer in buffers)
    for buffer in buffers:
        buffer.close(remove_files=True)
    assert folder.names() == []


def test_pinned_files_are_not_evicted_and_space_comes_when_they_are_released(folder):
    size = chunk(folder, 0)["size"]
    folder.clear(chunk_pattern(NAME))
    buffer = make(folder, max_bytes=4 * size)
    for i in range(4):
        buffer.push(chunk(folder, i), 0)
    wire = buffer.sample(32, 0)
    assert buffer.pace.grant("a", 0, need=size) == 0
    assert buffer.pace.grant("a", 0, need=size) == 0
    assert set(wire["chunks"]) <= set(folder.names())
    assert buffer.count() >= 8
    buffer.release(wire)
    assert buffer.pace.grant("a", 0, need=size) >= size
    buffer.close(remove_files=True)


def test_limits_that_cannot_do_are_said(folder):
    size = chunk(folder, 0)["size"]
    buffer = make(folder, size=1000, max_bytes=4 * size)
    with pytest.raises(ConfigError, match=r"collector0 has a chunk of .*path_data_limit"):
        buffer.pace.grant("collector0", 0, need=5 * size)
    told = 0
    for i in range(40):
        buffer.pace.grant("collector0", told, need=size)
        meta = chunk(folder, i)
        buffer.push(meta, 0)
        told += size
    assert buffer.wait(64, 0)
    with pytest.raises(ConfigError, match=r"too little for batches of 64: it holds about 3\d sam"):
        buffer.sample(64, 0)
    buffer.close(remove_files=True)


def test_no_limit_and_no_folder(folder):
    buffer = make(folder)
    assert buffer.pace.grant("a", 0) > 1 << 60
    buffer.close(remove_files=True)
    buffer = make(None, size=8)
    for i in range(3):
        buffer.push({"data_id": f"c{i}", "sample_num": 8, "size": 100}, 0)
    assert (buffer.bytes, buffer.files) == (100, 1)
    buffer.release(buffer.sample(8, 0))
    buffer.close(remove_files=True)


def test_writers_that_are_killed_leave_nothing(folder):
    context = multiprocessing.get_context("fork")
    buffer = make(folder, size=10_000)
    for serial in range(4):
        near, far = context.Pipe()

        def write(serial=serial, far=far):
            for i in itertools.count(1000 * serial):
                far.send(chunk(folder, i, 200, worker="victim"))

        writer = context.Process(target=write, daemon=True)
        writer.start()
        for _ in range(5):
            assert near.poll(30)
            buffer.push(near.recv(), 0)
        writer.kill()
        writer.join(30)
        near.close()
        far.close()
        buffer.forget_worker("victim")
        assert set(os.listdir(folder.path)) == set(folder.names())
        assert len(folder.names()) == buffer.files == 5 * (serial + 1)
    wire = buffer.sample(64, 0)
    assert len(ChunkCache(partial(read_chunk, folder), 10_000).batch(wire)) == 64
    buffer.close(remove_files=True)
    assert os.listdir(folder.path) == []


# ---------------------------------------------------------------------- state


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_buffer_goes_on(folder, kind):
    buffer = make(folder, kind)
    for i in range(7):
        buffer.push(chunk(folder, i), 0)
    wire = buffer.sample(8, 0)
    state = buffer.state_dict()
    chunk(folder, 50)  # written after the state was saved
    expected = buffer.sample(8, 0)
    buffer.close(remove_files=False)
    again = make(folder, kind)
    assert again.load_state_dict(state) == []
    assert len(folder.names()) == 5
    assert (again.count(), again.push_count, again.files) == (40, 56, 5)
    assert again.sample(8, 0) == expected
    again.release(wire)  # of a batch that nobody remembers
    for i in range(7, 12):
        again.push(chunk(folder, i), 0)
    assert len(folder.names()) <= 10
    again.release(expected)
    assert len(folder.names()) == 5
    again.close(remove_files=True)
    assert os.listdir(folder.path) == []


def test_chunks_whose_files_are_gone_are_dropped_and_named(folder):
    buffer = make(folder)
    metas = [chunk(folder, i) for i in range(5)]
    for meta in metas:
        buffer.push(meta, 0)
    state = buffer.state_dict()
    buffer.close(remove_files=False)
    folder.remove(metas[1]["data_id"])
    os.truncate(folder.file(metas[2]["data_id"]), 10)
    buffer = make(folder)
    assert buffer.load_state_dict(state) == [metas[1]["data_id"], metas[2]["data_id"]]
    assert buffer.count() == 24
    assert folder.names() == [metas[i]["data_id"] for i in (0, 3, 4)]
    assert buffer.bytes == sum(metas[i]["size"] for i in (0, 3, 4))
    for _ in range(5):
        assert not {metas[1]["data_id"], metas[2]["data_id"]} & set(buffer.sample(8, 0)["chunks"])
    buffer.close(remove_files=True)


@pytest.mark.parametrize("kind", KINDS)
def test_new_samples_are_drawn_evenly_when_all_old_files_are_gone(folder, kind):
    buffer = make(folder, kind, size=4000)
    for i in range(20):
        buffer.push(chunk(folder, i, 200), 0)
    state = buffer.state_dict()
    buffer.close(remove_files=True)
    buffer = make(folder, kind, size=4000)
    assert len(buffer.load_state_dict(state)) == 20
    assert (buffer.count(), buffer.files, buffer.bytes) == (0, 0, 0)
    buffer.push(chunk(folder, 50, 100), 0)
    wire = buffer.sample(64, 0)
    assert len(set(wire["row"])) == 64
    assert buffer.count() == 100
    buffer.close(remove_files=True)


def test_the_end_removes_all_files_of_this_run_and_no_other(folder):
    buffer = make(folder)
    buffer.push(chunk(folder, 0), 0)
    buffer.sample(4, 0)
    torch.save({"obs": torch.ones(2)}, folder.file("foreign"))
    buffer.push({"data_id": "foreign"}, 0)
    chunk(folder, 1)
    for name in ("other.collector0.1", f"{NAME}.old.csv", f".{NAME}.collector0.2.{'0' * 16}"):
        with open(os.path.join(folder.path, name), "w"):
            pass
    buffer.close(remove_files=True)
    buffer.close(remove_files=True)
    assert folder.names() == sorted(os.listdir(folder.path))
    assert folder.names() == [f"{NAME}.old.csv", "other.collector0.1"]
    buffer.push(chunk(folder, 3), 0)
    assert buffer.sample(1, 0) is None


def test_a_file_that_cannot_be_removed_is_tried_again(folder, monkeypatch, caplog):
    buffer = make(folder, size=8)
    buffer.push(chunk(folder, 0), 0)

    def refuse(folder, name):
        raise CheckpointWriteError(f"cannot remove {name}")

    monkeypatch.setattr(SharedFolder, "remove", refuse)
    buffer.push(chunk(folder, 1), 0)
    buffer.push(chunk(folder, 2), 0)
    assert len(folder.names()) == 3
    total = sum(os.path.getsize(folder.file(name)) for name in folder.names())
    assert buffer.bytes == total
    assert len([r for r in caplog.records if "stays" in r.getMessage()]) == 2
    monkeypatch.undo()
    buffer.push(chunk(folder, 3), 0)
    assert len(folder.names()) == 1
    buffer.close(remove_files=True)

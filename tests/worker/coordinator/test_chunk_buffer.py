"""The coordinator's side of a replay buffer: chunks, counts, pace, rows for foreign learners."""

import itertools
import json
import multiprocessing
import os
import random
import sys
import threading
import time
from collections import Counter
from functools import partial

import pytest
import torch
from easydict import EasyDict
from hypothesis import given, settings, strategies as st

from ding.data import Columns
from ding.data.buffer.rate_limiter import SampleRatio
from ding.data.chunks import SharedFolder, chunk_name, chunk_pattern, read_chunk, write_chunk
from ding.utils import BUFFER_REGISTRY, CheckpointWriteError, ConfigError, DataError
from ding.worker.coordinator.buffer_pace import SpaceQuota
from ding.worker.coordinator.chunk_buffer import ChunkBuffer
from ding.worker.coordinator.turn import Turn
from ding.worker.replay_buffer import IBuffer
from ding.worker.replay_buffer.chunk_replay import ChunkReplay, read_rows
from tests.fakes import Writer

KINDS = ["advanced", "naive", "deque"]
NAME = "buffer_7"


@pytest.fixture
def folder(tmp_path):
    return SharedFolder(str(tmp_path / "data"))


def make(
    folder, kind="advanced", size=40, max_bytes=None, ratio=None, turn=None, **cfg
) -> ChunkBuffer:
    cfg = EasyDict(type=kind, replay_buffer_size=size, **cfg)
    return ChunkBuffer(cfg, folder, SpaceQuota(max_bytes), "exp", NAME, Writer(), ratio, turn)


def chunk(folder, serial: int, n: int = 8, worker: str = "collector0", **more) -> dict:
    """Write a file; returns its metadata. Sample i of chunk k has x = 1000 k + i."""
    name = chunk_name(NAME, worker, str(serial))
    data = Columns({"x": torch.arange(n) + 1000 * serial, "obs": torch.randn(n, 4)})
    size = write_chunk(folder, name, data)
    return {"data_id": name, "sample_num": n, "size": size, "collect_iter": serial, **more}


class Nowhere:
    """A store that knows of no chunk."""

    def size(self, name):
        return None

    def remove(self, name):
        pass

    def clear(self, pattern, keep=()):
        return []


class Learner:
    """Has the replay buffer."""

    def __init__(self, folder, kind="advanced", size=40, **cfg):
        cfg = EasyDict(type=kind, replay_buffer_size=size, **cfg)
        self.replay = ChunkReplay(cfg, "exp", NAME, Writer())
        self._read = partial(read_rows, partial(read_chunk, folder))

    def talk(self, buffer):
        """Take in what it is named, and report."""
        self.replay.name_chunks(buffer.take_chunks(), 0)
        self.replay.take_in(self._read)
        news = self.replay.take_news()
        buffer.note_replay(news.received, news.left, news.rows, news.starved)
        return news

    def draw(self, buffer, size, train_iter=0):
        """The numbers of the chunks of a batch; ``None`` if it gets none."""
        self.talk(buffer)
        batch = self.replay.sample(size, train_iter)[0] if buffer.permit(size, 1) else None
        self.talk(buffer)
        return None if batch is None else [int(row["x"]) // 1000 for row in batch]


class RowBuffer(IBuffer):
    """What a user may write: rows in a list, nothing else."""

    config = dict(type="test_rows")

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


def over_the_wire(message):
    return json.loads(json.dumps(message))


# ---------------------------------------------------------------------- a chunk's way


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_go_to_the_learner_and_are_removed_with_their_last_sample(folder, kind):
    buffer, learner = make(folder, kind), Learner(folder, kind)
    for i in range(5):
        buffer.push(chunk(folder, i), 0)
    assert (buffer.count(), buffer.files) == (40, 5)
    assert learner.talk(buffer).rows == 40
    assert (buffer.count(), buffer.files) == (40, 5)
    assert set(learner.draw(buffer, 40)) == set(range(5))
    for i in range(5, 8):
        buffer.push(chunk(folder, i), 0)
        assert buffer.count() == 40
        learner.talk(buffer)
        assert len(folder.names()) == buffer.files == 5
    assert buffer.bytes == sum(os.path.getsize(folder.file(name)) for name in folder.names())
    buffer.close(remove_files=True)
    assert os.listdir(folder.path) == []


def test_what_is_reported_to_a_learner_about_a_chunk(folder):
    buffer = make(folder)
    buffer.push(chunk(folder, 3, n=2, priority=[0.5, 2.0], policy_iter=7), 0)
    (named,) = buffer.take_chunks()
    assert named.meta == {"sample_num": 2, "collect_iter": 3, "priority": [0.5, 2.0], "number": 0}


def test_many_chunks_are_named_in_several_messages():
    buffer = make(Nowhere(), size=10**6)
    for number in range(5000):
        buffer.push({"data_id": f"c{number}", "sample_num": 1}, 0)
    messages = [buffer.take_chunks() for _ in range(4)]
    assert [len(message) > 0 for message in messages] == [True, True, True, False]
    assert [c.meta["number"] for message in messages for c in message] == list(range(5000))


def test_a_learner_that_begins_again_is_given_all_chunks_that_are_left(folder):
    buffer, learner = make(folder), Learner(folder)
    for i in range(7):
        buffer.push(chunk(folder, i), 0)
        learner.talk(buffer)
    state = learner.replay.state_dict()
    buffer.begin()
    assert buffer.count() == 40
    again = Learner(folder)
    again.replay.load_state_dict(state)
    news = again.talk(buffer)
    assert len(news.received) == 5
    assert (news.rows, buffer.count(), buffer.files) == (40, 40, 5)
    assert set(again.draw(buffer, 40)) == set(range(2, 7))


def test_a_learner_that_goes_on_reads_nothing_again(folder):
    buffer, learner = make(folder), Learner(folder)
    for i in range(3):
        buffer.push(chunk(folder, i), 0)
    learner.talk(buffer)
    buffer.begin()
    folder.clear(chunk_pattern(NAME))
    news = learner.talk(buffer)
    assert (len(news.received), news.bad, buffer.count()) == (3, (), 24)


def test_a_dropped_chunk_is_counted_and_not_named_again(folder):
    buffer = make(folder)
    metas = [chunk(folder, i) for i in range(3)]
    for meta in metas:
        buffer.push(meta, 0)
    buffer.take_chunks()
    assert buffer.drop_chunk(metas[1]["data_id"], "cut short") == 8
    assert buffer.drop_chunk(metas[1]["data_id"], "cut short") == 0
    assert buffer.drop_chunk("unknown", "") == 0
    assert (buffer.count(), len(folder.names())) == (16, 2)
    buffer.begin()
    assert [c.data_id for c in buffer.take_chunks()] == [metas[0]["data_id"], metas[2]["data_id"]]


def test_metadata_that_comes_twice_counts_once(folder):
    buffer = make(folder)
    meta = chunk(folder, 0)
    buffer.push(meta, 0)
    buffer.push(over_the_wire(meta), 0)
    assert (buffer.count(), buffer.push_count, buffer.files) == (8, 8, 1)


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


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([*KINDS, "tight"]), st.integers(0, 2**32))
def test_files_are_those_that_the_learner_needs(tmp_path_factory, kind, seed):
    rng = random.Random(seed)
    folder = SharedFolder(str(tmp_path_factory.mktemp("truth")))
    cfg = {"kind": kind, "size": 30}
    if kind == "tight":
        cfg = {"kind": "advanced", "size": 30, "max_use": 3, "max_staleness": 6}
    buffer, learner = make(folder, **cfg), Learner(folder, **cfg)
    n = now = 0
    for _ in range(40):
        step = rng.randrange(8)
        if step < 3:
            buffer.push(chunk(folder, n, rng.randint(1, 12)), 0)
            n += 1
        elif step < 5:
            learner.draw(buffer, rng.randint(1, 12), now)
        elif step == 5:
            state = learner.replay.state_dict()
            learner = Learner(folder, **cfg)
            learner.replay.load_state_dict(state)
            buffer.begin()
        elif step == 6:
            now += 1
        else:
            other = make(folder, **cfg)
            assert other.load_state_dict(buffer.state_dict()) == []
            buffer = other
        there = set(folder.names())
        assert buffer.files == len(there)
        assert buffer.bytes == sum(os.path.getsize(folder.file(name)) for name in there)
        rows = learner.talk(buffer).rows
        assert buffer.count() == rows
        assert set(learner.replay.state_dict()["chunks"]) == set(folder.names())
    buffer.close(remove_files=True)
    assert os.listdir(folder.path) == []


def test_many_threads(folder):
    turn = Turn()
    buffer, learner = make(folder, size=200, turn=turn), Learner(folder, size=200)
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
        meta = chunk(folder, serial, 1 + serial % 9)
        with turn:
            buffer.push(meta, serial)

    def train():
        stop.wait(0.01)
        with turn:
            assert learner.talk(buffer).bad == ()
            is_permitted = buffer.permit(16, 4)
        if is_permitted:
            learner.replay.sample(16, 0)

    threads = [threading.Thread(target=run, args=(work,)) for work in (push, push, train)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while not stop.is_set() and buffer.push_count < 1500 and time.monotonic() < deadline:
        stop.wait(0.05)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert not errors
    learner.talk(buffer)
    assert len(folder.names()) == buffer.files
    buffer.close(remove_files=True)
    assert os.listdir(folder.path) == []


# ---------------------------------------------------------------------- sampling against collecting


def limited(folder, per_insert=2.0, tolerance=32.0, **more) -> ChunkBuffer:
    """Batches of 8: 8 samples begin, then 16 more may come before any is drawn."""
    return make(folder, ratio=SampleRatio(per_insert, tolerance, min_size=8), **more)


def test_a_learner_waits_for_collectors_that_are_behind(folder):
    buffer = limited(folder)
    buffer.push(chunk(folder, 0), 0)
    assert [buffer.permit(8, 1) for _ in range(5)] == [1, 1, 1, 1, 0]
    assert buffer.holds_learner(8)
    assert buffer.pace.has_room()
    buffer.push(chunk(folder, 1, n=4), 0)
    assert not buffer.holds_learner(8)
    assert buffer.permit(8, 9) == 1
    assert buffer.permit(8, 9) == 0
    assert buffer.pace.ratio_status() == {
        "target": 2.0,
        "reached": 40 / 12,
        "balance": -32.0,
        "tolerance": 32.0,
    }


def test_collectors_wait_for_a_learner_that_is_behind(folder):
    buffer, reported = limited(folder), 0
    for i in range(3):
        assert buffer.pace.has_room()
        meta = chunk(folder, i)
        assert buffer.pace.grant("collector0", reported, meta["size"]) >= reported + meta["size"]
        buffer.push(meta, 0)
        reported += meta["size"]
    assert buffer.pace.grant("collector0", reported) == reported  # nothing more
    assert buffer.pace.grant("collector0", reported, need=100) == reported
    assert buffer.pace.paces("collector0")
    assert not buffer.pace.has_room()
    while not buffer.pace.has_room():
        assert buffer.permit(8, 1)
    assert buffer.pace.grant("collector0", reported, need=100) >= reported + 100


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
    limits = dict(size=400, max_staleness=1)
    buffer, learner = limited(folder, **limits), Learner(folder, **limits)
    for i in range(3):
        buffer.push(chunk(folder, i), 0)
    assert not buffer.pace.has_room()
    assert learner.draw(buffer, 8, 100) is None  # they are too old
    assert buffer.pace.has_room()


def test_samples_that_may_be_used_once_do_not_hold_collectors_for_ever(folder):
    limits = dict(size=400, max_use=1)
    buffer = limited(folder, per_insert=8.0, tolerance=64.0, **limits)
    learner, drawn = Learner(folder, **limits), 0
    for i in range(40):
        if buffer.pace.has_room():
            buffer.push(chunk(folder, i), 0)
        while learner.draw(buffer, 8):
            drawn += 8
    assert drawn >= 8 * 30


def test_what_is_on_its_way_ends_no_pace(folder):
    buffer = limited(folder)
    for i in range(3):
        buffer.push(chunk(folder, i), 0)
    buffer.note_replay((), (), 0, is_starved=True)
    assert not buffer.pace.has_room()


def test_the_ratio_goes_on_after_a_resume(folder):
    first = limited(folder)
    first.push(chunk(folder, 0), 0)
    assert first.permit(8, 9) == 4
    second = limited(folder)
    second.load_state_dict(first.state_dict())
    assert second.pace.ratio_status() == first.pace.ratio_status()
    assert second.holds_learner(8)
    third = make(folder)  # turned off meanwhile
    third.load_state_dict(first.state_dict())
    assert third.pace.ratio_status() is None
    assert third.permit(8, 99) == 99
    fourth = limited(folder)  # turned on meanwhile
    fourth.load_state_dict(third.state_dict())
    assert fourth.pace.has_room()


# ---------------------------------------------------------------------- space


def test_grants_and_files_never_exceed_the_limit(folder):
    size = chunk(folder, 10**6)["size"]
    folder.clear(chunk_pattern(NAME))
    limit = 30 * size
    buffer, learner = make(folder, size=10_000, max_bytes=limit), Learner(folder, size=10_000)
    rng = random.Random(0)
    quota = dict.fromkeys(["a", "b", "c"], 0)
    written, reported = Counter(), Counter()
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
                reported[who] += meta["size"]
            pending = [p for p in pending if p[0] != worker]
            need = size if written[worker] + size > quota[worker] else 0
            given = buffer.pace.grant(worker, reported[worker], need)
            assert given >= (written if need else quota)[worker]
            quota[worker] = given
        used = sum(os.path.getsize(folder.file(name)) for name in folder.names())
        most = max(most, used)
        could_be = used + sum(quota[w] - written[w] for w in quota)
        assert could_be <= limit, step
        if buffer.count() >= 8 and rng.random() < 0.2:
            assert learner.draw(buffer, 8)
    assert n > 100
    assert most > limit / 2
    buffer.close(remove_files=True)
    assert os.listdir(folder.path) == []


def test_the_oldest_files_go_when_the_limit_binds_with_one_warning(folder, caplog):
    size = chunk(folder, 0)["size"]
    buffer, learner = make(folder, size=10_000, max_bytes=20 * size), Learner(folder, size=10_000)
    reported = 0
    for i in range(60):
        given = buffer.pace.grant("collector0", reported, need=size)
        assert given >= reported + size
        meta = chunk(folder, i)
        buffer.push(meta, 0)
        reported += meta["size"]
        learner.talk(buffer)
    kept = sorted(int(name.rpartition(".")[2]) for name in folder.names())
    assert kept == list(range(60 - len(kept), 60))
    assert 10 <= len(kept) <= 20
    # The learner has all of them nevertheless.
    assert buffer.count() == learner.replay.rows == 480
    again = Learner(folder, size=10_000)
    buffer.begin()
    assert set(again.draw(buffer, 64)) <= set(kept)
    assert buffer.count() == 8 * len(kept)
    warnings = [r.getMessage() for r in caplog.records if "path_data_limit" in r.getMessage()]
    assert len(warnings) == 1
    assert "about 160 samples, fewer than replay_buffer_size=10000" in warnings[0]


def test_the_oldest_files_go_while_no_learner_takes_them(folder):
    size = chunk(folder, 0)["size"]
    buffer, reported = make(folder, size=10_000, max_bytes=20 * size), 0
    for i in range(60):
        assert buffer.pace.grant("collector0", reported, need=size) >= reported + size
        buffer.push(chunk(folder, i), 0)
        reported += size
    assert buffer.count() == 8 * len(folder.names())
    assert Learner(folder, size=10_000).talk(buffer).bad == ()


def test_a_worker_that_left_gives_back_what_it_did_not_use(folder):
    size = chunk(folder, 0)["size"]
    folder.clear(chunk_pattern(NAME))
    buffer = make(folder, max_bytes=3 * size)
    assert buffer.pace.grant("a", 0, need=2 * size) >= 2 * size
    assert buffer.pace.grant("b", 0, need=2 * size) == 0
    chunk(folder, 0, worker="a")  # never reported
    chunk(folder, 1, worker="ab")
    with open(os.path.join(folder.path, f".{NAME}.a.9.{'0' * 16}"), "w"):
        pass
    buffer.forget_worker("a")
    assert os.listdir(folder.path) == [chunk_name(NAME, "ab", "1")]
    assert buffer.pace.grant("b", 0, need=2 * size) >= 2 * size
    buffer.forget_worker("unknown")


def test_the_folder_is_looked_through_once_for_all_who_leave_together(folder):
    class Slow(SharedFolder):
        looks = 0

        def clear(self, pattern, keep=()):
            self.looks += 1
            goes_on.wait(20.0)
            return super().clear(pattern, keep)

    workers, goes_on = [f"w.{i}" for i in range(40)], threading.Event()
    store = Slow(folder.path)
    buffer = make(store)
    for serial, worker in enumerate(workers):
        chunk(folder, serial, worker=worker)  # never reported
    stays = chunk(folder, 99, worker="w.400")["data_id"]
    leaving = [threading.Thread(target=buffer.forget_worker, args=(name,)) for name in workers]
    for thread in leaving:
        thread.start()
    goes_on.set()
    for thread in leaving:
        thread.join(20.0)
    assert os.listdir(folder.path) == [stays]
    assert store.looks <= 3


def test_collectors_that_wait_do_not_keep_each_other_waiting(folder):
    size = chunk(folder, 0)["size"]
    folder.clear(chunk_pattern(NAME))
    limit = 4 * size
    buffer = make(folder, max_bytes=limit)
    needs = {"a": int(2.6 * size), "b": int(2.8 * size)}
    sent = dict.fromkeys(needs, 0)
    for serial in range(40):
        given = {w: buffer.pace.grant(w, sent[w], need) - sent[w] for w, need in needs.items()}
        served = [w for w in needs if given[w] >= needs[w]]
        assert served
        buffer.push(chunk(folder, serial, worker=served[0]), 0)
        sent[served[0]] += size
        assert buffer.bytes <= limit


def test_buffers_of_one_folder_share_its_space(folder):
    size = chunk(folder, 0)["size"]
    folder.clear(chunk_pattern(NAME))
    limit = 12 * size
    space = SpaceQuota(limit)
    buffers = [
        ChunkBuffer({"replay_buffer_size": 10_000}, folder, space, "exp", name, Writer())
        for name in ("first", "second")
    ]
    reported = 0
    for serial in range(80):
        buffer = buffers[serial // 40]
        assert buffer.pace.grant("collector0", reported, need=size) >= reported + size
        buffer.push(chunk(folder, serial), 0)
        reported += size
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
    rows = buffer.sample_rows(32, 0)
    assert buffer.pace.grant("a", 0, need=size) == 0
    assert buffer.pace.grant("a", 0, need=size) == 0
    assert {row["data_id"] for row in rows} <= set(folder.names())
    buffer.release(rows)
    assert buffer.pace.grant("a", 0, need=size) >= size


def test_limits_that_cannot_do_are_said(folder):
    size = chunk(folder, 0)["size"]
    buffer = make(folder, size=1000, max_bytes=4 * size)
    with pytest.raises(ConfigError, match=r"collector0 has a chunk of .*path_data_limit"):
        buffer.pace.grant("collector0", 0, need=5 * size)


def test_no_limit_and_sizes_as_reported(folder):
    buffer = make(folder)
    assert buffer.pace.grant("a", 0) > 1 << 60
    buffer.close(remove_files=True)
    buffer = make(Nowhere(), size=8)
    for i in range(3):
        buffer.push({"data_id": f"c{i}", "sample_num": 8, "size": 100}, 0)
    assert (buffer.bytes, buffer.files) == (300, 3)
    buffer.release(buffer.sample_rows(8, 0))
    assert (buffer.bytes, buffer.files) == (100, 1)


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
    assert len(Learner(folder, size=10_000).draw(buffer, 64)) == 64
    buffer.close(remove_files=True)
    assert os.listdir(folder.path) == []


# ---------------------------------------------------------------------- foreign learners


def test_foreign_metadata_and_learners(folder):
    buffer = make(folder, size=4)
    for i in range(6):
        torch.save({"obs": torch.full((3,), i)}, folder.file(f"env_{i}"))
        buffer.push({"data_id": f"env_{i}", "env_id": i, "buffer_id": NAME}, i)
    rows = over_the_wire(buffer.sample_rows(4, 0))
    buffer.release(rows)
    assert folder.names() == [f"env_{i}" for i in range(2, 6)]
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
    later = buffer.sample_rows(4, 0)
    assert len(folder.names()) > 4
    buffer.release(rows)
    buffer.release(later)
    assert len(folder.names()) == 4
    buffer.close(remove_files=True)
    assert folder.names() == []


def test_a_step_of_a_foreign_trajectory(folder):
    buffer, learner = make(folder), Learner(folder)
    torch.save([{"x": torch.tensor(1000 * i)} for i in range(5)], folder.file("trajectory"))
    buffer.push({"data_id": "trajectory", "unroll_split_begin": 3, "unroll_len": 1}, 0)
    assert learner.draw(buffer, 1) == [3]
    (row,) = make_rows(buffer, 1)
    assert (row["row"], row["unroll_split_begin"]) == (3, 3)
    with pytest.raises(DataError, match="unroll_len=2"):
        buffer.push({"data_id": "other", "unroll_split_begin": 3, "unroll_len": 2}, 0)


def make_rows(buffer, size):
    """Draw for a foreign learner that comes instead of the other one."""
    buffer.begin()
    return buffer.sample_rows(size, 0)


@pytest.mark.parametrize(
    ("kind", "cfg"), [("advanced", {}), ("deque", dict(priority=True, priority_IS_weight=True))]
)
def test_priorities_of_a_foreign_learner_count(folder, kind, cfg):
    buffer = make(folder, kind, **cfg)
    for i in range(5):
        buffer.push(chunk(folder, i), 0)
    rows = over_the_wire(buffer.sample_rows(40, 0))
    ids = ("replay_buffer_idx", "replay_unique_id")
    info = {name: [row[name] for row in rows] for name in ids}
    is_it = [row["data_id"].endswith(".3") and row["row"] == 5 for row in rows]
    buffer.update(over_the_wire({**info, "priority": [1e9 if it else 0.0 for it in is_it]}))
    buffer.update({})
    again = buffer.sample_rows(16, 0)
    assert {(row["data_id"], row["row"]) for row in again} == {
        (chunk_name(NAME, "collector0", "3"), 5)
    }


@pytest.mark.parametrize(
    "change",
    [
        {"priority": [float("nan"), 1.0]}, {"priority": [1.0]}, {"priority": "ab"},
        {"replay_buffer_idx": [0, 99]}, {"replay_buffer_idx": [0, -1]},
        {"replay_buffer_idx": [0, 1 << 70]}, {"replay_buffer_idx": ["a", "b"]},
        {"replay_unique_id": [1, 2]}, {"replay_unique_id": {"prefix": NAME}},
    ],
    ids=repr,
)  # fmt: skip
def test_damaged_priorities_are_refused(folder, change):
    buffer = make(folder)
    buffer.push(chunk(folder, 0), 0)
    buffer.sample_rows(2, 0)
    info = {"priority": [1.0, 2.0], "replay_buffer_idx": [0, 1],
            "replay_unique_id": [f"{NAME}_0", f"{NAME}_1"]}  # fmt: skip
    buffer.update(info)
    with pytest.raises(DataError):
        buffer.update({**info, **change})


def test_a_file_that_rows_need_stays_until_they_are_released(folder):
    buffer = make(folder, size=8)
    buffer.push(chunk(folder, 0), 0)
    first = buffer.sample_rows(4, 0)
    buffer.push(chunk(folder, 1), 0)
    second = buffer.sample_rows(4, 0)
    assert len(folder.names()) == 2
    buffer.release(first)
    assert len(folder.names()) == 1
    buffer.release(first)
    buffer.release(second)
    assert len(folder.names()) == 1


@pytest.mark.parametrize("kind", [*KINDS, "test_rows"])
def test_rows_of_a_dropped_chunk_are_never_drawn_again(folder, kind, users_buffer):
    buffer = make(folder, kind)
    metas = [chunk(folder, i) for i in range(5)]
    for meta in metas:
        buffer.push(meta, 0)
    buffer.release(buffer.sample_rows(16, 0))
    for i in (1, 3):
        assert buffer.drop_chunk(metas[i]["data_id"], "cut short") == 8
    assert len(folder.names()) == 3
    for _ in range(20):
        rows = buffer.sample_rows(16, 0)
        assert len(rows) == 16
        assert {row["data_id"][-1] for row in rows} <= {"0", "2", "4"}
        buffer.release(rows)
    for meta in metas[::2]:
        buffer.drop_chunk(meta["data_id"], "all gone")
    assert buffer.sample_rows(16, 0) is None
    assert folder.names() == []
    for i in range(5, 7):
        buffer.push(chunk(folder, i), 0)
    assert {row["data_id"][-1] for row in buffer.sample_rows(8, 0)} <= {"5", "6"}


def test_a_foreign_learner_waits_while_its_buffer_refuses(folder):
    buffer = make(folder, max_staleness=1)
    buffer.push(chunk(folder, 0), 0)
    assert buffer.sample_rows(8, 100) is None  # they are too old
    assert buffer.permit(8, 1) == 0
    buffer.push(chunk(folder, 100), 0)
    assert buffer.sample_rows(8, 100) is not None


# ---------------------------------------------------------------------- state


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_buffer_goes_on(folder, kind):
    buffer, learner = make(folder, kind), Learner(folder, kind)
    for i in range(7):
        buffer.push(chunk(folder, i), 0)
    learner.talk(buffer)
    state = buffer.state_dict()
    chunk(folder, 50)  # written after the state was saved
    buffer.close(remove_files=False)
    again = make(folder, kind)
    assert again.load_state_dict(state) == []
    assert len(folder.names()) == 5
    assert (again.count(), again.push_count, again.files) == (40, 56, 5)
    for i in range(7, 12):
        again.push(chunk(folder, i), 0)
    assert learner.talk(again).rows == again.count() == 40
    assert sorted(set(learner.draw(again, 40))) == list(range(7, 12))
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
    assert set(Learner(folder).draw(buffer, 24)) == {0, 3, 4}


def test_the_end_removes_all_files_of_this_run_and_no_other(folder):
    buffer = make(folder)
    buffer.push(chunk(folder, 0), 0)
    buffer.sample_rows(4, 0)
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
    assert buffer.permit(1, 1) == 0


def test_a_file_that_cannot_be_removed_is_removed_at_the_end(folder, monkeypatch, caplog):
    buffer, learner = make(folder, size=8), Learner(folder, size=8)

    def refuse(folder, name):
        raise CheckpointWriteError(f"cannot remove {name}")

    monkeypatch.setattr(SharedFolder, "remove", refuse)
    for i in range(3):
        buffer.push(chunk(folder, i), 0)
        learner.talk(buffer)
    assert len(folder.names()) == 3
    assert len([r for r in caplog.records if "stays" in r.getMessage()]) == 2
    monkeypatch.undo()
    buffer.close(remove_files=True)
    assert folder.names() == []


# ---------------------------------------------------------------------- cost


def steps_of(call) -> int:
    """The number of bytecodes that a call runs, in all functions of this thread."""
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
    """Cost of a report, a request and an answer while the learner has ``waiting`` chunks."""
    buffer = make(Nowhere(), size=10**6, max_bytes=10**9)
    meta = {"sample_num": 8, "size": 100}
    for number in range(waiting):
        buffer.push({"data_id": f"{NAME}.c.{number}", **meta}, 1)
    while chunks := buffer.take_chunks():
        buffer.note_replay([chunk.data_id for chunk in chunks], (), 8 * waiting)

    def message():
        buffer.push({"data_id": f"{NAME}.c.new", **meta}, 1)
        assert buffer.pace.grant("c", 100) >= 100
        assert [chunk.data_id for chunk in buffer.take_chunks()] == [f"{NAME}.c.new"]
        assert buffer.permit(64, 8) == 8
        buffer.note_replay([f"{NAME}.c.new"], [f"{NAME}.c.0"], 8 * waiting)

    return steps_of(message)


def test_a_message_costs_the_same_however_many_chunks_there_are():
    assert cost_of_a_round(1000) <= 1.1 * cost_of_a_round(20)


def test_a_learner_is_permitted_many_batches_at_one_go():
    """A thousand collectors' threads switch wherever the lock is requested."""
    buffer = make(Nowhere())
    for number in range(2):
        buffer.push({"data_id": f"c{number}", "sample_num": 8}, 0)
    assert steps_of(lambda: buffer.permit(8, 64)) < 64 * 100
    assert buffer.permit(8, 64) == 64

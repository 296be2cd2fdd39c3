"""Batches from chunk files."""

import json
import os
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from ding.data import Columns, IdColumn
from ding.data.chunks import ChunkCache, SharedFolder, read_chunk, write_chunk
from ding.utils import DataError
from ding.utils.errors import ChunkError


@pytest.fixture
def folder(tmp_path):
    return SharedFolder(str(tmp_path / "data"))


def write(folder, number: int, n: int = 4) -> str:
    data = Columns({"x": torch.arange(n) + 100 * number, "obs": {"a": torch.ones(n, 3) * number}})
    write_chunk(folder, f"c{number}", data)
    return f"c{number}"


def wire(chunks, places, **info) -> dict:
    """`places`: (chunk, row) of each row."""
    batch = {
        "id": 0,
        "chunks": chunks,
        "chunk": [c for c, _ in places],
        "row": [r for _, r in places],
        "info": info,
    }
    return json.loads(json.dumps(batch))


def test_a_batch_is_gathered_with_what_the_buffer_says(folder):
    cache = ChunkCache(partial(read_chunk, folder), 100)
    names = [write(folder, i) for i in range(3)]
    batch = cache.batch(
        wire(
            names,
            [(2, 3), (0, 0), (2, 3), (1, 2)],
            IS=[0.5, 1, 0.25, 0.1],
            priority=1.0,
            replay_buffer_idx=[7, 8, 9, 10],
            replay_unique_id={"prefix": "buffer", "numbers": [1, 2, 3, 4]},
        )
    )
    assert isinstance(batch, Columns)
    columns = batch.columns
    assert columns["x"].tolist() == [203, 0, 203, 102]
    assert columns["obs"]["a"][:, 0].tolist() == [2, 0, 2, 1]
    assert columns["IS"].dtype == columns["priority"].dtype == np.float32
    assert columns["priority"].tolist() == [1, 1, 1, 1]
    assert columns["replay_buffer_idx"].dtype == np.int64
    assert isinstance(columns["replay_unique_id"], IdColumn)
    assert columns["replay_unique_id"].tolist() == [f"buffer_{i}" for i in range(1, 5)]
    columns["x"][0] = -1
    assert cache.batch(wire(names, [(2, 3)])).columns["x"].tolist() == [203]


def test_a_chunk_is_read_once_and_may_be_removed_then(folder):
    cache = ChunkCache(partial(read_chunk, folder), 100)
    names = [write(folder, i) for i in range(5)]
    cache.batch(wire(names, [(i, 0) for i in range(5)]))
    for name in names:
        os.remove(folder.file(name))
    for _ in range(3):
        batch = cache.batch(wire(names[::-1], [(0, 1), (4, 2)]))
        assert batch.columns["x"].tolist() == [401, 2]
    assert cache.reads == 5


@settings(max_examples=60, deadline=None)
@given(
    capacity=st.integers(1, 30),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    draws=st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 11)), min_size=1, max_size=8),
        max_size=8,
    ),
    nested=st.booleans(),
)
def test_any_capacity_gives_the_right_rows(tmp_path_factory, capacity, sizes, draws, nested):
    folder = SharedFolder(str(tmp_path_factory.getbasetemp() / "cache"))
    names = [f"c{i}" for i in range(len(sizes))]
    for i, n in enumerate(sizes):
        columns = {"x": torch.arange(n) + 100 * i}
        if nested:
            columns["obs"] = {"y": np.arange(n) + 100 * i}
        write_chunk(folder, names[i], Columns(columns))
    cache = ChunkCache(partial(read_chunk, folder), capacity, max_bytes=capacity * 8)
    for draw in draws:
        places = [(c % len(sizes), r % sizes[c % len(sizes)]) for c, r in draw]
        used = sorted({c for c, _ in places})
        batch = cache.batch(
            wire([names[c] for c in used], [(used.index(c), r) for c, r in places], IS=1.0)
        )
        assert batch.columns["x"].tolist() == [100 * c + r for c, r in places]
        assert batch.columns["IS"].tolist() == [1.0] * len(places)
    assert cache.take_bad() == []


def test_a_chunk_that_made_room_is_read_again(folder):
    cache = ChunkCache(partial(read_chunk, folder), 100, max_bytes=8 * (8 + 12))
    names = [write(folder, i) for i in range(4)]
    for _ in range(2):
        for i, name in enumerate(names):
            assert cache.batch(wire([name], [(0, 1)])).columns["x"].tolist() == [100 * i + 1]
    assert cache.reads == 8


def test_a_bad_chunk_is_told_of_once_and_its_rows_are_replaced(folder):
    cache = ChunkCache(partial(read_chunk, folder), 100)
    names = [write(folder, i) for i in range(4)]
    os.remove(folder.file("c1"))
    os.truncate(folder.file("c2"), 100)
    batch = wire(
        names,
        [(0, 0), (1, 1), (2, 2), (3, 3), (1, 0)],
        replay_buffer_idx=[0, 1, 2, 3, 4],
        replay_unique_id={"prefix": "b", "numbers": [0, 1, 2, 3, 4]},
    )
    columns = cache.batch(batch).columns
    assert columns["x"].tolist() == [0, 0, 303, 303, 0]
    assert columns["replay_buffer_idx"].tolist() == [0, 0, 3, 3, 0]
    assert columns["replay_unique_id"].numbers.tolist() == [0, 0, 3, 3, 0]
    (first, cause), (second, other) = cache.take_bad()
    assert (first, second) == ("c1", "c2")
    assert cause == "the file is missing"
    assert "cut short" in other
    cache.batch(batch)
    assert cache.take_bad() == []
    with pytest.raises(ChunkError, match=r"c1.*missing"):
        cache.batch(wire(names[1:2], [(0, 0)]))


def test_a_row_that_a_chunk_does_not_have(folder):
    cache = ChunkCache(partial(read_chunk, folder), 100)
    names = [write(folder, 0), write(folder, 1, n=2)]
    batch = wire(names, [(0, 0), (1, 3), (1, 1)])
    assert cache.batch(batch).columns["x"].tolist() == [0, 0, 101]
    assert cache.take_bad() == [("c1", "it has 2 rows, row 3 was asked for")]


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", ".c0", "nul\0"])
def test_bad_names_are_bad_chunks(folder, tmp_path, name):
    write_chunk(SharedFolder(str(tmp_path)), "secret", Columns({"x": torch.ones(3)}))
    cache = ChunkCache(partial(read_chunk, folder), 100)
    batch = cache.batch(wire([write(folder, 0), name], [(0, 0), (1, 0)]))
    assert batch.columns["x"].tolist() == [0, 0]
    assert [bad for bad, _ in cache.take_bad()] == [name]


@pytest.mark.parametrize(
    "change",
    [
        {"chunk": [0, 2]}, {"chunk": [0, -1]}, {"chunk": [0]}, {"chunk": 0}, {"chunk": "ab"},
        {"row": [0, -1]}, {"row": [0, None]}, {"row": [0, 1 << 70]}, {"row": [[0], [1]]},
        {"chunks": [1, 2]}, {"chunks": [[], []]}, {"chunks": None}, {"chunk": [], "row": []},
        {"info": {"IS": [1.0]}}, {"info": {"IS": {"prefix": "x"}}},
        {"info": {"replay_unique_id": {"prefix": "x", "numbers": [1]}}},
    ],
    ids=repr,
)  # fmt: skip
def test_damaged_messages_are_refused_and_the_cache_goes_on(folder, change):
    cache = ChunkCache(partial(read_chunk, folder), 100)
    good = wire([write(folder, 0), write(folder, 1)], [(0, 0), (1, 1)])
    with pytest.raises(DataError):
        cache.batch({**good, **change})
    with pytest.raises(DataError):
        cache.batch({})
    assert cache.batch(good).columns["x"].tolist() == [0, 101]


def test_rows_of_other_kinds_make_the_batch_rows(folder):
    cache = ChunkCache(partial(read_chunk, folder), 100)
    rows = [{"x": torch.ones(2)}, {"x": torch.ones(3), "note": "odd"}]
    write_chunk(folder, "odd", rows)
    batch = cache.batch(
        wire(
            ["odd", write(folder, 1)],
            [(0, 1), (1, 2), (0, 1)],
            IS=[0.5, 1.0, 1.0],
            replay_unique_id={"prefix": "b", "numbers": [1, 2, 3]},
        )
    )
    assert type(batch) is list
    assert batch[0]["note"] == "odd"
    assert batch[1]["x"] == 102
    assert [row["replay_unique_id"] for row in batch] == ["b_1", "b_2", "b_3"]
    batch[0]["note"] = "changed"
    assert batch[2]["note"] == "odd"


def test_texts_of_a_users_buffer_make_the_batch_rows(folder):
    cache = ChunkCache(partial(read_chunk, folder), 100)
    batch = cache.batch(wire([write(folder, 1)], [(0, 1), (0, 2)], replay_unique_id=["u", "v"]))
    assert [(row["x"].item(), row["replay_unique_id"]) for row in batch] == [(101, "u"), (102, "v")]


def test_foreign_files_of_one_sample_each(folder):
    cache = ChunkCache(partial(read_chunk, folder), 100)
    for i in range(3):
        torch.save({"obs": torch.full((4,), i), "done": False}, folder.file(f"f{i}"))
    batch = cache.batch(wire(["f0", "f1", "f2"], [(2, 0), (0, 0), (1, 0)], IS=1.0))
    assert batch.columns["obs"][:, 0].tolist() == [2, 0, 1]


def test_images_are_kept_once(folder):
    frames = torch.randint(0, 255, (65, 1, 40, 40), dtype=torch.uint8)
    write_chunk(folder, "c", Columns({"obs": frames[:-1], "next_obs": frames[1:]}))
    cache = ChunkCache(partial(read_chunk, folder), 200)
    batch = cache.batch(wire(["c"], [(0, 5), (0, 63)]))
    assert torch.equal(batch.columns["obs"], frames[[5, 63]])
    assert torch.equal(batch.columns["next_obs"], frames[[6, 64]])

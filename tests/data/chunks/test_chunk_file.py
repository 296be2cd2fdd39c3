"""Many samples in one file."""

import contextlib
import errno
import io
import os
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from ding.data import Columns, IdColumn
from ding.data.chunks import SharedFolder, chunk_name, chunk_pattern, read_chunk, write_chunk
from ding.utils import DataError, get_task_uid
from ding.utils.disk_writes import NotedFile
from ding.utils.errors import CheckpointWriteError, ChunkError


@pytest.fixture
def folder(tmp_path):
    return SharedFolder(str(tmp_path / "data"))


def transitions(n: int = 5) -> Columns:
    return Columns(
        {
            "obs": {"image": torch.randint(0, 255, (n, 4, 8, 8), dtype=torch.uint8),
                    "state": {"x": torch.randn(n, 3)}},
            "action": torch.arange(n),
            "reward": torch.randn(n, 3),
            "half": torch.randn(n, 2).bfloat16(),
            "done": np.arange(n) % 2 == 0,
            "collect_iter": np.arange(n),
            "ids": IdColumn("buffer", np.arange(n)),
        }
    )  # fmt: skip


def assert_same(a, b) -> None:
    if isinstance(a, dict):
        assert list(a) == list(b)
        for name in a:
            assert_same(a[name], b[name])
    elif isinstance(a, torch.Tensor):
        assert isinstance(b, torch.Tensor)
        assert a.dtype == b.dtype
        assert torch.equal(a, b)
    elif isinstance(a, IdColumn):
        assert a.tolist() == b.tolist()
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
    else:
        assert type(a) is type(b)
        assert a == b


def test_columns_come_back_as_they_were(folder):
    data = transitions()
    size = write_chunk(folder, "c", data)
    assert os.path.getsize(folder.file("c")) == size
    assert data.is_columnar
    read = read_chunk(folder, "c")
    assert isinstance(read, Columns)
    assert read.is_columnar
    assert_same(data.columns, read.columns)


def test_uniform_rows_are_written_as_columns(folder):
    rows = [{"obs": torch.randn(4), "reward": 0.5 * i, "done": False} for i in range(3)]
    write_chunk(folder, "c", rows)
    read = read_chunk(folder, "c")
    assert isinstance(read, Columns)
    for a, b in zip(rows, read):
        assert_same(a, b)


def test_rows_of_many_kinds_come_back_as_they_were(folder):
    rows = [
        {"obs": torch.randn(4), "lengths": [1, 2], "note": "first"},
        {"obs": torch.randn(7), "prev_state": (torch.ones(2), None)},
        {"array": np.arange(3), "text": np.array(["a", "b"])},
    ]
    write_chunk(folder, "c", rows)
    read = read_chunk(folder, "c")
    assert type(read) is list
    assert torch.equal(read[0]["obs"], rows[0]["obs"])
    assert read[0]["note"] == "first"
    assert read[1]["prev_state"][1] is None
    assert read[2]["text"].tolist() == ["a", "b"]


def test_columns_that_the_format_does_not_know_are_written_as_rows(folder):
    write_chunk(folder, "c", Columns({"x": torch.ones(2), "z": np.ones(2, "c16")}))
    assert [row["z"] for row in read_chunk(folder, "c")] == [1, 1]


@pytest.mark.parametrize("padding", range(40))
def test_columns_are_distinguished_from_pickles_at_any_header_length(folder, padding):
    write_chunk(folder, "c", Columns({"x" * 8 * padding: torch.ones(2)}))
    assert isinstance(read_chunk(folder, "c"), Columns)


def test_nothing_and_what_is_not_plain_are_refused(folder):
    with pytest.raises(DataError, match="no samples"):
        write_chunk(folder, "c", [])
    with pytest.raises(DataError, match="object"):
        write_chunk(folder, "c", [{"x": object()}])
    assert os.listdir(folder.path) == []


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 6).flatmap(
        lambda n: st.recursive(
            hnp.arrays(
                st.sampled_from([np.float32, np.int64, np.uint8, np.bool_, np.float64]),
                hnp.array_shapes(min_dims=0, max_dims=2, max_side=3).map(lambda s: (n, *s)),
            ),
            lambda leaves: st.dictionaries(st.text(max_size=3), leaves, min_size=1, max_size=3),
            max_leaves=5,
        ).map(lambda tree: {"tree": tree, "n": np.arange(n)})
    )
)
def test_any_nesting_comes_back(tmp_path_factory, columns):
    folder = SharedFolder(str(tmp_path_factory.getbasetemp() / "nesting"))
    write_chunk(folder, "c", Columns(columns))
    read = read_chunk(folder, "c")

    def check(a, b) -> None:
        if isinstance(a, dict):
            assert a.keys() == b.keys()
            for name in a:
                check(a[name], b[name])
        else:
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()

    check(columns, read.columns)


# ---------------------------------------------------------------------- faults


def test_a_missing_file(folder):
    with pytest.raises(ChunkError, match=r"^chunk c: the file is missing$") as caught:
        read_chunk(folder, "c")
    assert (caught.value.data_id, caught.value.cause) == ("c", "the file is missing")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


@pytest.mark.parametrize("data", [transitions(), [{"a": torch.ones(2)}, {"b": 1}]], ids=["c", "r"])
@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file(folder, data, part):
    size = write_chunk(folder, "c", data)
    os.truncate(folder.file("c"), int(size * part))
    with pytest.raises(ChunkError) as caught:
        read_chunk(folder, "c")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_fifo_in_the_place_of_a_file(folder, make):
    make(folder.file("c"))
    with pytest.raises(ChunkError, match="cannot be read: it is no regular file"):
        read_chunk(folder, "c")


@pytest.mark.parametrize("data", [transitions(), [{"a": torch.ones(2)}, {"b": 1}]], ids=["c", "r"])
def test_every_flipped_bit_is_found(folder, data):
    size = write_chunk(folder, "c", data)
    with open(folder.file("c"), "rb") as stream:
        content = stream.read()
    for bit in range(0, 8 * size, 1 + 8 * size // 3000):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        with open(folder.file("c"), "wb") as stream:
            stream.write(changed)
        with pytest.raises(ChunkError):
            read_chunk(folder, "c")


def test_columns_of_unequal_length(folder):
    from ding.torch_utils.tensor_file import write_tensors

    for tensors, facts in [
        ({"a": np.zeros(2), "b": np.zeros(3)}, {}),
        ({"a": np.zeros(2)}, {"rows": 3}),
        ({"a": np.zeros(())}, {}),
        ({}, {}),
        ({"a": np.zeros(2)}, {"places": {}}),
        ({"a": np.zeros(2)}, {"places": {"a": 3}}),
        ({"a": np.zeros(2)}, {"places": {"a": []}}),
        ({"a": np.zeros(2), "b": np.zeros(2)}, {"places": {"a": ["x"], "b": ["x", "y"]}}),
    ]:
        write_tensors(folder.file("c"), tensors, facts)
        with pytest.raises(ChunkError):
            read_chunk(folder, "c")


pytestmark = pytest.mark.filterwarnings("ignore:Detected pickle protocol")


class Evil:
    def __reduce__(self):
        return (os.mkdir, ("evil",))


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_nothing_is_unpickled(folder, tmp_path, protocol):
    with open(folder.file("c"), "wb") as stream:
        pickle.dump([Evil()], stream, protocol)
    with pytest.raises(ChunkError):
        read_chunk(folder, "c")
    torch.save([{"a": Evil()}], folder.file("c"))
    with pytest.raises(ChunkError, match="not tensors alone"):
        read_chunk(folder, "c")
    assert not os.path.exists("evil")


@pytest.mark.parametrize("zipped", [True, False])
def test_files_of_plain_torch_save(folder, zipped):
    rows = [{"obs": torch.ones(4), "done": False}, {"obs": torch.zeros(4), "done": True}]
    for content, expected in ((rows, rows), (rows[0], rows[:1])):
        torch.save(content, folder.file("c"), _use_new_zipfile_serialization=zipped)
        read = read_chunk(folder, "c")
        assert len(read) == len(expected)
        for a, b in zip(expected, read):
            assert_same(a, b)
    for content in (3, [1, 2], [], {}, torch.ones(3)):
        torch.save(content, folder.file("c"), _use_new_zipfile_serialization=zipped)
        if content != {}:
            with pytest.raises(ChunkError):
                read_chunk(folder, "c")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damage_is_a_chunk_error_or_harmless(tmp_path_factory, data):
    folder = SharedFolder(str(tmp_path_factory.getbasetemp() / "damage"))
    rows = data.draw(st.booleans())
    if rows:
        stream = io.BytesIO()
        torch.save([{"a": torch.ones(3)}, {"b": 1}], stream)
        content = bytearray(stream.getvalue())
    else:
        write_chunk(folder, "whole", transitions(2))
        with open(folder.file("whole"), "rb") as stream:
            content = bytearray(stream.read())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with open(folder.file("c"), "wb") as stream:
        stream.write(content)
    with contextlib.suppress(ChunkError):
        read_chunk(folder, "c")


def test_a_folder_that_may_not_be_written_to(folder, monkeypatch):
    def refused(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(CheckpointWriteError, match="Permission denied") as caught:
        write_chunk(folder, "c", transitions())
    assert folder.path in str(caught.value)


@pytest.mark.parametrize("data", [transitions(), [{"a": 1}, {"b": 2}]], ids=["columns", "rows"])
def test_a_full_disk_leaves_nothing(folder, monkeypatch, data):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(NotedFile, "write", full)
    with pytest.raises(CheckpointWriteError, match="No space left on device") as caught:
        write_chunk(folder, "c", data)
    assert caught.value.errno == errno.ENOSPC
    assert folder.path in str(caught.value)
    assert os.listdir(folder.path) == []


def test_a_writer_that_is_killed_leaves_only_what_its_names_find(folder):
    name = chunk_name("buffer_1", "collector0", f"{get_task_uid()}_1")
    pid = os.fork()
    if not pid:  # pragma: no cover
        try:
            os.replace = lambda *_: os._exit(0)
            write_chunk(folder, name, [{"a": 1}])
        finally:
            os._exit(1)
    os.waitpid(pid, 0)
    assert folder.names() == []
    (left,) = [name for name in os.listdir(folder.path) if name[0] == "."]
    with pytest.raises(DataError):
        folder.file(left)
    assert folder.clear(chunk_pattern("buffer_1", "collector0")) == [left]


def test_names_of_chunks():
    name = chunk_name("buffer 0/../x", "collector.1", "7")
    assert name == "buffer_0____x.collector_1.7"
    assert chunk_pattern("buffer 0/../x", "collector.1").fullmatch(name)
    assert chunk_pattern("buffer 0/../x").fullmatch(name)
    assert not chunk_pattern("b", "collector1").fullmatch(chunk_name("b", "collector10", "0"))
    assert not chunk_pattern("b").fullmatch("b.notes.txt")
    assert len(chunk_name("b" * 500, "c" * 500, "d" * 500)) < 200

"""Tensors and arrays in safetensors files."""

import contextlib
import errno
import json
import os
import struct

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from ding.torch_utils.tensor_file import read_tensors, write_tensors
from ding.utils import DataError
from ding.utils.errors import CheckpointWriteError

ARRAYS = {
    np.dtype(kind).name: np.arange(6).reshape(2, 3).astype(kind)
    for kind in ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "c8", "?"]
}
TENSORS = {
    str(dtype).removeprefix("torch."): torch.arange(6).reshape(2, 3).to(dtype)
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
        torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.uint16,
        torch.float8_e4m3fn, torch.float8_e5m2,
    )
}  # fmt: skip


def same(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        raw = [t.contiguous().reshape(-1).view(torch.uint8) for t in (a, b)]
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*raw)
    return type(b) is np.ndarray and a.dtype == b.dtype and np.array_equal(a, b)


def test_every_dtype_comes_back_as_it_was(tmp_path):
    path = str(tmp_path / "file")
    data = {**{f"n {k}": v for k, v in ARRAYS.items()}, **{f"t {k}": v for k, v in TENSORS.items()}}
    size = write_tensors(path, data, {"a": [1, None], "b": {"c": 0.5}})
    assert os.listdir(tmp_path) == ["file"]
    assert os.path.getsize(path) == size
    read, facts = read_tensors(path)
    assert facts == {"a": [1, None], "b": {"c": 0.5}}
    assert list(read) == list(data)
    for name, value in data.items():
        assert same(value, read[name]), name


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8).filter(lambda name: name not in ("__metadata__", "__sum__")),
        hnp.arrays(
            st.sampled_from([a.dtype for a in ARRAYS.values()]),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
        max_size=5,
    ),
    st.booleans(),
)
def test_round_trip(tmp_path_factory, arrays, as_torch):
    path = str(tmp_path_factory.getbasetemp() / "round_trip")
    data = {k: torch.from_numpy(v) if as_torch else v for k, v in arrays.items()}
    write_tensors(path, data, {})
    read, _ = read_tensors(path)
    assert read.keys() == data.keys()
    for name, value in data.items():
        assert type(read[name]) is type(value)
        assert np.asarray(read[name]).dtype == arrays[name].dtype
        assert np.asarray(read[name]).tobytes() == arrays[name].tobytes()


def test_views_and_foreign_byte_orders_are_written_as_their_values(tmp_path):
    path = str(tmp_path / "file")
    data = {
        "strided": np.arange(10)[::2],
        "turned": torch.arange(6).reshape(2, 3).T,
        "big": np.arange(3, dtype=">i4"),
        "grad": torch.ones(2, requires_grad=True),
    }
    write_tensors(path, data, {})
    read, _ = read_tensors(path)
    for name in ("strided", "big"):
        assert np.array_equal(read[name], data[name])
    assert torch.equal(read["turned"], data["turned"])
    assert torch.equal(read["grad"], torch.ones(2))


def test_the_safetensors_package_reads_what_is_written_here(tmp_path):
    path = str(tmp_path / "file")
    kinds = {k: v for k, v in ARRAYS.items() if k != "complex64"}
    write_tensors(path, kinds, {})
    read = safetensors.numpy.load_file(path)
    assert all(np.array_equal(read[name], value) for name, value in kinds.items())
    write_tensors(path, {"b": TENSORS["bfloat16"], "f": TENSORS["float32"]}, {})
    read = safetensors.torch.load_file(path)
    assert same(TENSORS["bfloat16"], read["b"])
    assert same(TENSORS["float32"], read["f"])


def test_what_the_safetensors_package_writes_is_read_here(tmp_path):
    path = str(tmp_path / "file")
    data = {"b": TENSORS["bfloat16"], "x": torch.randn(3, 5), "u": TENSORS["uint8"]}
    safetensors.torch.save_file(data, path, {"format": "pt"})
    read, facts = read_tensors(path)
    assert facts == {}
    assert all(same(value, read[name]) for name, value in data.items())


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_what_was_read_may_be_written_to_and_outlives_the_file(tmp_path, size):
    path = str(tmp_path / "file")
    write_tensors(path, {"x": np.arange(size)}, {})
    read, _ = read_tensors(path)
    os.remove(path)
    read["x"] += 1
    assert np.array_equal(read["x"], np.arange(size) + 1)


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_a_file_that_is_cut_short_after_it_was_read_does_no_harm(tmp_path, size):
    path = str(tmp_path / "file")
    write_tensors(path, {"x": np.arange(size)}, {})
    read, _ = read_tensors(path)
    os.truncate(path, 0)
    assert np.array_equal(read["x"], np.arange(size))


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, make):
    make(tmp_path / "file")
    with pytest.raises(OSError):
        read_tensors(str(tmp_path / "file"))


def test_a_file_that_is_larger_than_the_memory_is_refused(tmp_path):
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, 1 << 43)
    with pytest.raises(DataError, match="memory"):
        read_tensors(str(path))


@pytest.mark.parametrize(
    "value",
    [[1], "x", None, np.array(["a"]), np.array([{}], dtype=object), np.zeros(1, "c16"),
     torch.zeros(2).to_sparse()],
    ids=repr,
)  # fmt: skip
def test_what_is_not_plain_is_named_and_nothing_is_written(tmp_path, value):
    with pytest.raises(DataError, match="'odd'"):
        write_tensors(str(tmp_path / "file"), {"fine": np.zeros(2), "odd": value}, {})
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path, monkeypatch):
    path = str(tmp_path / "file")
    write_tensors(path, {"x": np.zeros(2)}, {})

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CheckpointWriteError, match="No space left") as caught:
        write_tensors(path, {"x": np.ones(2)}, {})
    assert caught.value.errno == errno.ENOSPC
    assert str(tmp_path) in str(caught.value)
    assert os.listdir(tmp_path) == ["file"]
    assert read_tensors(path)[0]["x"][0] == 0


def _flip(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 1000, 1 << 17])
def test_every_flipped_bit_is_found(tmp_path, size):
    path = tmp_path / "file"
    data = {"a": np.arange(size, dtype=np.float32), "b": np.arange(size, dtype=np.uint8)}
    write_tensors(str(path), data, {"of": "b"})
    content = path.read_bytes()
    ends = [*range(8 * 400), *range(8 * (len(content) - 30), 8 * len(content))]
    between = np.random.default_rng(0).integers(8 * len(content), size=50).tolist()
    for bit in {bit for bit in [*ends, *between] if bit < 8 * len(content)}:
        path.write_bytes(_flip(content, bit))
        with pytest.raises(DataError):
            read_tensors(str(path))


def valid() -> bytes:
    head = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    return struct.pack("<Q", len(head)) + head + bytes(8)


def with_header(header) -> bytes:
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + bytes(8)


def entry(**other) -> dict:
    return {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **other}}


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "cut short"),
        (valid()[:-1], "cut short"),
        (valid()[:20], "cut short"),
        (valid() + b"x", "too long"),
        (b"\xff" * 40, "not a safetensors file"),
        (with_header(b"{"), "header is damaged"),
        (with_header(b"[" * 3000), "header is damaged"),
        (with_header([]), "no table"),
        (with_header({"x": 3}), "damaged at 'x'"),
        (with_header(entry(dtype="F31")), "F31"),
        (with_header(entry(dtype=["F32"])), "damaged at 'x'"),
        (with_header(entry(shape=[3])), "damaged at 'x'"),
        (with_header(entry(shape=[-2])), "damaged at 'x'"),
        (with_header(entry(shape=[2.0])), "damaged at 'x'"),
        (with_header(entry(shape=[True, 2])), "damaged at 'x'"),
        (with_header(entry(shape=2)), "damaged at 'x'"),
        (with_header(entry(shape=[1 << 62, 1 << 62])), "damaged at 'x'"),
        (with_header(entry(data_offsets=[8, 16])), "starts at 8"),
        (with_header(entry(data_offsets=[0, 8, 8])), "damaged at 'x'"),
        (with_header(entry(data_offsets=["0", "8"])), "damaged at 'x'"),
        (with_header({**entry(), "y": entry()["x"]}), "starts at 0, not at 8"),
        (with_header({**entry(), "__metadata__": {"ding": "{"}}), "facts"),
        (with_header({**entry(), "__metadata__": {"ding": "[]"}}), "facts"),
        (with_header({**entry(), "__metadata__": {"ding": '{"facts": 1, "numpy": []}'}}), "facts"),
    ],
)
def test_damaged_files_say_what_is_wrong(tmp_path, content, cause):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(DataError, match=cause):
        read_tensors(str(path))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_bytes_are_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any_bytes"
    content = bytearray(valid())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with contextlib.suppress(DataError):
        read_tensors(str(path))

"""Big observations are written once."""

import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from ding.data import Columns
from ding.data.arrays import IndexedColumn
from ding.data.chunks import SharedFolder, read_chunk, write_chunk
from ding.torch_utils.tensor_file import read_tensors, write_tensors
from ding.utils.errors import ChunkError


def trajectories(lengths, nstep=1, dtype=np.uint8, shape=(4, 20, 20)):
    """Observations and next observations of trajectories one after the other."""
    rng = np.random.default_rng(0)
    obs, later = [], []
    for n in lengths:
        frames = (rng.random((n + nstep, *shape)) * 255).astype(dtype)
        obs.append(frames[:n])
        later.append(frames[nstep:])
    return np.concatenate(obs), np.concatenate(later)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.integers(1, 5),
    st.sampled_from([np.uint8, np.float32, np.int16]),
    st.sampled_from([(4, 20, 20), (1027,)]),
    st.booleans(),
)
def test_next_observations_come_back(tmp_path_factory, lengths, nstep, dtype, shape, as_torch):
    folder = SharedFolder(str(tmp_path_factory.getbasetemp() / "frames"))
    obs, later = trajectories(lengths, nstep, dtype, shape)
    if as_torch:
        obs, later = torch.from_numpy(obs), torch.from_numpy(later)
    data = Columns(
        {"x": np.arange(len(obs)), "next_obs": {"a": {"b": later}}, "obs": {"a": {"b": obs}}}
    )
    write_chunk(folder, "c", data)
    read = read_chunk(folder, "c").columns
    assert list(read) == ["x", "next_obs", "obs"]
    for name, value in (("obs", obs), ("next_obs", later)):
        leaf = read[name]["a"]["b"]
        assert type(leaf) is type(value)
        assert leaf.dtype == value.dtype
        assert np.array_equal(np.asarray(leaf), np.asarray(value))
    read["next_obs"]["a"]["b"][0] = 0
    assert np.array_equal(np.asarray(read["obs"]["a"]["b"]), np.asarray(obs))


@pytest.mark.parametrize("nstep", [1, 3])
def test_files_are_little_more_than_half_as_large(tmp_path, nstep):
    folder = SharedFolder(str(tmp_path))
    obs, later = trajectories([32, 32], nstep)
    size = write_chunk(folder, "c", Columns({"obs": obs, "next_obs": later}))
    assert size == os.path.getsize(folder.file("c"))
    assert size < 0.62 * (obs.nbytes + later.nbytes)


@pytest.mark.parametrize("as_torch", [False, True])
def test_columns_over_one_source_are_written_once(tmp_path, as_torch):
    folder = SharedFolder(str(tmp_path))
    frames = (np.random.default_rng(0).random((9, 4, 20, 20)) * 255).astype(np.uint8)
    source = torch.from_numpy(frames) if as_torch else frames
    rows, later = np.array([1, 2, 3, 5, 6]), np.array([2, 3, 4, 6, 8])
    data = Columns({"obs": IndexedColumn(source, rows), "next_obs": IndexedColumn(source, later)})
    assert write_chunk(folder, "c", data[1:]) < 8 * frames[0].nbytes
    read = read_chunk(folder, "c").columns
    assert type(read["obs"]) is type(source)
    assert np.array_equal(np.asarray(read["obs"]), frames[rows[1:]])
    assert np.array_equal(np.asarray(read["next_obs"]), frames[later[1:]])


def test_what_does_not_repeat_stays_as_it_is(tmp_path):
    folder = SharedFolder(str(tmp_path))

    def parts(obs, later):
        write_chunk(folder, "c", Columns({"obs": obs, "next_obs": later}))
        return set(read_tensors(folder.file("c"))[0])

    obs, later = trajectories([6])
    assert parts(obs, later) == {"obs", "next_obs", "obs.frames"}
    assert parts(obs, later[::-1].copy()) == {"obs", "next_obs"}
    assert parts(obs, later.astype(np.int16)) == {"obs", "next_obs"}
    assert parts(obs, torch.from_numpy(later)) == {"obs", "next_obs"}
    assert parts(obs[:1], later[:1]) == {"obs", "next_obs"}
    assert parts(*trajectories([1, 1, 1, 1])) == {"obs", "next_obs"}
    assert parts(*trajectories([6], shape=(4,))) == {"obs", "next_obs"}


def test_parts_that_do_not_fit_are_damage(tmp_path):
    folder = SharedFolder(str(tmp_path))
    obs, later = trajectories([6])
    write_chunk(folder, "c", Columns({"obs": obs, "next_obs": later}))
    tensors, facts = read_tensors(folder.file("c"))
    numbers = tensors["next_obs"]
    for change in (
        {"next_obs": numbers[:5]}, {"next_obs": numbers + 1}, {"next_obs": numbers - 9},
        {"next_obs": numbers.astype(np.int32)}, {"next_obs": numbers[:, None]},
        {"obs.frames": tensors["obs.frames"][:6]}, {"obs": obs},
    ):  # fmt: skip
        write_tensors(folder.file("c"), {**tensors, **change}, facts)
        with pytest.raises(ChunkError):
            read_chunk(folder, "c")
    for frames in ([["x", "obs", "next_obs"]], [["obs.frames", "x"]], [3], 3):
        write_tensors(folder.file("c"), tensors, {**facts, "frames": frames})
        with pytest.raises(ChunkError):
            read_chunk(folder, "c")

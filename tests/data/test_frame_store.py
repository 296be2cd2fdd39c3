"""Big observations are stored once, and come out as they went in."""

import tracemalloc

import numpy as np
import pytest
import torch

from ding.data import Columns, IndexedColumn
from ding.data.chunks import read_chunk, write_chunk
from ding.data.ring import Ring
from ding.utils.shared_folder import SharedFolder
from tests.data.rings import push

SHAPE = (4, 28, 28)


def trajectory(rng, steps):
    frames = rng.integers(0, 255, (steps + 1, *SHAPE), dtype=np.uint8)
    return frames[:-1], frames[1:]


def batch(obs, next_obs, convert=torch.from_numpy):
    tag = obs[:, 0, 0, :2].astype(int).sum(1)
    return Columns({"obs": convert(obs.copy()), "next_obs": convert(next_obs.copy()), "tag": tag})


def frame_count(ring):
    """Frames that are stored for the rows, each of which a state has once."""
    tensors, facts = ring.state_dict()["rows"]
    ((frames, _, _),) = facts["frames"]
    return len(tensors[frames])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("convert", [torch.from_numpy, np.asarray])
def test_one_trajectory_over_many_pushes(rng, convert):
    ring = Ring(100)
    obs, next_obs = trajectory(rng, 70)
    for at in range(0, 70, 7):
        push(ring, batch(obs[at : at + 7], next_obs[at : at + 7], convert))
    assert frame_count(ring) == 71
    out = ring.take(np.arange(70)).columns
    assert np.array_equal(np.asarray(out["obs"]), obs)
    assert np.array_equal(np.asarray(out["next_obs"]), next_obs)
    assert type(out["obs"]) is type(convert(obs))


@pytest.mark.parametrize("by_env", [True, False])
def test_interleaved_environments(rng, by_env):
    envs = [trajectory(rng, 12) for _ in range(4)]
    ring = Ring(100)
    for at in range(0, 12, 3):
        parts = [(o[at : at + 3], n[at : at + 3]) for o, n in envs]
        obs, next_obs = (np.stack(part, 0 if by_env else 1) for part in zip(*parts))
        push(ring, batch(obs.reshape(-1, *SHAPE), next_obs.reshape(-1, *SHAPE)))
    assert frame_count(ring) == 4 * 13


def test_n_step(rng):
    frames = rng.integers(0, 255, (24, *SHAPE), dtype=np.uint8)
    ring = Ring(100)
    push(ring, batch(frames[:21], frames[3:]))
    assert frame_count(ring) == 24


def test_frames_of_replaced_rows_are_used_again(rng):
    ring = Ring(20)
    obs, next_obs = trajectory(rng, 200)
    for at in range(0, 200, 5):
        push(ring, batch(obs[at : at + 5], next_obs[at : at + 5]))
        assert frame_count(ring) <= 21
    out = ring.take(ring.by_age()).columns
    assert np.array_equal(out["obs"].numpy(), obs[-20:])
    assert np.array_equal(out["next_obs"].numpy(), next_obs[-20:])


def test_frames_that_have_nothing_in_common(rng):
    # Twice as many frames as rows: more than was reserved at first.
    ring = Ring(300)
    obs = rng.integers(0, 255, (700, *SHAPE), dtype=np.uint8)
    next_obs = rng.integers(0, 255, (700, *SHAPE), dtype=np.uint8)
    for at in range(0, 700, 100):
        push(ring, batch(obs[at : at + 100], next_obs[at : at + 100]))
    assert frame_count(ring) == 600
    out = ring.take(ring.by_age()).columns
    assert np.array_equal(out["obs"].numpy(), obs[-300:])
    assert np.array_equal(out["next_obs"].numpy(), next_obs[-300:])


def test_frames_that_differ_in_one_byte(rng):
    base = np.zeros(SHAPE, np.uint8)
    frames = np.repeat(base[None], 60, 0)
    for i in range(60):
        frames[i].reshape(-1)[i * 52] = 1
    ring = Ring(100)
    push(ring, batch(frames[:-1], frames[1:]))
    assert frame_count(ring) == 60
    out = ring.take(np.arange(59)).columns
    assert np.array_equal(out["obs"].numpy(), frames[:-1])


@pytest.mark.parametrize("length", [1, 5])
def test_pieces_of_trajectories_over_a_log(rng, length):
    """Trajectories of many environments are cut, and go on in the next push."""
    envs, ring = 70, Ring(2000)
    frames = rng.integers(0, 255, (21, envs, *SHAPE), dtype=np.uint8)
    for at in range(0, 20, length):
        source = frames[at : at + length + 1].reshape(-1, *SHAPE)
        index = np.arange(length * envs)
        obs, next_obs = IndexedColumn(source, index), IndexedColumn(source, index + envs)
        push(ring, Columns({"obs": obs, "next_obs": next_obs}))
    assert frame_count(ring) == envs * 21


def test_a_frame_that_almost_equals_the_end_of_a_trajectory_is_kept_apart(rng):
    ring = Ring(100)
    obs, next_obs = map(np.copy, trajectory(rng, 40))
    for at in range(0, 40, 4):
        begin = obs[at : at + 4].copy()
        begin[0, 0, 0, 1] ^= 1
        push(ring, batch(begin, next_obs[at : at + 4]))
        obs[at : at + 4] = begin
    out = ring.take(ring.by_age()).columns
    assert np.array_equal(out["obs"], obs)
    assert np.array_equal(out["next_obs"], next_obs)


@pytest.mark.parametrize("size", [8, 30])
def test_state(rng, size):
    ring, other = Ring(20), Ring(size)
    obs, next_obs = trajectory(rng, 50)
    push(ring, batch(obs[:30], next_obs[:30]))
    state = ring.state_dict()
    other.load_state_dict(state)
    n = min(size, 20)
    assert frame_count(other) == n + 1
    push(other, batch(obs[30:], next_obs[30:]))
    out = other.take(other.by_age()).columns
    assert np.array_equal(out["obs"].numpy(), obs[-min(size, 40) :])


def test_row_dicts_and_nested_observations(rng):
    obs, next_obs = trajectory(rng, 20)
    ring = Ring(30)
    for o, n in zip(obs, next_obs):
        push(
            ring, {"obs": {"image": o, "x": np.ones(2)}, "next_obs": {"image": n, "x": np.ones(2)}}
        )
    assert frame_count(ring) == 21
    out = ring.take(np.arange(20)).columns
    assert np.array_equal(out["next_obs"]["image"], next_obs)


def test_odd_sizes(rng):
    frames = rng.integers(0, 255, (31, 37, 29), dtype=np.uint8)
    ring = Ring(40)
    push(ring, Columns({"obs": frames[:-1], "next_obs": frames[1:]}))
    assert frame_count(ring) == 31
    assert np.array_equal(ring.take(np.arange(30)).columns["obs"], frames[:-1])


def test_memory_mapped(rng, tmp_path):
    ring = Ring(20, memmap_path=str(tmp_path / "map"))
    obs, next_obs = trajectory(rng, 50)
    push(ring, batch(obs, next_obs))
    out = ring.take(ring.by_age()).columns
    assert np.array_equal(out["obs"].numpy(), obs[-20:])
    assert list((tmp_path / "map").iterdir()) == []


@pytest.mark.parametrize("bad", [20, -21, 1 << 40])
@pytest.mark.parametrize("size", [4, 2000])
def test_a_slot_that_there_is_not_is_no_other_one(bad, size):
    ring = Ring(20)
    obs = np.zeros((20, size), np.uint8)
    push(ring, Columns({"obs": obs, "next_obs": obs, "n": np.arange(20)}))
    with pytest.raises(IndexError):
        ring.take(np.array([3, bad]))


def test_a_frame_that_was_never_written_is_no_other_one():
    ring = Ring(20)
    obs = np.zeros((5, 2000), np.uint8)
    push(ring, Columns({"obs": obs, "next_obs": obs}))
    with pytest.raises(IndexError, match="never written"):
        ring.take(np.array([3, 7]))


# ---- greys ------------------------------------------------------------------------------------

SCALES = {
    "as the Atari wrapper": lambda greys: greys * np.float32(1 / 255),
    "divided": lambda greys: greys / np.float32(255),
    "as they are": lambda greys: greys.astype(np.float32),
}


def pushed_frames(ring, frames):
    push(ring, Columns({"obs": frames[:-1], "next_obs": frames[1:]}))


def same_bits(ring, frames):
    out = ring.take(np.arange(len(frames) - 1)).columns
    stored = np.concatenate([out["obs"], out["next_obs"][-1:]])
    return stored.dtype == frames.dtype and (stored.view(np.int32) == frames.view(np.int32)).all()


def memory_of(frames):
    """Bytes that a ring of these frames takes."""
    tracemalloc.start()
    ring = Ring(len(frames))
    pushed_frames(ring, frames)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken


@pytest.mark.parametrize("scale", SCALES)
def test_floats_of_greys_take_a_byte_each(rng, scale):
    greys = rng.integers(0, 256, (400, *SHAPE), dtype=np.uint8)
    frames = SCALES[scale](greys)
    assert frames.dtype == np.float32
    assert memory_of(frames) < 0.3 * memory_of(frames + np.float32(0.001))


@pytest.mark.parametrize("scale", SCALES)
def test_floats_of_greys_come_out_bit_for_bit(rng, scale):
    frames = SCALES[scale](rng.integers(0, 256, (40, *SHAPE), dtype=np.uint8))
    ring = Ring(100)
    pushed_frames(ring, frames)
    assert same_bits(ring, frames)
    again = Ring(100)
    again.load_state_dict(ring.state_dict())
    assert same_bits(again, frames)


@pytest.mark.parametrize("odd", [0.123, -0.0, np.nan, np.inf, -1.0, 300.0, 256 / 255])
def test_other_floats_among_greys_stay_what_they_are(rng, odd):
    frames = SCALES["divided"](rng.integers(0, 256, (60, *SHAPE), dtype=np.uint8))
    frames[50, 1, 2, 3] = odd
    ring = Ring(100)
    pushed_frames(ring, frames[:40])
    pushed_frames(ring, frames[39:])
    assert same_bits(ring, frames)


@pytest.mark.parametrize("scale", SCALES)
def test_blank_pictures_before_the_first_ones_of_a_scale(rng, scale):
    frames = SCALES[scale](rng.integers(0, 256, (400, *SHAPE), dtype=np.uint8))
    blank = np.zeros_like(frames[:20])
    ring = Ring(420)
    tracemalloc.start()
    pushed_frames(ring, blank)
    pushed_frames(ring, np.concatenate([blank[-1:], frames]))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 0.4 * frames.nbytes
    assert same_bits(ring, np.concatenate([blank, frames]))


def test_chunks_of_greys_are_as_small(rng, tmp_path):
    greys = rng.integers(0, 256, (50, *SHAPE), dtype=np.uint8)
    folder, sizes = SharedFolder(tmp_path), {}
    for name, frames in {"bytes": greys, "floats": SCALES["divided"](greys)}.items():
        for convert in (np.asarray, torch.from_numpy):
            rows = Columns({"obs": convert(frames[:-1]), "next_obs": convert(frames[1:])})
            sizes[name] = write_chunk(folder, "a.b.1", rows)
            back = read_chunk(folder, "a.b.1").columns
            for column, given in (("obs", frames[:-1]), ("next_obs", frames[1:])):
                assert type(back[column]) is type(convert(given))
                assert np.array_equal(np.asarray(back[column]), given)
    assert sizes["floats"] < 1.1 * sizes["bytes"]

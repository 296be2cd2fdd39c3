"""Rows in separate files: written once, few files, and the restored ring is the same."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from ding.data import Columns, row_journal as module
from ding.data.ring import Ring
from ding.data.row_journal import RowJournal
from ding.utils.errors import CheckpointError, CheckpointWriteError
from tests.data.rings import push


def batch(rng, n, big=False):
    shape = (n + 1, 4, 20, 20) if big else (n + 1, 3)
    obs = rng.integers(0, 200, shape).astype(np.uint8 if big else np.float32)
    return Columns(
        {
            "obs": torch.from_numpy(obs[:-1].copy()),
            "next_obs": torch.from_numpy(obs[1:].copy()),
            "action": rng.integers(0, 5, n),
            "done": rng.random(n) < 0.1,
            "half": torch.from_numpy(rng.random(n).astype(np.float32)).bfloat16(),
            "empty": np.zeros((n, 0), np.float32),
            "info": {"deep": rng.random((n, 2))},
        }
    )


def save(ring, journal):
    ring.journal = journal
    state = ring.state_dict()
    ring.journal = None
    journal.write()
    journal.remove_unused()
    return state


def sizes_of_new_files(ring, journal):
    """Save; how many rows each file has that was written."""
    before = set(os.listdir("rows")) if os.path.isdir("rows") else set()
    state = save(ring, journal)
    return [entry["rows"] for entry in state["journal"] if entry["file"] not in before]


def load(state, capacity, folder="rows"):
    ring = Ring(capacity)
    ring.journal = RowJournal(folder)
    order = ring.load_state_dict(state)
    journal, ring.journal = ring.journal, None
    return ring, order, journal


def assert_same(ring, other):
    assert ring.count == other.count
    slots = ring.by_age()
    assert (slots == other.by_age()).all()
    assert (ring.numbers[slots] == other.numbers[slots]).all()
    assert list(ring.next_slots(2)) == list(other.next_slots(2))
    for (path, one), (_, two) in zip(_flat(ring.take(slots)), _flat(other.take(slots))):
        assert type(one) is type(two), path
        assert one.dtype == two.dtype
        assert (np.asarray(one) == np.asarray(two)).all(), path


def _flat(columns):
    for name, value in columns.columns.items():
        if isinstance(value, dict):
            yield from value.items()
        else:
            yield name, value.float() if name == "half" else value


@pytest.mark.parametrize("big", [False, True])
def test_ring_comes_back_as_it_was(big):
    rng, ring, journal = np.random.default_rng(0), Ring(50), RowJournal("rows")
    for n in (7, 30, 1, 20, 90, 3):
        push(ring, batch(rng, n, big))
        state = save(ring, journal)
        loaded, order, _ = load(state, 50)
        assert_same(loaded, ring)
        assert order.tolist() == ring.by_age().tolist()


def test_loaded_ring_goes_on_in_the_same_files(monkeypatch):
    monkeypatch.setattr(module, "_MERGE_BYTES", 0)
    rng, ring, journal = np.random.default_rng(0), Ring(50), RowJournal("rows")
    push(ring, batch(rng, 40))
    ring, _, journal = load(save(ring, journal), 50)
    before = set(os.listdir("rows"))
    push(ring, batch(rng, 5))
    state = save(ring, journal)
    assert before < set(os.listdir("rows"))
    assert len(os.listdir("rows")) == len(before) + 1
    assert_same(load(state, 50)[0], ring)


@pytest.mark.parametrize("capacity", [20, 80])
def test_another_capacity_keeps_the_newest(capacity):
    rng, ring = np.random.default_rng(0), Ring(50)
    push(ring, batch(rng, 40))
    push(ring, batch(rng, 33))
    state = save(ring, RowJournal("rows"))
    loaded, order, journal = load(state, capacity)
    plain = Ring(capacity)
    expected = plain.load_state_dict(ring.state_dict())
    assert order.tolist() == expected.tolist()
    assert_same(loaded, plain)
    push(loaded, batch(rng, 9))
    assert_same(load(save(loaded, journal), capacity)[0], loaded)


def test_only_what_is_new_is_written(monkeypatch):
    monkeypatch.setattr(module, "_MERGE_BYTES", 0)
    rng, ring, journal = np.random.default_rng(0), Ring(1000), RowJournal("rows")
    push(ring, batch(rng, 900))
    assert sizes_of_new_files(ring, journal) == [900]
    for _ in range(5):
        push(ring, batch(rng, 10))
        assert sizes_of_new_files(ring, journal) == [10]
    assert sizes_of_new_files(ring, journal) == []


def test_files_stay_few():
    rng, ring, journal = np.random.default_rng(0), Ring(300), RowJournal("rows")
    for _ in range(200):
        push(ring, batch(rng, 2))
        state = save(ring, journal)
        assert len(os.listdir("rows")) <= 12
    assert_same(load(state, 300)[0], ring)


def test_large_rings_have_files_of_bounded_size(monkeypatch):
    monkeypatch.setattr(module, "_MAX_BYTES", 1000)
    rng, ring = np.random.default_rng(0), Ring(300)
    push(ring, batch(rng, 250))
    state = save(ring, RowJournal("rows"))
    assert [entry["rows"] for entry in state["journal"]] == [19] * 13 + [3]  # rows of 51 bytes
    assert_same(load(state, 300)[0], ring)


def test_rows_that_are_changed_otherwise_are_written_again():
    rng, ring, journal = np.random.default_rng(0), Ring(50), RowJournal("rows")
    push(ring, Columns({"x": np.arange(20, dtype=np.float32)}))
    save(ring, journal)
    push(ring, Columns({"x": np.arange(20, dtype=np.float64) / 3}))  # wider from now on
    assert_same(load(save(ring, journal), 50)[0], ring)
    ring.clear()
    push(ring, batch(rng, 20))
    assert_same(load(save(ring, journal), 50)[0], ring)


def test_objects_stay_in_the_state():
    ring = Ring(10)
    push(ring, ["a", {"b": 1}])
    state = save(ring, RowJournal("rows"))
    assert state["journal"] is None
    assert load(state, 10)[0].peek(np.arange(2)) == ["a", {"b": 1}]
    assert not os.path.exists("rows")


def test_failed_write_is_made_up_for(monkeypatch):
    rng, ring, journal = np.random.default_rng(0), Ring(50), RowJournal("rows")
    push(ring, batch(rng, 20))
    Path("rows").touch()
    with pytest.raises(CheckpointWriteError):
        save(ring, journal)
    os.remove("rows")
    assert_same(load(save(ring, journal), 50)[0], ring)


def test_rows_that_are_replaced_after_a_state_was_taken_are_in_it():
    rng, ring, journal = np.random.default_rng(0), Ring(100), RowJournal("rows")
    push(ring, batch(rng, 40, big=True))
    expected = load(save(ring, RowJournal("other")), 100, "other")[0]
    ring.journal = journal
    state = ring.state_dict()
    ring.journal = None
    push(ring, batch(rng, 90, big=True))
    journal.write()
    assert_same(load(state, 100)[0], expected)


@pytest.mark.parametrize("damage", ["missing", "flipped", "cut"])
def test_damaged_file_is_named(damage):
    ring = Ring(50)
    push(ring, batch(np.random.default_rng(0), 20))
    state = save(ring, RowJournal("rows"))
    (path,) = Path("rows").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content if damage == "flipped" else content[:-9])
    if damage == "missing":
        path.unlink()
    with pytest.raises(CheckpointError, match=path.name):
        load(state, 50)


def test_strangers_files_stay():
    ring = Ring(50)
    os.mkdir("rows")
    Path("rows/notes.txt").touch()
    Path("rows/rows-0123456789abcdef.safetensors").touch()
    push(ring, batch(np.random.default_rng(0), 20))
    save(ring, RowJournal("rows"))
    assert Path("rows/notes.txt").exists()
    assert not Path("rows/rows-0123456789abcdef.safetensors").exists()

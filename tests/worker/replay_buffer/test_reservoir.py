"""The reservoir buffer of docs/extending.md: a user's rule for which slots new items replace."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from easydict import EasyDict

import tests
from ding.data import Columns, row_journal
from ding.data.row_journal import RowJournal
from ding.utils import BUFFER_REGISTRY
from ding.utils.errors import DataError
from ding.worker import NaiveReplayBuffer, create_buffer

GUIDE = Path(next(iter(tests.__path__))).parent / "docs/extending.md"
SIZE = 100


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Name of a module with the class that the guide shows."""
    section = GUIDE.read_text().split("## A reservoir buffer\n")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.S)
    assert len(code.strip().splitlines()) <= 25
    (tmp_path / "own_reservoir.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "own_reservoir"
    sys.modules.pop("own_reservoir", None)
    BUFFER_REGISTRY.pop("reservoir", None)


@pytest.fixture
def make(module):
    def make_(**cfg):
        defaults = dict(type="reservoir", replay_buffer_size=SIZE, import_names=[module])
        return create_buffer(EasyDict({**defaults, **cfg}), exp_name="run")

    return make_


def numbered(start, n, shape=(3,)):
    number = np.arange(start, start + n)
    obs = np.broadcast_to(number.reshape(-1, *[1] * len(shape)), (n, *shape)).astype(np.float32)
    return Columns({"obs": obs, "next_obs": obs + 1, "number": number})


def fill(buffer, items, start=0, **kwargs):
    rng = np.random.default_rng(start)
    stop = start + items
    while start < stop:
        n = min(int(rng.integers(1, 60)), stop - start)
        buffer.push(numbered(start, n, **kwargs), 0)
        start += n


def assert_whole(data):
    columns = data.columns
    number = columns["number"].reshape(-1, *[1] * (columns["obs"].ndim - 1))
    assert (columns["obs"] == number).all()
    assert (columns["next_obs"] == number + 1).all()


def stored(buffer):
    """Numbers of all items."""
    found = []

    def note(items):
        found.extend(items.column("number").tolist())
        return np.zeros(len(items), bool)

    buffer.remove_if(note)
    return found


def test_it_is_a_uniform_sample_of_all_that_came(make):
    buffer = make(replay_buffer_size=400)
    fill(buffer, 20_000)
    kept = np.array(stored(buffer))
    assert len(set(kept.tolist())) == buffer.count() == 400
    # Six standard deviations of the mean of 400 uniform numbers.
    assert abs(kept.mean() - 10_000) < 6 * 20_000 / np.sqrt(12 * 400)
    assert_whole(buffer.sample(64, 0))


def test_rows_dicts_and_objects_are_kept_in_the_same_way(make):
    buffers = [make(), make()]
    for buffer in buffers:
        buffer.rng.bit_generator.state = np.random.default_rng(3).bit_generator.state
    for start in range(0, 600, 5):
        buffers[0].push(numbered(start, 5), 0)
        buffers[1].push([{"number": n, "text": str(n)} for n in range(start, start + 5)], 0)
    rows = []
    buffers[1].remove_if(lambda items: rows.extend(items) or np.zeros(len(items), bool))
    assert [row["number"] for row in rows] == stored(buffers[0])
    assert all(row["text"] == str(row["number"]) for row in rows)


@pytest.mark.parametrize("shape", [(3,), (4, 20, 20)])
def test_it_is_restored_with_the_right_rows(make, monkeypatch, shape):
    monkeypatch.setattr(row_journal, "_MERGE_BYTES", 0)
    buffer, journal = make(), RowJournal("rows")
    for start in range(0, 2000, 40):
        fill(buffer, 40, start, shape=shape)
        with buffer.rows_in(journal):
            state = buffer.state_dict()
        journal.write()
        journal.remove_unused()
    # Rows that were replaced do not pile up.
    assert sum(entry["rows"] for entry in state["ring"]["journal"]) <= 3 * SIZE
    other = make()
    with other.rows_in(RowJournal("rows")):
        other.load_state_dict(state)
    assert stored(other) == stored(buffer)
    for one in (buffer, other):
        fill(one, 300, 2000, shape=shape)
    first, second = buffer.sample(64, 0), other.sample(64, 0)
    assert_whole(second)
    for name, column in first.columns.items():
        other_column = second.columns[name]
        if name == "replay_unique_id":
            column, other_column = column.numbers, other_column.numbers
        assert (column == other_column).all(), name


def test_a_change_of_size_keeps_the_newest_of_its_items(make):
    buffer, smaller = make(), make(replay_buffer_size=40)
    fill(buffer, 900)
    smaller.load_state_dict(buffer.state_dict())
    assert sorted(stored(smaller)) == sorted(stored(buffer))[-40:]


def test_it_draws_by_priority(make):
    buffer = make(alpha=1.0, thruput_controller=dict(sample_min_limit_ratio=0.01))
    fill(buffer, 500)
    data = buffer.sample(SIZE, 0)
    ids, slots = data.column("replay_unique_id"), data.column("replay_buffer_idx")
    priority = np.full(SIZE, 1e-6)
    priority[:10] = 1.0
    buffer.update(dict(replay_unique_id=ids, replay_buffer_idx=slots, priority=priority))
    # The others have a ten-thousandth of the total priority.
    drawn = buffer.sample(200, 0).column("number")
    assert np.isin(drawn, data.column("number")[:10]).sum() >= 195
    # Those that take the place of others begin with the highest priority.
    before = set(stored(buffer))
    fill(buffer, 2000, 500)
    new = set(stored(buffer)) - before
    assert new
    assert new <= set(buffer.sample(4000, 0).column("number").tolist())
    # And priorities of those that were replaced are passed over.
    buffer.update(dict(replay_unique_id=ids, replay_buffer_idx=slots, priority=np.ones(SIZE)))
    assert_whole(buffer.sample(64, 0))


@pytest.mark.parametrize("slots", [[0, 1], [0, 1, 10], [0, 1, -2], [0.0, 1.0, 2.0]])
def test_slots_that_there_are_not(slots):
    class Wrong(NaiveReplayBuffer):
        def place(self, n):
            return np.array(slots)

    with pytest.raises(DataError, match=r"place\(3\) returned"):
        Wrong(EasyDict(replay_buffer_size=10)).push(numbered(0, 3), 0)

"""Each item that was pushed is told of once, when it leaves."""

import collections

import numpy as np
import pytest
from easydict import EasyDict
from hypothesis import given, settings, strategies as st

from ding.data import Columns
from ding.worker.replay_buffer import create_buffer

KINDS = ["naive", "deque", "advanced", "elastic"]


def make(kind: str, size: int = 10, **cfg):
    buffer = create_buffer(EasyDict(type=kind, replay_buffer_size=size, **cfg), tb_logger=object())
    gone: collections.Counter = collections.Counter()

    def note(items) -> None:
        columns = items.columns_or_none() if isinstance(items, Columns) else None
        if columns is not None:
            gone.update(np.asarray(columns["x"]).tolist())
        else:
            gone.update(item["x"] for item in items)

    buffer.on_leave = note
    return buffer, gone


def items(numbers, columnar: bool = True):
    numbers = list(numbers)
    if columnar:
        return Columns({"x": np.array(numbers, np.int64), "collect_iter": np.zeros(len(numbers))})
    return [{"x": x, "collect_iter": 0, "odd": [None] * (x % 3)} for x in numbers]


def held(buffer) -> set[int]:
    """What can still be drawn."""
    return {row["x"] for row in buffer.sample(buffer.count(), 0)} if buffer.count() else set()


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_replaced_cleared_and_dropped(kind, columnar):
    buffer, gone = make(kind)
    buffer.push(items(range(7), columnar), 0)
    assert not gone
    buffer.push(items(range(7, 13), columnar), 0)
    assert gone == collections.Counter(range(3))
    buffer.drop_oldest(2)
    assert gone == collections.Counter(range(5))
    assert buffer.count() == 8
    assert held(buffer) == set(range(5, 13))
    buffer.push(items(range(13, 16), columnar), 0)
    assert gone == collections.Counter(range(6))
    assert held(buffer) == set(range(6, 16))
    buffer.clear()
    assert gone == collections.Counter(range(16))
    buffer.close()


@pytest.mark.parametrize("kind", KINDS)
def test_more_items_than_fit(kind):
    buffer, gone = make(kind)
    buffer.push(items(range(4)), 0)
    buffer.push(items(range(4, 29)), 0)
    assert gone == collections.Counter(range(19))
    assert held(buffer) == set(range(19, 29))
    buffer.close()


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(["push", "drop", "clear", "state"]), st.integers(0, 13))),
)
def test_pushed_items_are_held_or_have_left(kind, columnar, steps):
    buffer, gone = make(kind)
    n = 0
    for step, size in steps:
        if step == "push":
            buffer.push(items(range(n, n + size), columnar), 0)
            n += size
        elif step == "drop":
            buffer.drop_oldest(size)
        elif step == "clear":
            buffer.clear()
        else:
            state = buffer.state_dict()
            buffer.on_leave = None
            buffer.close()
            note = gone
            buffer, gone = make(kind)
            gone.update(note)
            buffer.load_state_dict(state)
    present = held(buffer)
    assert all(count == 1 for count in gone.values())
    assert present == set(range(n)) - set(gone)
    # The oldest leave first.
    assert not present or present == set(range(n - len(present), n))
    assert buffer.count() == len(present)
    buffer.on_leave = None
    buffer.close()


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_items_that_leave_from_the_middle(kind, columnar):
    def is_odd(found) -> np.ndarray:
        return np.array([row["x"] % 2 == 1 for row in list(found)])

    buffer, gone = make(kind)
    buffer.remove_if(is_odd)
    buffer.push(items(range(13), columnar), 0)
    buffer.remove_if(is_odd)
    assert gone == collections.Counter([0, 1, 2, 3, 5, 7, 9, 11])
    assert held(buffer) == {4, 6, 8, 10, 12}
    buffer.push(items(range(100, 104), columnar), 0)
    assert held(buffer) >= {10, 12, 100, 101, 102, 103}
    buffer.remove_if(lambda found: np.ones(len(found), bool))
    assert buffer.count() == 0
    buffer.push(items(range(200, 203), columnar), 0)
    assert held(buffer) == {200, 201, 202}
    assert all(count == 1 for count in gone.values())
    buffer.close()


def test_used_up_and_too_old():
    buffer, gone = make("advanced", max_use=2, max_staleness=5)
    buffer.push(items(range(8)), 0)
    for _ in range(2):
        buffer.sample(8, 0)
    assert gone == collections.Counter(range(8))
    buffer.push(items(range(8, 12)), 0)
    assert buffer.sample(2, 6) is None
    assert gone == collections.Counter(range(12))
    buffer.close()


def test_items_that_are_turned_away():
    buffer, gone = make(
        "advanced",
        thruput_controller=dict(push_sample_rate_limit=dict(max=1, min=0), window_seconds=30),
    )
    buffer.push(items(range(8)), 0)
    buffer.sample(4, 0)
    buffer.push(items(range(8, 12)), 0)
    assert gone == collections.Counter(range(8, 12))
    buffer.push({"x": 99}, 0)
    assert gone[99] == 1
    buffer.close()


def test_runs_do_not_reach_into_what_was_dropped():
    buffer, _ = make("sequence")
    buffer.push(items(range(14)), 0)
    buffer.drop_oldest(4)
    starts = {run[0]["x"] for _ in range(30) for run in buffer.sample(2, 3, 0)}
    assert starts == {8, 9, 10, 11}
    buffer.close()


def test_priorities_of_the_deque_by_id():
    buffer, _ = make("deque", priority=True, priority_IS_weight=True)
    buffer.push(items(range(10)), 0)
    batches = [buffer.sample(10, 0).columns for _ in range(2)]
    # The answers come late, and not in the order of the samples.
    for batch, wanted in zip(reversed(batches), (3, 7)):
        info = {name: batch[name] for name in ("replay_unique_id", "replay_buffer_idx")}
        buffer.update({**info, "priority": np.where(batch["x"] == wanted, 1e9, 0.0)})
    assert {row["x"] for row in buffer.sample(8, 0)} == {7}
    buffer.push(items(range(10, 20)), 0)
    buffer.update({**info, "priority": np.zeros(10)})
    assert buffer.sample(4, 0).columns["IS"].min() == 1.0
    buffer.close()


@pytest.mark.parametrize("kind", ["naive", "elastic"])
def test_samples_by_age_after_items_left_from_the_middle(kind):
    buffer, gone = make(kind)
    buffer.push(items(range(13)), 0)
    buffer.remove_if(lambda found: found.columns["x"] % 3 == 0)
    kept = [4, 5, 7, 8, 10, 11]
    for part in (slice(-2, None), slice(2), slice(1, 6, 2)):
        drawn = {row["x"] for row in buffer.sample(2, 0, part)}
        assert drawn <= set(kept[part])
    buffer.drop_oldest(1)
    assert {row["x"] for row in buffer.sample(2, 0, slice(2))} == {5, 7}
    buffer.push(items(range(13, 23)), 0)
    assert {row["x"] for row in buffer.sample(3, 0, slice(3))} == {13, 14, 15}
    assert sum(gone.values()) == 13


def test_runs_of_items_go_over_those_that_left():
    buffer, _ = make("sequence")
    buffer.push(items(range(8)), 0)
    buffer.remove_if(lambda found: found.columns["x"] == 3)
    runs = {tuple(row["x"] for row in run) for run in buffer.sample(5, 3, 0)}
    assert runs == {(0, 1, 2), (1, 2, 4), (2, 4, 5), (4, 5, 6), (5, 6, 7)}

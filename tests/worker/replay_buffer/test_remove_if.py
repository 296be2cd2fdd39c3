"""Items that leave from anywhere in a buffer."""

import numpy as np
import pytest
from easydict import EasyDict

from ding.data import Columns
from ding.worker.replay_buffer import create_buffer

KINDS = ["naive", "deque", "advanced", "elastic"]


@pytest.fixture
def make():
    made = []

    def build(kind: str, **cfg):
        made.append(create_buffer(EasyDict(type=kind, replay_buffer_size=10, **cfg), object()))
        return made[-1]

    yield build
    for buffer in made:
        buffer.close()


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
def test_items_that_leave_from_the_middle(make, kind, columnar):
    def is_odd(found) -> np.ndarray:
        return np.array([row["x"] % 2 == 1 for row in list(found)])

    buffer = make(kind)
    buffer.remove_if(is_odd)
    buffer.push(items(range(13), columnar), 0)
    buffer.remove_if(is_odd)
    assert held(buffer) == {4, 6, 8, 10, 12}
    buffer.push(items(range(100, 104), columnar), 0)
    assert held(buffer) >= {10, 12, 100, 101, 102, 103}
    buffer.remove_if(lambda found: np.ones(len(found), bool))
    assert buffer.count() == 0
    buffer.push(items(range(200, 203), columnar), 0)
    assert held(buffer) == {200, 201, 202}


def test_priorities_of_the_deque_by_id(make):
    buffer = make("deque", priority=True, priority_IS_weight=True)
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


@pytest.mark.parametrize("kind", ["naive", "elastic"])
def test_samples_by_age_after_items_left_from_the_middle(make, kind):
    buffer = make(kind)
    buffer.push(items(range(13)), 0)
    buffer.remove_if(lambda found: found.columns["x"] % 3 == 0)
    kept = [4, 5, 7, 8, 10, 11]
    for part in (slice(-2, None), slice(2), slice(1, 6, 2)):
        drawn = {row["x"] for row in buffer.sample(2, 0, part)}
        assert drawn <= set(kept[part])
    buffer.push(items(range(13, 23)), 0)
    assert {row["x"] for row in buffer.sample(3, 0, slice(3))} == {13, 14, 15}


def test_runs_of_items_go_over_those_that_left(make):
    buffer = make("sequence")
    buffer.push(items(range(8)), 0)
    buffer.remove_if(lambda found: found.columns["x"] == 3)
    runs = {tuple(row["x"] for row in run) for run in buffer.sample(5, 3, 0)}
    assert runs == {(0, 1, 2), (1, 2, 4), (2, 4, 5), (4, 5, 6), (5, 6, 7)}

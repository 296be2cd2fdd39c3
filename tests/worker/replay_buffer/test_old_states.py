"""States that earlier versions saved go on."""

import numpy as np
import pytest
from easydict import EasyDict

from ding.data import Columns
from ding.worker.replay_buffer import create_buffer


def make(kind):
    cfg = EasyDict(type=kind, replay_buffer_size=10, priority=True)
    return create_buffer(cfg, tb_logger=object())


def filled(kind):
    buffer = make(kind)
    buffer.push(Columns({"x": np.arange(13), "collect_iter": np.arange(13)}), 0)
    return buffer


def priority_info(batch):
    """Such that each item's priority is its ``x`` and a bit."""
    names = ("replay_unique_id", "replay_buffer_idx")
    return {
        **{name: [row[name] for row in batch] for name in names},
        "priority": [row["x"] + 0.5 for row in batch],
    }


def held(buffer):
    return {row["x"] for _ in range(60) for row in buffer.sample(4, 0)}


def test_naive_of_which_only_the_oldest_left():
    state = filled("naive").state_dict()
    del state["slots"]
    state["ring"]["forgotten"] = 4
    buffer = make("naive")
    buffer.load_state_dict(state)
    assert buffer.count() == 6
    assert {row["x"] for row in buffer.sample(6, 0)} == set(range(7, 13))
    assert {row["x"] for row in buffer.sample(2, 0, slice(2))} == {7, 8}


@pytest.mark.parametrize("kind", ["advanced", "deque"])
def test_prioritised(kind):
    saved = filled(kind)
    batch = saved.sample(10, 0)
    saved.update(priority_info(batch))
    saved.drop_oldest(2)
    state = saved.state_dict()
    state["priorities"] = state.pop("slots")
    if kind == "deque":
        state["pushes"], state["next_push"] = state.pop("numbers"), state.pop("next_number")
        state["pushes"][3:5] = 3, 4  # it kept those of items that have left
        del state["use"], state["collect_iter"]
    buffer = make(kind)
    buffer.load_state_dict(state)
    assert buffer.count() == 8
    assert held(buffer) == set(range(5, 13))
    buffer.update(priority_info(batch))
    assert held(buffer) == set(range(5, 13))
    assert [row["x"] for row in buffer.sample(1, 0, slice(-1, None))] == [12]

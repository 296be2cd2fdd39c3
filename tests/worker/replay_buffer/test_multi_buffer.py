"""Several buffers of the same data."""

import pytest
from easydict import EasyDict

from ding.worker import create_buffer
from ding.worker.replay_buffer import NaiveReplayBuffer


@pytest.fixture
def buffer():
    cfg = EasyDict(
        type="naive",
        multi_buffer=True,
        policy=dict(replay_buffer_size=4),
        value=dict(replay_buffer_size=8, type="advanced"),
    )
    built = create_buffer(cfg, exp_name="run")
    yield built
    built.close()


def rows(n):
    return [{"obs": i, "collect_iter": 0} for i in range(n)]


def test_each_has_all_data_and_its_own_size(buffer):
    buffer.push(rows(6), 0)
    assert (buffer.count(), buffer.replay_buffer_size, buffer.push_count) == (4, 8, 6)
    batch = buffer.sample(4, 0)
    assert sorted(row["obs"] for row in batch["policy"]) == [2, 3, 4, 5]
    assert {row["obs"] for row in batch["value"]} <= set(range(6))
    assert "IS" in batch["value"][0]
    sizes = buffer.sample({"policy": 1, "value": 6}, 0)
    assert {name: len(part) for name, part in sizes.items()} == {"policy": 1, "value": 6}


def test_no_batch_unless_all_have_one(buffer):
    buffer.push(rows(6), 0)
    assert buffer.sample(5, 0) is None
    buffer.clear()
    assert buffer.count() == 0


def test_no_batch_if_one_drops_its_stale_items():
    cfg = EasyDict(
        type="advanced",
        multi_buffer=True,
        value=dict(replay_buffer_size=8),
        policy=dict(replay_buffer_size=8, max_staleness=2),
    )
    buffer = create_buffer(cfg, exp_name="run")
    buffer.push(rows(6), 0)
    assert set(buffer.sample(4, 2)) == {"policy", "value"}
    assert buffer.sample(4, 9) is None
    buffer.close()


def test_state_and_files(buffer, tmp_path):
    buffer.push(rows(6), 0)
    buffer.save_data(str(tmp_path / "data.pkl"))
    assert sorted(path.name for path in tmp_path.glob("data*")) == [
        "data_policy.pkl",
        "data_value.pkl",
    ]
    state = buffer.state_dict()
    buffer.clear()
    buffer.load_state_dict(state)
    assert buffer.count() == 4
    buffer.clear()
    buffer.load_data(str(tmp_path / "data.pkl"))
    assert buffer.count() == 4


def test_priorities_go_to_the_one_that_is_named(buffer):
    buffer.push(rows(6), 0)
    row = buffer.sample({"policy": 1, "value": 1}, 0)["value"][0]
    info = {name: [row[name]] for name in ("replay_unique_id", "replay_buffer_idx")}
    buffer.update({"value": {**info, "priority": [7.0]}})
    later = [buffer.sample({"policy": 1, "value": 1}, 0)["value"][0] for _ in range(40)]
    seen = {one["obs"]: one["priority"] for one in later}
    assert seen[row["obs"]] == 7.0


def test_one_buffer_without():
    buffer = create_buffer(EasyDict(type="naive", multi_buffer=False, replay_buffer_size=4))
    assert isinstance(buffer, NaiveReplayBuffer)
    buffer.close()

"""The plain deque buffer, and the wrapper's priorities."""

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns, DequeBuffer
from ding.data.buffer.deque_buffer_wrapper import DequeBufferWrapper
from ding.utils.errors import DataError


class TestDequeBuffer:
    def test_push_sample_get(self):
        buffer = DequeBuffer(size=3)
        for i in range(5):
            buffer.push({"i": i}, {"round": i})
        assert buffer.count() == len(buffer) == 3
        assert sorted(item.data["i"] for item in buffer.sample(3)) == [2, 3, 4]
        assert buffer.get(0).meta == {"round": 2}
        assert [item.data["i"] for item in buffer.sample(1, sample_range=slice(-1, None))] == [4]
        assert len(buffer.sample(9, replace=True)) == 9

    def test_update_delete_and_indices(self):
        buffer = DequeBuffer(size=3)
        first, second = buffer.push(1), buffer.push(2)
        assert buffer.update(first.index, data=10, meta={"a": 1})
        assert buffer.sample(indices=[first.index])[0].data == 10
        buffer.delete([first.index, "none"])
        assert not buffer.update(first.index, data=11)
        assert [item.data for item in buffer] == [2]
        with pytest.raises(DataError, match="no item with index"):
            buffer.sample(indices=[first.index])
        buffer.delete(second.index)
        assert buffer.count() == 0

    def test_too_few(self):
        buffer = DequeBuffer(size=3)
        with pytest.raises(DataError, match="1 items asked for, 0 there"):
            buffer.sample(1)
        assert buffer.sample(1, ignore_insufficient=True) == []

    def test_files(self, tmp_path):
        buffer, other = DequeBuffer(size=3), DequeBuffer(size=3)
        buffer.push({"x": np.arange(3)}, {"a": 1})
        buffer.save_data(str(tmp_path / "data"))
        other.load_data(str(tmp_path / "data"))
        assert other.get(0).meta == {"a": 1}
        assert other.get(0).data["x"].tolist() == [0, 1, 2]
        other.clear()
        assert other.count() == 0


class TestWrapper:
    @pytest.fixture
    def buffer(self):
        cfg = EasyDict(replay_buffer_size=4, priority=True, priority_IS_weight=True)
        buffer = DequeBufferWrapper(cfg)
        yield buffer
        buffer.close()

    def test_priorities_are_of_the_last_sample(self, buffer):
        buffer.push(Columns({"t": torch.arange(4)}), 0)
        batch = buffer.sample(4, 0).columns
        assert batch["IS"].tolist() == [1.0] * 4
        buffer.update({"priority": batch["t"] + 1.0})
        seen = {}
        for _ in range(30):
            cols = buffer.sample(4, 0).columns
            seen |= dict(zip(cols["t"].tolist(), cols["IS"].tolist()))
        assert seen == {t: pytest.approx(((t + 1) ** 0.6) ** -0.4) for t in range(4)}

    def test_replaced_items_are_passed_over(self, buffer):
        buffer.push(Columns({"t": torch.arange(4)}), 0)
        buffer.sample(4, 0)
        buffer.push(Columns({"t": torch.arange(4, 8)}), 0)
        buffer.update({"priority": [1.0, 2.0, 3.0, 4.0]})
        assert buffer.sample(4, 0).columns["IS"].tolist() == [1.0] * 4

    def test_priorities_from_before_a_clear_are_passed_over(self, buffer):
        buffer.push(Columns({"t": torch.arange(4)}), 0)
        old = buffer.sample(4, 0)
        info = {key: [row[key] for row in old] for key in ("replay_unique_id", "replay_buffer_idx")}
        buffer.clear()
        buffer.push(Columns({"t": torch.arange(4)}), 0)
        buffer.update({**info, "priority": [1.0, 2.0, 3.0, 4.0]})
        assert buffer.sample(4, 0).columns["IS"].tolist() == [1.0] * 4

    def test_bad_priorities(self, buffer):
        buffer.push(Columns({"t": torch.arange(4)}), 0)
        buffer.sample(2, 0)
        with pytest.raises(DataError, match="3 priorities came for 2 items"):
            buffer.update({"priority": [1.0, 1.0, 1.0]})

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.utils import set_pkg_seed
from ding.utils.errors import DataError
from ding.worker import AdvancedReplayBuffer
from ding.worker.replay_buffer.demonstrations import DemonstrationBuffer


def rows(start, n):
    return Columns({"x": torch.arange(start, start + n, dtype=torch.float32)})


@pytest.fixture
def buffer():
    set_pkg_seed(0, use_cuda=False)
    both = [
        AdvancedReplayBuffer(
            EasyDict(replay_buffer_size=20, alpha=1.0), exp_name=None, instance_name=name
        )
        for name in ("own", "demos")
    ]
    joined = DemonstrationBuffer(*both, share=0.25)
    joined.demonstrations.push(rows(100, 6))
    yield joined
    joined.close()


def test_batches_have_their_share_of_demonstrations(buffer):
    assert buffer.sample(8, 0) is None
    buffer.push(rows(0, 10))
    x = buffer.sample(8, 0).columns["x"]
    assert (x >= 100).tolist() == [True] * 2 + [False] * 6
    assert (buffer.sample_demonstrations(4, 0).columns["x"] >= 100).all()
    assert buffer.count() == 16


def test_priorities_find_their_way_home(buffer):
    buffer.push(rows(0, 10))
    batch = buffer.sample(12, 0)
    priority = torch.where(batch.columns["x"] % 2 == 0, 0.0, 1.0)
    info = {name: batch.columns[name] for name in ("replay_unique_id", "replay_buffer_idx")}
    order = np.random.permutation(12)
    shuffled = {name: column[order] for name, column in info.items()}
    buffer.update({**shuffled, "priority": priority[order]})
    for _ in range(20):
        seen = buffer.sample(12, 1).columns
        drawn = dict(zip(seen["x"].tolist(), np.asarray(seen["priority"])))
        for x, p in zip(batch.columns["x"].tolist(), priority.tolist()):
            if x in drawn:
                assert drawn[x] == pytest.approx(p, abs=1e-4)


def test_a_state_holds_both(buffer):
    buffer.push(rows(0, 10))
    other = DemonstrationBuffer(
        *(
            AdvancedReplayBuffer(EasyDict(replay_buffer_size=20), exp_name=None, instance_name=n)
            for n in ("own", "demos")
        ),
        share=0.25,
    )
    other.load_state_dict(buffer.state_dict())
    assert (other.own.count(), other.demonstrations.count()) == (10, 6)
    other.clear()
    assert (other.own.count(), other.demonstrations.count()) == (0, 6)
    other.close()


def test_samples_of_several_forms_are_refused(buffer):
    buffer.push([{"x": torch.zeros(1 + i % 2)} for i in range(4)])
    with pytest.raises(DataError, match="same shape"):
        buffer.sample(4, 0)

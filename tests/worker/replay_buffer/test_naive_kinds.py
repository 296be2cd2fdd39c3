"""Sequences, episodes, and the elastic window."""

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.worker import (
    ElasticReplayBuffer,
    EpisodeReplayBuffer,
    NaiveReplayBuffer,
    SequenceReplayBuffer,
)


@pytest.fixture
def make():
    made = []

    def build(cls, size, **cfg):
        made.append(cls(EasyDict(replay_buffer_size=size, **cfg)))
        return made[-1]

    yield build
    for buffer in made:
        buffer.close()


def columns(start, stop):
    return Columns({"t": torch.arange(start, stop)})


def texts(start, stop):
    return [{"t": torch.tensor(i), "s": "text"} for i in range(start, stop)]


def test_replace(make):
    buffer = make(NaiveReplayBuffer, 4)
    buffer.push(columns(0, 2), 0)
    assert buffer.sample(3, 0) is None
    assert len(buffer.sample(30, 0, replace=True)) == 30


def test_uniform(make):
    buffer = make(NaiveReplayBuffer, 8)
    buffer.push(columns(0, 12), 0)
    drawn = torch.cat([buffer.sample(3, 0).columns["t"] for _ in range(2000)])
    share = torch.bincount(drawn, minlength=12).numpy() / len(drawn)
    assert (share[:4] == 0).all()
    assert np.allclose(share[4:], 1 / 8, atol=0.02)


@pytest.mark.parametrize("make_items", [columns, texts])
@pytest.mark.parametrize("pushed", [5, 8, 11, 29])
def test_runs_never_cross_the_write_position(make, make_items, pushed):
    buffer = make(SequenceReplayBuffer, 8)
    for i in range(pushed):
        buffer.push(make_items(i, i + 1), 0)
    starts = set()
    for _ in range(60):
        runs = buffer.sample(2, 4, 0)
        assert len(runs) == 2
        for run in runs:
            steps = [r["t"].item() for r in run]
            assert steps == list(range(steps[0], steps[0] + 4))
            starts.add(steps[0])
    oldest = max(pushed - 8, 0)
    assert starts == set(range(oldest, pushed - 3))


def test_runs_are_columns(make):
    buffer = make(SequenceReplayBuffer, 8)
    buffer.push(columns(0, 8), 0)
    runs = buffer.sample(3, 2, 0)
    assert all(isinstance(run, Columns) and run.is_columnar for run in runs)
    assert all(run.columns["t"].shape == (2,) for run in runs)


def test_runs_within_a_range_and_too_long_runs(make):
    buffer = make(SequenceReplayBuffer, 8)
    buffer.push(columns(0, 11), 0)
    (run,) = buffer.sample(1, 3, 0, sample_range=slice(-3, None))
    assert [r["t"].item() for r in run] == [8, 9, 10]
    assert buffer.sample(1, 4, 0, sample_range=slice(-3, None)) is None
    assert buffer.sample(1, 9, 0) is None
    assert buffer.sample(6, 3, 0, replace=False) is not None
    assert buffer.sample(7, 3, 0, replace=False) is None
    assert len(buffer.sample(7, 3, 0, replace=True)) == 7


@pytest.mark.parametrize("columnar", [True, False])
def test_episodes(make, columnar, tmp_path):
    def episode(length):
        data = columns(0, length)
        return data if columnar else list(data)

    buffer = make(EpisodeReplayBuffer, 3)
    buffer.push([episode(2), episode(3)], 0)
    assert (buffer.count(), buffer.episode_len) == (2, [2, 3])
    buffer.push([episode(4)], 0)
    buffer.push([episode(5)], 0)
    assert (buffer.count(), buffer.push_count, buffer.episode_len) == (3, 4, [3, 4, 5])

    drawn = buffer.sample(3, 0)
    assert sorted(len(e) for e in drawn) == [3, 4, 5]
    for e in drawn:
        e[0]["t"] = None
        e.append("more")
    assert sorted(len(e) for e in buffer.sample(3, 0)) == [3, 4, 5]
    assert all(e[0]["t"] is not None for e in buffer.sample(3, 0))

    buffer.save_data(str(tmp_path / "data"))
    other = make(EpisodeReplayBuffer, 3)
    other.load_data(str(tmp_path / "data"))
    assert other.episode_len == [3, 4, 5]
    again = make(EpisodeReplayBuffer, 3)
    again.load_state_dict(buffer.state_dict())
    assert [r["t"].item() for r in again.sample(1, 0)[0]][:2] == [0, 1]


def test_rows_of_another_kind_of_buffer_as_items(make, tmp_path):
    rows, items = make(NaiveReplayBuffer, 3), make(EpisodeReplayBuffer, 3)
    rows.push(columns(0, 3), 0)
    rows.save_data(str(tmp_path / "data"))
    items.load_data(str(tmp_path / "data"))
    assert sorted(item["t"].item() for item in items.sample(3, 0)) == [0, 1, 2]


def test_elastic_window_follows_the_environment_step(make):
    buffer = make(ElasticReplayBuffer, 10, set_buffer_size=lambda envstep: 2 + envstep // 10)
    buffer.push(columns(0, 14), 0)
    assert sorted(buffer.sample(2, 0).columns["t"].tolist()) == [12, 13]
    assert buffer.sample(3, 0) is None
    buffer.update(20)
    assert sorted(buffer.sample(4, 0).columns["t"].tolist()) == [10, 11, 12, 13]
    assert buffer.sample(1, 0, sample_range=slice(0, 1)).columns["t"].item() == 10
    buffer.update(1000)
    assert len(buffer.sample(10, 0)) == 10


@pytest.mark.parametrize("columnar", [True, False])
def test_training_samples_are_items(make, columnar):
    buffer = make(EpisodeReplayBuffer, size=10)
    rows = [{"obs": torch.tensor([float(i)]), "reward": float(i)} for i in range(6)]
    buffer.push(Columns.from_rows(rows) if columnar else rows, 0)
    assert (buffer.count(), buffer.push_count) == (6, 6)
    batch = buffer.sample(4, 0)
    assert len({float(row["reward"]) for row in batch}) == 4

"""Columns of indices into another array's rows read like the rows themselves."""

import copy
import pickle

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns, IndexedColumn
from ding.data.ring import Ring
from ding.worker import AdvancedReplayBuffer, NaiveReplayBuffer
from tests.data.rings import push

AT, FOLLOWING = np.array([0, 1, 2, 4, 5]), np.array([1, 2, 3, 5, 6])


def frames_of(shape, convert=torch.from_numpy):
    return convert(np.arange(7 * np.prod(shape), dtype=np.float32).reshape(7, *shape))


def rollout(shape=(3,), convert=torch.from_numpy):
    """Two trajectories of three and two steps, and the same with whole observations."""
    frames = frames_of(shape, convert)
    others = {"action": torch.arange(5), "done": np.array([0, 0, 1, 0, 1], bool)}
    implied = {"obs": IndexedColumn(frames, AT), "next_obs": IndexedColumn(frames, FOLLOWING)}
    whole = {"obs": frames[AT], "next_obs": frames[FOLLOWING]}
    return Columns({**implied, **others}), Columns({**whole, **others})


def same(a, b):
    assert a.keys() == b.keys()
    for name, column in a.items():
        assert type(column) is type(b[name])
        assert column.dtype == b[name].dtype
        assert (np.asarray(column) == np.asarray(b[name])).all()


@pytest.mark.parametrize("convert", [torch.from_numpy, np.asarray])
class TestAsColumns:
    def test_readers_find_arrays(self, convert):
        implied, whole = rollout(convert=convert)
        assert len(implied) == 5
        same(implied.columns, whole.columns)
        same(rollout(convert=convert)[0][1:4].columns, whole[1:4].columns)

    def test_copies_and_rows(self, convert):
        implied, whole = rollout(convert=convert)
        for other in (copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))):
            same(other(rollout(convert=convert)[0]).columns, whole.columns)
        joined = Columns.concat([rollout(convert=convert)[0][3:], rollout(convert=convert)[0]])
        same(joined.columns, Columns.concat([whole[3:], whole]).columns)
        row = implied[3]
        assert (np.asarray(row["next_obs"]) == np.asarray(whole[3]["next_obs"])).all()


@pytest.mark.parametrize("buffer_type", [NaiveReplayBuffer, AdvancedReplayBuffer])
@pytest.mark.parametrize("shape", [(3,), (4, 16, 16)])
@pytest.mark.parametrize("convert", [torch.from_numpy, np.asarray])
def test_a_buffer_keeps_what_they_stand_for(buffer_type, shape, convert):
    implied, whole = rollout(shape, convert)
    buffer = buffer_type(EasyDict(replay_buffer_size=7))
    buffer.push(implied)
    buffer.push(rollout(shape, convert)[0][1:4])  # goes around the end
    assert implied.is_columnar
    drawn = buffer.sample(7, 0).columns
    order = np.argsort(np.asarray(drawn["action"]), kind="stable")
    expected = whole.take(np.array([1, 1, 2, 2, 3, 3, 4])).columns
    same({name: drawn[name][order] for name in expected}, expected)


def test_into_a_store_of_whole_observations_and_back():
    implied, whole = rollout()
    ring = Ring(10)
    push(ring, whole)
    push(ring, implied)
    out = ring.take(np.arange(10)).columns
    assert torch.equal(out["obs"][:5], out["obs"][5:])
    assert torch.equal(out["next_obs"][:5], out["next_obs"][5:])


def test_of_another_kind_than_what_is_stored():
    ring = Ring(10)
    push(ring, rollout(convert=np.asarray)[1])
    push(ring, rollout(convert=torch.from_numpy)[0])
    assert not ring.is_columnar
    rows = ring.take(np.arange(10))
    assert isinstance(rows[9]["obs"], torch.Tensor)
    assert isinstance(rows[0]["obs"], np.ndarray)


@pytest.mark.parametrize("stored", [0, 2])
def test_an_index_outside_of_its_source(stored):
    ring = Ring(10)
    push(ring, Columns({"obs": np.zeros((stored, 2))}))
    with pytest.raises(IndexError):
        push(ring, Columns({"obs": IndexedColumn(np.zeros((3, 2)), np.array([0, 3]))}))


def test_big_observations_are_kept_once():
    frames = torch.randint(0, 255, (7, 4, 16, 16), dtype=torch.uint8)
    columns = {"obs": IndexedColumn(frames, AT), "next_obs": IndexedColumn(frames, FOLLOWING)}
    ring = Ring(1000)
    push(ring, Columns(columns))
    assert ring.state_dict()["rows"][0]["obs.frames"].nbytes == 7 * 4 * 16 * 16


def test_big_observations_of_joined_containers_are_kept_once():
    frames = frames_of((4, 16, 16), np.asarray)
    columns = {"obs": IndexedColumn(frames, AT), "next_obs": IndexedColumn(frames, FOLLOWING)}
    joined = Columns.concat([Columns(columns)[3:], Columns(columns)])
    obs, next_obs = joined.raw_columns().values()
    assert obs.source is next_obs.source
    assert len(obs.source) == 3 + 7

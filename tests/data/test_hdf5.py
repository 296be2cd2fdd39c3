"""Data sets in HDF5."""

import sys

import numpy as np
import pytest
import torch

from ding.data import Columns, create_dataset
from ding.data.offline.transition_dataset import transitions_of
from ding.utils.data import offline_data_save_type
from ding.utils.errors import CheckpointError, CheckpointWriteError, ConfigError, DataError


def config(path, **collect):
    return {"policy": {"collect": {"data_path": str(path), "data_type": "hdf5", **collect}}}


def test_without_h5py(monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ConfigError, match=r'pip install "ding\[hdf5\]"'):
        create_dataset(config("demo.hdf5"))


class TestFiles:
    @pytest.fixture(autouse=True)
    def _h5py(self):
        self.h5py = pytest.importorskip("h5py")

    def write(self, **fields):
        with self.h5py.File("demo.hdf5", "w") as file:
            for name, values in fields.items():
                file[name] = values
        return config("demo.hdf5")

    def test_there_and_back(self):
        data = Columns(
            {
                "obs": {"a": torch.rand(4, 2), "b": torch.arange(4, dtype=torch.uint8)},
                "action": torch.tensor([[0], [1], [1], [0]]),
                "reward": np.arange(4, dtype=np.float32)[:, None],
                "next_obs": {"a": torch.rand(4, 2), "b": torch.arange(4, dtype=torch.uint8)},
                "done": np.array([False, False, True, False]),
            }
        )
        for form in (data, list(data.copy())):
            offline_data_save_type(form, "folder/demo.hdf5", "hdf5")
            read = transitions_of(create_dataset(config("folder/demo.hdf5")))
            assert torch.equal(read.column("obs")["b"], torch.arange(4, dtype=torch.uint8))
            assert read.column("action").tolist() == [[0], [1], [1], [0]]
            assert read.column("reward").tolist() == [0, 1, 2, 3]
            assert read.column("done").tolist() == [False, False, True, False]

    def test_the_beginning_tells(self):
        path = self.write(obs=np.zeros((3, 2)), action=np.zeros(3))["policy"]["collect"][
            "data_path"
        ]
        for kind in ("naive", "d4rl"):
            assert len(create_dataset(config(path, data_type=kind))) == 3

    def test_names_of_d4rl(self):
        # Two episodes: one ends, one is cut off; then the beginning of a third.
        obs = np.arange(7, dtype=np.float64)[:, None]
        cfg = self.write(
            observations=obs,
            actions=np.full((7, 1), 0.5),
            rewards=np.arange(7.0),
            terminals=np.array([0, 0, 1, 0, 0, 0, 0], bool),
            timeouts=np.array([0, 0, 0, 0, 1, 0, 0], bool),
            infos_qpos=np.zeros((3, 3)),
        )
        read = transitions_of(create_dataset(cfg))
        # What comes after the cut, and after the last one, nobody knows.
        assert read.column("reward").tolist() == [0, 1, 2, 3, 5]
        assert read.column("obs")[:, 0].tolist() == [0, 1, 2, 3, 5]
        alive = ~read.column("done")
        assert read.column("next_obs")[alive][:, 0].tolist() == [1, 2, 4, 6]
        assert read.column("obs").dtype == read.column("action").dtype == torch.float32

    def test_observations_that_came_next_are_taken_as_they_are(self):
        cfg = self.write(
            observations=np.zeros((3, 2), np.float32),
            actions=np.array([1, 0, 2], np.int32),
            rewards=np.zeros(3),
            terminals=np.zeros(3),
            next_observations=np.ones((3, 2), np.float32),
        )
        read = transitions_of(create_dataset(cfg))
        assert read.column("next_obs").tolist() == [[1, 1]] * 3
        assert read.column("action").dtype == torch.int64
        assert read.column("done").dtype == bool

    def test_what_is_wrong_is_named(self, tmp_path):
        with pytest.raises(CheckpointError, match="there is no file absent"):
            create_dataset(config("absent.hdf5"))
        with pytest.raises(DataError, match=r"no transitions, but x; expected obs \(or observ"):
            create_dataset(self.write(x=np.zeros(3)))
        with pytest.raises(DataError, match=r"differ in their lengths: {'obs': 3, 'action': 2}"):
            create_dataset(self.write(obs=np.zeros((3, 1)), action=np.zeros(2)))
        with pytest.raises(DataError, match="is empty"):
            create_dataset(self.write(obs=np.zeros((0, 1)), action=np.zeros(0)))
        with pytest.raises(DataError, match="data_type='minari'"):
            create_dataset(self.write(**{"episode_0/observations": np.zeros(3)}))
        with pytest.raises(DataError, match="of one shape"):
            offline_data_save_type([{"obs": np.zeros(2)}, {"obs": np.zeros(3)}], "x.hdf5", "hdf5")
        (tmp_path / "file").touch()
        with pytest.raises(CheckpointWriteError, match="cannot write"):
            path = str(tmp_path / "file" / "demo.hdf5")
            offline_data_save_type([{"obs": np.zeros(2)}], path, "hdf5")

    @pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
    def test_a_truncated_file(self, kept, tmp_path):
        self.write(obs=np.random.default_rng(0).random((5000, 4)), action=np.zeros(5000))
        with open("demo.hdf5", "r+b") as file:
            file.truncate(int(kept * file.seek(0, 2)))
        with pytest.raises(CheckpointError, match=r"cannot be read as HDF5.*cut short"):
            create_dataset(config("demo.hdf5"))

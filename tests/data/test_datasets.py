"""Data sets in the formats of this package: what comes out is what went in.

Files that are damaged, hostile, or of something else give one error that names them.
"""

import os

import numpy as np
import pytest
import torch

from ding.data import Columns, create_dataset, offline_data_save_type
from ding.data.offline.transition_dataset import transitions_of
from ding.utils import read_file, save_file
from ding.utils.data import NaiveRLDataset
from ding.utils.errors import CheckpointError, ConfigError, DataError
from ding.worker import AdvancedReplayBuffer, NaiveReplayBuffer


def transitions(count, start=0):
    number = np.arange(start, start + count, dtype=np.float32)
    return Columns(
        {
            "obs": torch.from_numpy(np.stack([number, -number], 1)),
            "next_obs": torch.from_numpy(np.stack([number + 1, -number - 1], 1)),
            "action": torch.from_numpy(number[:, None] % 2),
            "reward": number[:, None],
            "done": np.zeros(count, bool),
        }
    )


def first_numbers(dataset):
    return transitions_of(dataset).column("obs")[:, 0].tolist()


class TestSavedBuffers:
    @pytest.mark.parametrize("buffer_cls", [NaiveReplayBuffer, AdvancedReplayBuffer])
    def test_what_is_in_the_ring_the_oldest_first(self, tmp_path, buffer_cls):
        buffer = buffer_cls({**buffer_cls.default_config(), "replay_buffer_size": 10}, None)
        buffer.push(transitions(14))
        path = str(tmp_path / "buffer.pkl")
        buffer.save_data(path)
        buffer.close()
        data = NaiveRLDataset(path)
        assert len(data) == 10
        assert first_numbers(data) == list(range(4, 14))
        row = data[3]
        assert (row["obs"].tolist(), row["reward"].tolist(), row["done"]) == ([7, -7], [7], False)
        # A row that was asked for leaves the rest in columns.
        assert isinstance(transitions_of(data), Columns)

    def test_items_without_columns(self, tmp_path):
        buffer = NaiveReplayBuffer({**NaiveReplayBuffer.default_config()}, None)
        buffer.push([{"obs": torch.zeros(i + 1)} for i in range(3)])
        buffer.save_data(str(tmp_path / "buffer.pkl"))
        data = NaiveRLDataset(str(tmp_path / "buffer.pkl"))
        assert [len(data[i]["obs"]) for i in range(len(data))] == [1, 2, 3]

    def test_a_folder_that_is_no_runs(self, tmp_path):
        with pytest.raises(DataError, match=r"is no folder of a run: it has no ckpt.resume"):
            NaiveRLDataset(str(tmp_path))


class TestColumnsInFiles:
    @pytest.mark.parametrize("count", [3, 40])
    def test_a_file_of_columns_is_one_of_rows(self, count):
        data = transitions(count).with_columns(
            info={"step": np.arange(count), "goal": torch.zeros(count, 2)},
            weight=np.arange(count) / 2,
        )
        offline_data_save_type(data, "columns.pkl")
        offline_data_save_type(list(data), "rows.pkl")
        ours, theirs = read_file("columns.pkl"), read_file("rows.pkl")
        assert len(ours) == len(theirs) == count
        for mine, other in zip(ours, theirs):
            assert mine.keys() == other.keys()
            assert (mine["done"], mine["weight"]) == (other["done"], other["weight"])
            assert type(mine["done"]) is type(other["done"]) is bool
            assert mine["info"]["step"] == other["info"]["step"]
            for name in ("obs", "reward"):
                assert type(mine[name]) is type(other[name])
                assert np.array_equal(mine[name], other[name])
        for path in ("columns.pkl", "rows.pkl"):
            read = transitions_of(NaiveRLDataset(path))
            assert read.column("obs").dtype == torch.float32
            assert read.column("reward").shape == (count, 1)
            assert read.column("done").dtype == bool
            assert read.column("info")["step"].tolist() == list(range(count))
            assert read.column("weight").tolist() == [step / 2 for step in range(count)]

    def test_values_that_are_no_arrays(self):
        rows = [{"obs": torch.zeros(2), "name": f"n{i}"} for i in range(30)]
        offline_data_save_type(rows, "demo.pkl")
        assert NaiveRLDataset("demo.pkl")[4]["name"] == "n4"


def test_a_dict_of_arrays():
    save_file("demo.pkl", {"observations": np.zeros((4, 2)), "actions": torch.arange(4)})
    data = transitions_of(NaiveRLDataset("demo.pkl"))
    assert (data.column("obs").dtype, data.column("action").tolist()) == (
        torch.float32,
        [0, 1, 2, 3],
    )


class TestDamage:
    @pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
    def test_a_truncated_file(self, kept):
        offline_data_save_type(transitions(100), "demo.pkl")
        with open("demo.pkl", "r+b") as file:
            file.truncate(int(kept * file.seek(0, 2)))
        with pytest.raises(CheckpointError, match=r"demo\.pkl"):
            NaiveRLDataset("demo.pkl")


class TestPaths:
    @pytest.mark.parametrize("key", ["collect.data_path", "learn.data_path", "learn.dataset_path"])
    def test_each_place_is_read(self, tmp_path, key):
        section, name = key.split(".")
        path = str(tmp_path / "absent.pkl")
        with pytest.raises(CheckpointError, match="absent"):
            create_dataset({"policy": {section: {name: path}}})

    def test_the_collectors_counts(self, tmp_path):
        cfg = {"policy": {"collect": {"data_path": "one"}, "learn": {"data_path": "two"}}}
        with pytest.raises(CheckpointError, match="one"):
            create_dataset(cfg)

    def test_no_path(self):
        with pytest.raises(ConfigError, match=r"policy\.learn\.data_path is 3; expected the path"):
            create_dataset({"policy": {"learn": {"data_path": 3}}})


def config(path):
    return {"policy": {"collect": {"data_path": path, "data_type": "naive"}}}


RING = {
    "capacity": 4,
    "slots": np.arange(2),
    "numbers": np.arange(2),
    "head": 2,
    "in_turn": True,
    "total": 2,
    "rows": None,
    "objects": None,
}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"items": {}}, "not that of a replay buffer of this version: KeyError: 'slots'"),
        ({"items": {"slots": 7}}, "not that of a replay buffer of this version"),
        ({"items": {**RING, "journal": 5}}, "separate files|this version"),
        ({"items": {**RING, "layout": None}}, "saved by an earlier version"),
        ({"obs": np.array(["a", "b"]), "action": np.zeros(2)}, "'obs' holds <U1, expected num"),
        ({"obs": np.array([{}, {}]), "action": np.zeros(2)}, "'obs' holds object, expected num"),
        ({"obs": np.zeros((2, 1)), "action": np.array(5.0)}, "'action' is one value"),
        ({"obs": np.zeros(2), "done": np.array(["a", "b"])}, "'done' holds <U1"),
        ({"obs": np.zeros(2), "action": torch.zeros(1).expand(10**9)}, "bytes, but 4 are stored"),
        ("text", "holds a str"),
        ([], "holds an empty list, expected a list of transitions"),
        ({"obs": 1}, "holds a dict, expected a list of transitions"),
    ],
)
def test_other_content_of_a_file(tmp_path, content, words):
    path = str(tmp_path / "data.pkl")
    save_file(path, content)
    with pytest.raises((DataError, CheckpointError), match=words):
        create_dataset(config(path))


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (5, "has no replay buffer"),
        ({"buffer": {"ring": 5}}, "not that of a replay buffer of this version"),
        ({"buffer": {"ring": {**RING, "journal": []}}}, "2 rows, of which 0 are stored"),
    ],
)
def test_other_states_of_a_run(tmp_path, state, words):
    save_file(str(tmp_path / "ckpt" / "resume.pth.tar"), state)
    with pytest.raises(DataError, match=words):
        create_dataset(config(str(tmp_path)))


def test_a_fifo_is_not_waited_for(tmp_path):
    (tmp_path / "ckpt").mkdir()
    for path in ("ckpt/resume.pth.tar", "data.pkl"):
        os.mkfifo(tmp_path / path)
    for path in (tmp_path, tmp_path / "data.pkl"):
        with pytest.raises(CheckpointError, match="no regular file"):
            create_dataset(config(str(path)))

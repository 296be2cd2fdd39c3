"""Data sets whose files are damaged, hostile, or of something else: one error that names them."""

import os

import numpy as np
import pytest
import torch

from ding.data import create_dataset
from ding.utils import save_file
from ding.utils.errors import CheckpointError, DataError


def config(path):
    return {"policy": {"collect": {"data_path": path, "data_type": "naive"}}}


RING = {
    "capacity": 4,
    "slots": np.arange(2),
    "numbers": np.arange(2),
    "head": 2,
    "in_turn": True,
    "total": 2,
    "layout": None,
    "rows": None,
    "objects": None,
}
LAYOUT = {"names": [("x",)], "columns": [np.zeros((0, 2))]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"items": {}}, "not that of a replay buffer of this version: KeyError: 'slots'"),
        ({"items": {"slots": 7}}, "not that of a replay buffer of this version"),
        ({"items": {**RING, "layout": LAYOUT, "journal": 5}}, "separate files|this version"),
        ({"obs": np.array(["a", "b"]), "action": np.zeros(2)}, "'obs' holds <U1, expected num"),
        ({"obs": np.array([{}, {}]), "action": np.zeros(2)}, "'obs' holds object, expected num"),
        ({"obs": np.zeros((2, 1)), "action": np.array(5.0)}, "'action' is one value"),
        ({"obs": np.zeros(2), "done": np.array(["a", "b"])}, "'done' holds <U1"),
        ({"obs": np.zeros(2), "action": torch.zeros(1).expand(10**9)}, "bytes, but 4 are stored"),
        ("text", "holds a str"),
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

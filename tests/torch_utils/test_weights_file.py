"""Policy weights that one process publishes and others pick up."""

import os
import threading

import numpy as np
import pytest
import torch

from ding.torch_utils import read_weights, write_weights
from ding.utils import CheckpointError, CheckpointNotFoundError, DataError
from ding.utils.shared_folder import SharedFolder

FACTS = {"policy_iter": 7, "envstep": 320, "time": 1.5, "learner": "learner0"}


@pytest.fixture
def folder(tmp_path):
    return SharedFolder(str(tmp_path / "policy"))


def test_a_model_comes_back_with_its_facts(folder):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
    write_weights(folder, "p", {"model": model.state_dict()}, FACTS)
    state, facts = read_weights(folder, "p")
    assert facts == FACTS
    assert list(state) == ["model"]
    assert list(state["model"]) == list(model.state_dict())
    other = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
    other.load_state_dict(state["model"])
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters()))


def test_nested_states_with_numbers_texts_and_colliding_names(folder):
    state = {
        "a": {"b": torch.ones(2), 3: {"c": np.arange(2)}, "none": {}},
        "a.b": torch.zeros(1),
        "eps": 0.5,
        "name": "x",
        "nothing": None,
        "on": True,
    }
    write_weights(folder, "p", state, {})
    read, _ = read_weights(folder, "p")
    assert torch.equal(read["a"]["b"], torch.ones(2))
    assert torch.equal(read["a.b"], torch.zeros(1))
    assert np.array_equal(read["a"][3]["c"], np.arange(2))
    assert read["a"]["none"] == {}
    assert [read[k] for k in ("eps", "name", "nothing", "on")] == [0.5, "x", None, True]
    assert list(read) == list(state)


@pytest.mark.parametrize("state", [{"a": {"b": [1]}}, {"a": {"b": object()}}, {("t",): 1}])
def test_what_cannot_be_published_is_named(folder, state):
    with pytest.raises(DataError, match=r"a\.b|'t'"):
        write_weights(folder, "p", state, {})
    assert folder.names() == []


def test_missing_damaged_and_foreign_files(folder):
    with pytest.raises(CheckpointNotFoundError, match="p"):
        read_weights(folder, "p")
    write_weights(folder, "p", {"w": torch.ones(100)}, {})
    path = folder.file("p")
    os.truncate(path, os.path.getsize(path) - 5)
    with pytest.raises(CheckpointError, match="cut short"):
        read_weights(folder, "p")
    torch.save({"w": torch.ones(3)}, path)
    with pytest.raises(CheckpointError, match="not a safetensors file"):
        read_weights(folder, "p")


@pytest.mark.parametrize("name", ["../p", "/p", ""])
def test_names_stay_in_the_folder(folder, name):
    for call in (
        lambda: write_weights(folder, name, {}, {}),
        lambda: read_weights(folder, name),
    ):
        with pytest.raises(DataError):
            call()


def test_a_reader_sees_whole_versions_while_they_change(folder):
    write_weights(folder, "p", {"w": torch.zeros(50_000)}, {"policy_iter": 0})
    stop = threading.Event()

    def publish() -> None:
        for i in range(1, 200):
            if stop.is_set():
                return
            write_weights(folder, "p", {"w": torch.full((50_000,), float(i))}, {"policy_iter": i})

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        for _ in range(100):
            state, facts = read_weights(folder, "p")
            assert (state["w"] == facts["policy_iter"]).all()
    finally:
        stop.set()
        thread.join(30)
    assert folder.names() == os.listdir(folder.path)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, make):
    folder = SharedFolder(str(tmp_path))
    make(tmp_path / "policy")
    with pytest.raises((CheckpointError, DataError), match="policy"):
        read_weights(folder, "policy")

"""The coordinator's state on disk: its owner, and the handling of one that does not fit."""

from pathlib import Path
from threading import Event

import pytest

from ding.utils import read_file, save_file
from ding.utils.errors import CheckpointError
from ding.worker.coordinator import run_files
from ding.worker.coordinator.run_files import CoordinatorState

RUN = {"policy": {"type": "dqn"}}


@pytest.fixture
def warned():
    return []


@pytest.fixture
def make(tmp_path, warned):
    return lambda run=RUN: CoordinatorState(str(tmp_path), run, 60.0, warned.append)


def test_a_run_goes_on_from_its_own_state_alone(make, warned):
    make().save(lambda: {"tasks": 3})
    assert make().load(None) == {"tasks": 3}
    assert make({"policy": {"type": "ppo"}}).load(None) is None
    assert [line.partition(": ")[0] for line in warned] == ["the run starts from the beginning"]
    assert "another config or seed" in warned.pop()
    assert make({"policy": {"type": "ppo"}}).load(True) == {"tasks": 3}
    assert make().load(False) is None
    assert not warned


def test_a_run_at_its_end_goes_on_only_if_that_is_wanted(make):
    state = make()
    state.is_of_end = True
    state.save(lambda: {"tasks": 3})
    assert make().load(None) is None
    assert make().load(True) == {"tasks": 3}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 1}, "a state of another version of ding"),
        ({"format": None}, "a state of another version of ding"),
        (b"PK\x03\x04 cut short", "coordinator_state"),
    ],
)
def test_a_state_that_cannot_be_read_is_an_error_only_if_it_is_wanted(make, warned, change, words):
    state = make()
    state.save(lambda: {"tasks": 3})
    if isinstance(change, bytes):
        Path(state.path).write_bytes(change)
    else:
        save_file(state.path, {**read_file(state.path), **change})
    assert make().load(None) is None
    (line,) = warned
    assert line.startswith("the run starts from the beginning: ")
    assert words in line
    with pytest.raises(CheckpointError, match=words):
        make().load(True)


def test_a_save_that_fails_is_reported_once(make, warned, tmp_path):
    (tmp_path / "ckpt").write_text("in the way")
    state = make()
    for _ in range(3):
        state.save(lambda: {"tasks": 3})
    (line,) = warned
    assert line.startswith("the coordinator's state is not saved: ")


def test_a_slow_disk_delays_no_one(tmp_path, warned, monkeypatch):
    state, written, on_disk = CoordinatorState(str(tmp_path), RUN, 0.0, warned.append), [], Event()

    def write(path, saved):
        assert on_disk.wait(20)
        written.append(saved["state"])

    monkeypatch.setattr(run_files, "save_file", write)
    for steps in (1, 2):
        state.save_if_due(lambda steps=steps: {"envstep": steps})  # the second has to wait
    assert written == []
    on_disk.set()
    state.save(lambda: {"envstep": 3})
    assert written == [{"envstep": 1}, {"envstep": 3}]

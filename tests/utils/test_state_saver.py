"""When states are saved, and what happens to those that cannot be."""

import errno
import os
import threading
import time

import pytest

from ding.utils import durations, read_file, save_file
from ding.utils.disk_writes import stalled_write
from ding.utils.errors import CheckpointWriteError
from ding.utils.state_saver import StateSaver


class Disk:
    def __init__(self):
        self.written, self.failures, self.full = [], [], False

    def write(self, state):
        if self.full:
            raise CheckpointWriteError("no space", errno.ENOSPC)
        self.written.append(state)


@pytest.fixture
def disk():
    return Disk()


@pytest.fixture(params=[False, True], ids=["in place", "in a thread"])
def make(request, disk):
    def saver(take=lambda: "state", interval=0.0, max_share=1.0, retry=None):
        return StateSaver(
            *(take, disk.write, disk.failures.append, interval, max_share, retry),
            in_background=request.param,
        )

    return saver


def test_not_before_it_is_due(make, disk):
    saver = make(interval=60)
    assert not saver.save_if_due()
    saver.save()
    assert disk.written == ["state"]


def test_a_state_that_takes_long_is_saved_seldom(make, disk):
    def take():
        time.sleep(0.1)
        return "state"

    saver = make(take, max_share=0.001)
    assert saver.save_if_due()
    saver.close()
    assert not saver.save_if_due()
    assert disk.written == ["state"]


def test_a_failure_is_reported_and_mended(make, disk):
    disk.full = True
    saver = make(retry=60)
    saver.save()
    assert saver.error is disk.failures[0]
    assert not saver.save_if_due()
    disk.full = False
    saver.save()
    assert saver.error is None
    assert disk.written == ["state"]


def test_a_state_that_cannot_be_taken_is_a_failure(make, disk):
    def take():
        raise MemoryError

    saver = make(take)
    assert not saver.save_if_due()
    assert isinstance(disk.failures[0], MemoryError)


@pytest.mark.parametrize("at", ["open", "fsync", "replace"])
@pytest.mark.parametrize("in_background", [False, True])
def test_a_disk_that_does_not_answer_is_reported_by_name(at, in_background, tmp_path, monkeypatch):
    monkeypatch.setattr(durations, "DISK_STALL", 0.05)
    over, lines, call = threading.Event(), [], getattr(os, at)

    def hanging(*arguments, **keywords):
        if threading.current_thread().name in ("save-state", "MainThread"):
            over.wait(10)
        return call(*arguments, **keywords)

    def report(line):
        lines.append(line)
        over.set()

    path = str(tmp_path / "state.pth.tar")
    saver = StateSaver(
        *(lambda: {"a": 1}, lambda state: save_file(path, state), pytest.fail, 0.0, 1.0),
        in_background=in_background,
        on_stall=report,
    )
    monkeypatch.setattr(os, at, hanging)
    saver.save()
    monkeypatch.undo()
    (line,) = lines
    assert f"writing {path} has made no progress for 0 s, since " in line
    assert read_file(path) == {"a": 1}


def test_a_disk_that_answers_is_not_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(durations, "DISK_STALL", 0.05)
    path = str(tmp_path / "state.pth.tar")

    def write(state):
        time.sleep(0.2)  # not the disk
        save_file(path, state)

    StateSaver(lambda: 1, write, pytest.fail, 0.0, 1.0, on_stall=pytest.fail).save()
    assert stalled_write() is None

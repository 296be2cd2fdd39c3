"""When states are saved, and what happens to those that cannot be."""

import errno
import time

import pytest

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

"""Whether a process is still the one that it was."""

import multiprocessing
import os
import signal

from ding.utils.processes import process_identity, still_runs


def test_this_process():
    found = process_identity()
    assert found["pid"] == os.getpid()
    assert still_runs(found) is True


def test_another_process_with_the_same_number():
    assert still_runs({**process_identity(), "started": "earlier"}) is False


def test_a_process_of_another_host_is_not_known():
    assert still_runs({**process_identity(), "host": "elsewhere"}) is None
    assert still_runs({}) is None


def test_a_process_that_has_ended_without_being_waited_for():
    child = multiprocessing.get_context("fork").Process(target=signal.pause)
    child.start()
    found = process_identity(child.pid)
    assert still_runs(found) is True
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert still_runs(found) is False
    child.join()
    assert still_runs(found) is False
    assert process_identity(child.pid)["started"] is None

"""A parallel run leaves nothing behind and reports why it ended, however it ends."""

import os
import signal
import time

import pytest

from tests.parallel.runs import parallel_run

pytestmark = pytest.mark.timeout(120)


@pytest.mark.slow
def test_a_folder_that_is_renamed(tmp_path):
    with parallel_run(tmp_path, stop_value=100) as run:
        run.wait_until_it_learns()
        run.exp.rename(run.exp.with_name("other"))
        assert run.end(20) == 1
        run.wait_until_alone()
        assert "was renamed or removed" in run.last_line


@pytest.mark.slow
def test_ctrl_c_to_all_processes(tmp_path):
    with parallel_run(tmp_path, stop_value=100) as run:
        run.wait_until_it_learns()
        os.killpg(run.process.pid, signal.SIGINT)
        assert run.end(20) == 130
        run.wait_until_alone()
        assert run.last_line.startswith("interrupted: ")
        assert run.output.count("Traceback") == 0


@pytest.mark.slow
def test_a_signal_while_the_parts_start(tmp_path):
    with parallel_run(tmp_path, stop_value=100) as run:
        time.sleep(0.5)
        os.kill(run.process.pid, signal.SIGTERM)
        assert run.end(20) in (143, -signal.SIGTERM)
        run.wait_until_alone()

"""A running worker and its master."""

import pytest

from tests.worker.collector import parallel_tasks as tasks
from tests.worker.collector.comm.driver import Driver


@pytest.fixture
def driver(tmp_path):
    tasks.RELEASE.clear()
    with Driver(tmp_path) as driver:
        yield driver

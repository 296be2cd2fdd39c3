"""No thread ends in silence: what its work raises is reported to who waits for it."""

import ast
import threading
from pathlib import Path

import pytest

import ding
from ding.utils.system_helper import ReportingThread

#: Where a thread catches every exception itself, and reports it in another form.
OWN_EDGES = {
    "data/buffer/monitors.py": "errors are kept in a list",
    "envs/env_manager/_worker.py": "ends the process when its parent ends",
    "entry/part_process.py": "the part's ending has the error",
    "entry/seed_runs.py": "the caller of `work` raises it",
    "interaction/base/server.py": "`on_death` is called",
    "interaction/base/threading.py": "logged for each callback",
    "torch_utils/cuda_fetcher.py": "the next batch raises it",
    "utils/data/dataloader.py": "the next batch raises it",
    "utils/disk_writes.py": "reports a write that stalls; its writer waits for nothing of it",
    "utils/time_helper.py": "a future has the error",
    "utils/trackers.py": "what it does not pass on is reported",
    "utils/state_saver.py": "the next save reports it",
    "worker/collector/comm/collect_task.py": "the next answer raises it",
    "worker/collector/parts_cache.py": "logged; the caller waits with a deadline",
    "worker/coordinator/comm_coordinator.py": "the run ends with it",
    "worker/coordinator/coordinator.py": "the run ends with it",
    "worker/engines/control.py": "the run ends with it",
    "worker/engines/ray_worker.py": "a timer ends the process",
    "worker/learner/comm/training_task.py": "the next answer raises it",
}


class Stop(BaseException):
    """Not even an `Exception`."""


def nested(depth=0):
    return nested(depth + 1)


def raising(error):
    raise error


@pytest.mark.parametrize(
    ("work", "cause"),
    [
        (nested, "RecursionError: maximum recursion depth"),
        (lambda: raising(Stop("at\nonce")), "Stop: at once"),
        (lambda: raising(SystemExit(3)), "SystemExit: 3"),
    ],
)
def test_what_a_thread_raises_is_reported_in_one_line(work, cause, caplog):
    reported = []
    thread = ReportingThread(work, "worker", reported.append)
    thread.start()
    thread.join(10)
    assert len(reported) == 1
    assert reported[0].startswith(f"the thread worker failed: {cause}")
    assert "\n" not in reported[0]
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_a_thread_that_works_reports_nothing():
    reported, done = [], []
    thread = ReportingThread(done.append, "worker", reported.append, (1,))
    assert thread.daemon
    thread.start()
    thread.join(10)
    assert (reported, done) == ([], [1])
    assert not isinstance(threading.current_thread(), ReportingThread)


def test_each_thread_has_an_edge_that_reports():
    root = Path(ding.__file__).parent
    plain = set()
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "threading.Thread",
                "Thread",
            ):
                plain.add(file.relative_to(root).as_posix())
    assert plain <= set(OWN_EDGES), "use ReportingThread, or say here who gets the error"

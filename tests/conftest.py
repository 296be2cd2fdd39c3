"""Fixtures that hold for every test."""

import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.learned import Learned

os.environ.setdefault("OMP_NUM_THREADS", "1")
# A busy machine is no fault of what is tested.
settings.register_profile("ding", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("ding")


def pytest_addoption(parser):
    parser.addoption(
        "--learning-seed", type=int, default=0, help="what tests of learning train with"
    )
    parser.addoption("--margins", help="file that margins of tests of learning are appended to")


def pytest_collection_modifyitems(items):
    for item in items:
        if "learned" in item.fixturenames:
            item.add_marker("learns")


@pytest.fixture
def learned(request):
    """The seed of a test of learning, and what its results are held against."""
    option = request.config.getoption
    margins = option("margins") and Path(option("margins")).absolute()
    return Learned(request.node.nodeid, option("learning_seed"), margins)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """Runs each test in a separate folder, so that run folders never land in the checkout.

    A command sets ``DING_CONSOLE`` for its process; without it, tests do not affect each other.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DING_CONSOLE", raising=False)


@pytest.fixture(autouse=True)
def _no_leaks(request):
    """Fails a test that leaves a thread, daemon or not, or a child process behind."""
    allowed = [name for mark in request.node.iter_markers("leaves_threads") for name in mark.args]
    threads = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        left_threads = [
            t for t in threading.enumerate() if t not in threads and _is_left(t, tuple(allowed))
        ]
        left_children = multiprocessing.active_children()
        if not left_threads and not left_children:
            return
        time.sleep(0.02)
    for child in left_children:
        child.kill()
    pytest.fail(f"left behind: threads {left_threads}, processes {left_children}")


def _is_left(thread, allowed):
    # Dummies represent threads that were not started by Python, such as those of torch.
    is_dummy = isinstance(thread, threading._DummyThread)
    return thread.is_alive() and not is_dummy and not thread.name.startswith(allowed)

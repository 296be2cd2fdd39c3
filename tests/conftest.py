"""Fixtures that hold for every test."""

import multiprocessing
import os
import threading
import time

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """Runs each test in a folder of its own, so that run folders never land in the checkout."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _no_leaks():
    """Fails a test that leaves a thread or a child process behind."""
    threads = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        left_threads = [
            t for t in threading.enumerate() if t not in threads and t.is_alive() and not t.daemon
        ]
        left_children = multiprocessing.active_children()
        if not left_threads and not left_children:
            return
        time.sleep(0.02)
    for child in left_children:
        child.kill()
    pytest.fail(f"left behind: threads {left_threads}, processes {left_children}")

"""Fixtures that hold for every test."""

import multiprocessing
import os
import threading
import time

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """Runs each test in a folder of its own, so that run folders never land in the checkout.

    What a command says of the console holds for its process, and here not for the next test.
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
    # Dummies stand for threads that were not started by Python, such as those of torch.
    is_dummy = isinstance(thread, threading._DummyThread)
    return thread.is_alive() and not is_dummy and not thread.name.startswith(allowed)

"""A signal while Ray starts: the call to Ray may block for long."""

import ctypes
import functools
import os
import signal
import subprocess
import threading
import time
import types

import pytest

pytest.importorskip("ray")

from ding.entry.run.signals import StopNow, StopSignal
from ding.utils import durations
from ding.utils.errors import ConfigError
from ding.utils.log_file import leave_process
from ding.worker.engines import ray_cluster
from tests.children import is_alive

CFG = dict(address=None, modules=[], runtime_env={}, object_store_memory=None, head_tolerance=10.0)


@pytest.fixture
def starting(monkeypatch):
    """Replaces Ray's start; gives the calls at the end of the process."""
    at_exit = []
    monkeypatch.setattr(ray_cluster.atexit, "register", lambda *call: at_exit.append(call))
    monkeypatch.setattr(ray_cluster.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_cluster, "secure_token", lambda: None)
    monkeypatch.setattr(durations, "RAY_LEAVE_EARLY", 0.3)
    return at_exit


def test_it_is_heard_at_once_and_what_was_started_is_killed(starting, monkeypatch):
    released, children = threading.Event(), []

    def init(**_):
        children.append(os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ))
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        children.append(os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ))
        released.wait(30)

    monkeypatch.setattr(ray_cluster.ray, "init", init)
    try:
        with pytest.raises(StopNow), StopSignal():
            ray_cluster.RayCluster(CFG, "x").connect()
        assert starting == [(leave_process, 130)]
        assert len(children) == 2
        for child in children:
            os.waitpid(child, 0)
            assert not is_alive(child)
    finally:
        released.set()


def test_what_it_has_started_lives_on(starting, monkeypatch):
    """Ray has Linux end its processes with the thread that has started them."""
    children = []

    def init(**_):
        ends_with_its_parent = functools.partial(ctypes.CDLL(None).prctl, 1, signal.SIGKILL)
        child = subprocess.Popen(["sleep", "60"], preexec_fn=ends_with_its_parent)
        children.append(child)

    context = types.SimpleNamespace(gcs_address="127.0.0.1:1")
    monkeypatch.setattr(ray_cluster.ray, "init", init)
    monkeypatch.setattr(ray_cluster.ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(ray_cluster.ray, "shutdown", lambda: children[0].kill())
    cluster = ray_cluster.RayCluster(CFG, "x")
    cluster.connect()
    with pytest.raises(subprocess.TimeoutExpired):
        children[0].wait(0.5)
    assert cluster.leave()
    assert children[0].wait(10) == -signal.SIGKILL


def test_what_ray_says_is_one_error(starting, monkeypatch):
    def init(**_):
        raise RuntimeError("no room")

    monkeypatch.setattr(ray_cluster.ray, "init", init)
    with pytest.raises(ConfigError, match="Ray cannot be started: RuntimeError: no room"):
        ray_cluster.RayCluster(CFG, "x").connect()
    assert starting == []

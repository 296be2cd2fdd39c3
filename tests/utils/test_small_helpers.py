"""Timers, locks, threads, addresses, compression, scheduler, cluster helpers."""

import multiprocessing
import os
import signal
import socket
import threading
import time

import numpy as np
import pytest
import torch

from ding.utils import (
    CloudPickleWrapper,
    EasyTimer,
    FcntlContext,
    LockContext,
    LockContextType,
    PropagatingThread,
    Scheduler,
    SingletonMetaclass,
    WatchDog,
    build_time_helper,
    exist_operator_server,
    find_free_port,
    find_free_port_slurm,
    get_data_compressor,
    get_data_decompressor,
    get_file_lock,
    get_ip,
    get_operator_server_kwargs,
    get_pid,
    get_rw_file_lock,
    get_task_uid,
    iter_mapping,
    node_to_host,
)
from ding.utils.errors import ConfigError, DataError, UnknownTypeError


def test_ports_that_were_found_are_not_found_again():
    ports = [find_free_port("127.0.0.1") for _ in range(50)]
    assert len(set(ports)) == 50


def test_easy_timer_times_its_block():
    timer = EasyTimer()
    with timer:
        time.sleep(0.02)
    first = timer.value
    assert first >= 0.02
    with timer:
        pass
    assert timer.value < first


def test_time_wrapper_returns_result_and_seconds_also_nested():
    helper = build_time_helper(wrapper_type="time")
    inner = helper.wrapper(lambda: time.sleep(0.02))
    result, seconds = helper.wrapper(inner)()
    assert 0.02 <= result[1] <= seconds
    assert build_time_helper({"common": {"time_wrapper_type": "cuda"}}).wrapper(int)("3")[0] == 3
    with pytest.raises(UnknownTypeError, match="time, cuda"):
        build_time_helper(wrapper_type="sundial")


def test_watch_dog_bites_in_time_and_cleans_up():
    before = signal.getsignal(signal.SIGALRM)
    outer, _ = signal.getitimer(signal.ITIMER_REAL)  # of the test's own time limit
    with pytest.raises(TimeoutError, match="within"), WatchDog(0.05):
        threading.Event().wait(10)
    dog = WatchDog(10)
    dog.start()
    dog.stop()
    dog.stop()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == pytest.approx(outer, abs=5)


def test_a_watch_dog_lets_the_one_around_it_bite():
    with pytest.raises(TimeoutError, match=r"within 0\.1 s"), WatchDog(0.1):
        with WatchDog(10):
            pass
        threading.Event().wait(10)


def test_watch_dog_outside_the_main_thread():
    thread = PropagatingThread(target=WatchDog().start)
    thread.start()
    with pytest.raises(RuntimeError, match="main thread"):
        thread.join()


def test_propagating_thread():
    good = PropagatingThread(target=lambda a, b: a + b, args=(1,), kwargs={"b": 2})
    good.start()
    assert good.join() == 3
    bad = PropagatingThread(target=lambda: 1 / 0)
    bad.start()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            bad.join()
    gate = threading.Event()
    slow = PropagatingThread(target=gate.wait)
    slow.start()
    assert slow.join(timeout=0.01) is None
    gate.set()
    assert slow.join() is True


@pytest.mark.parametrize("kind", LockContextType)
def test_lock_context_is_exclusive_and_re_entrant(kind):
    lock, order = LockContext(kind), []

    def other():
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    with lock, lock:
        thread.start()
        order.append("main")
    thread.join()
    lock.acquire()
    lock.release()
    assert order == ["main", "other"]


def _hold(path, ready, leave):
    with get_file_lock(path, "write"):
        ready.set()
        leave.wait(20)


def test_file_lock_keeps_other_processes_out_and_dies_with_its_holder(tmp_path):
    context = multiprocessing.get_context("fork")
    path, ready, leave = str(tmp_path / "x"), context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(path, ready, leave))
    holder.start()
    assert ready.wait(20)
    with (
        pytest.raises(TimeoutError, match=r"x\.lock was held"),
        FcntlContext(path + ".lock", timeout=0.05),
    ):
        pass
    holder.kill()
    with FcntlContext(path + ".lock", timeout=10):
        pass
    holder.join()


def test_readers_share_and_writers_do_not(tmp_path):
    path = str(tmp_path / "x")
    with get_rw_file_lock(path, "read"), get_rw_file_lock(path, "read"):
        writer = FcntlContext(path + ".lock", timeout=0.01)
        with pytest.raises(TimeoutError), writer:
            pass
    lock = get_file_lock(path, "write")
    with lock, pytest.raises(RuntimeError, match="not re-entrant"), lock:
        pass
    with pytest.raises(ValueError, match="op must be"):
        get_file_lock(path, "append")


def test_addresses_ports_and_ids():
    socket.inet_aton(get_ip())
    with socket.socket() as server:
        server.bind(("127.0.0.1", find_free_port("127.0.0.1")))
    assert len({get_task_uid() for _ in range(1000)}) == 1000
    assert get_pid() == os.getpid()


@pytest.mark.parametrize("name", ["lz4", "zlib", "none"])
def test_compression_round_trip(name):
    data = {"obs": np.arange(1000.0), "t": torch.ones(3), "info": [None, "x", (1, 2.5)]}
    packed = get_data_compressor(name)(data)
    back = get_data_decompressor(name)(packed)
    assert np.array_equal(back["obs"], data["obs"])
    assert torch.equal(back["t"], data["t"])
    assert back["info"] == data["info"]
    if name != "none":
        assert isinstance(packed, bytes)
        with pytest.raises(DataError, match="cannot be decompressed"):
            get_data_decompressor(name)(packed[:-9])


def test_unknown_compression():
    for get in (get_data_compressor, get_data_decompressor):
        with pytest.raises(UnknownTypeError, match=r"'rar'.*lz4, zlib"):
            get("rar")


def test_cloud_pickle_wrapper_carries_closures():
    import pickle

    offset = 3
    wrapped = CloudPickleWrapper(lambda x: x + offset)
    assert pickle.loads(pickle.dumps(wrapped)).data(4) == 7


def test_singleton():
    class One(metaclass=SingletonMetaclass):
        def __init__(self, value):
            self.value = value

    class Two(metaclass=SingletonMetaclass):
        pass

    assert One(1) is One(2)
    assert One(3).value == 1
    assert Two() is Two()
    assert isinstance(Two(), Two)


def test_iter_mapping():
    assert list(iter_mapping([1, 2], str)) == ["1", "2"]


@pytest.mark.parametrize(
    ("mode", "wanted"), [("reduce", 0.4), ("add", 0.6), ("multi", 0.05), ("div", 1.0)]
)
def test_scheduler_changes_on_a_plateau(mode, wanted):
    cfg = {"schedule_flag": True, "schedule_mode": mode, "factor": 0.1, "change_range": [0, 1]}
    scheduler = Scheduler(cfg)
    steps = [scheduler.step(metric, 0.5) for metric in (3.0, 2.0, 2.0, 2.0)]
    assert steps == [0.5, 0.5, 0.5, pytest.approx(wanted)]


def test_scheduler_cooldown_direction_and_errors():
    flags = {"schedule_flag": True, "patience": 0}
    cooling = Scheduler({**flags, "cooldown": 2})
    changed = [cooling.step(1.0, 0.5) != 0.5 for _ in range(6)]
    assert changed == [False, True, False, False, True, False]
    rising = Scheduler({**flags, "optimize_mode": "max"})
    assert [rising.step(m, 0.5) != 0.5 for m in (1.0, 2.0, 1.5)] == [False, False, True]
    assert Scheduler().step(1.0, 0.5) == 0.5
    with pytest.raises(ConfigError, match="schedule_mode must be one of"):
        Scheduler({"schedule_mode": "jump"})
    with pytest.raises(ConfigError, match="change_range"):
        Scheduler({"change_range": [1, 0]})


def test_operator_server_settings(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVER_URL", raising=False)
    assert not exist_operator_server()
    with pytest.raises(ConfigError, match="KUBERNETES_SERVER_URL"):
        get_operator_server_kwargs({})
    monkeypatch.setenv("KUBERNETES_SERVER_URL", "di-server:8080")
    monkeypatch.setenv("KUBERNETES_POD_NAMESPACE", "mine")
    assert exist_operator_server()
    kwargs = get_operator_server_kwargs({})
    assert (kwargs["host"], kwargs["port"], kwargs["namespace"]) == ("di-server", 8080, "mine")
    assert get_operator_server_kwargs({"system_addr": "other"})["port"] is None


def test_slurm_helpers(tmp_path, monkeypatch):
    assert node_to_host("SH-IDC1-10-5-38-12") == "10.5.38.12"
    assert node_to_host("127.0.0.1") == "127.0.0.1"
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, line in (("sinfo", "echo cpu"), ("srun", "echo 4321")):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)
    assert find_free_port_slurm("node1") == 4321

"""Whole runs on engines that start their workers: to the goal and to other ends."""

import contextlib
import ctypes
import json
import os
import signal
import threading
import time
from collections import deque
from functools import partial
from operator import methodcaller
from pathlib import Path

import pytest

from ding.entry import parallel_pipeline
from ding.entry.run.status import ask_status
from ding.utils.errors import ConfigError, RunError
from ding.worker.engines.local import LocalCarrier
from tests.entry.parallel_runs import (
    assert_went_on,
    go_on_from_here,
    saved_iteration,
    small_configs,
)

from .harness import documented_engine, kill_process

pytestmark = pytest.mark.timeout(60)


def record():
    with open("run/run.json", encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture(params=["local", "documented"])
def engine(request):
    if request.param == "local":
        return "local"
    documented_engine()
    return dict(type="sqlite", import_names=["documented_engine"])


@contextlib.contextmanager
def as_soon_as(reached, act):
    """Call ``act`` on the run in the main thread once its status satisfies ``reached``."""
    over = threading.Event()
    done = []

    def watch():
        while not over.wait(0.02):
            try:
                with open("run/coordinator.json", encoding="utf-8") as file:
                    status = ask_status(json.load(file))
            except (OSError, ValueError, RunError):
                continue
            if reached(status):
                done.append(status)
                act(status)
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield done
    finally:
        over.set()
        watcher.join()


@pytest.fixture
def kill(engine, monkeypatch):
    """Lets a worker die."""
    if engine != "local":
        return kill_process
    carriers = []
    monkeypatch.setattr(LocalCarrier, "open", lambda carrier: carriers.append(carrier))
    return lambda name: carriers[-1].kill(name)


@pytest.mark.slow
def test_it_trains_to_the_goal(engine, capfd):
    parallel_pipeline(small_configs(engine=engine), 0)
    found = record()
    assert found["status"] == "converged"
    assert found["envstep"] > 0
    assert "ckpt_best.pth.tar" in os.listdir("run/ckpt")
    assert not {"data", "policy", "coordinator.json", "run.db"} & set(os.listdir("run"))
    assert "converged: mean return" in capfd.readouterr().out


@pytest.mark.slow
def test_hosts_that_share_no_folder_leave_all_files_with_the_run(tmp_path, capfd):
    documented_engine()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    modules = ["documented_engine", "tests.worker.engines.far_engine"]
    engine = dict(type="far", import_names=modules, elsewhere=str(elsewhere))
    parallel_pipeline(small_configs(engine=engine), 0)
    assert list(elsewhere.rglob("*")) == []
    files = {str(path.relative_to("run")) for path in Path("run").rglob("*")}
    assert {f"log/{name}/output.txt" for name in ("collector0", "learner0")} <= files
    assert "ckpt/iteration_0.pth.tar" in files
    assert any(name.startswith("log/learner/events.out") for name in files)


@pytest.mark.slow
def test_ctrl_c_saves_and_another_run_goes_on(engine, capfd):
    configs = small_configs(engine=engine, stop_value=501)
    begin = []

    def interrupt(status):
        begin.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    trains = as_soon_as(lambda status: saved_iteration() > 0, interrupt)
    with trains, pytest.raises(SystemExit) as ending:
        parallel_pipeline(configs, 0)
    assert ending.value.code == 130
    assert time.monotonic() - begin[0] < 15
    before = record()
    assert (before["status"], before["reason"]) == ("interrupted", "Ctrl-C")
    go_on_from_here(configs)
    parallel_pipeline(configs, 0)
    assert_went_on()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status", "words"),
    [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")],
)
def test_a_signal_before_the_engine_is_up(number, status, words, monkeypatch, capfd):
    begin = []

    def open_slowly(carrier):
        begin.append(time.monotonic())
        # No look at signals between the two: it comes when the call that blocks has begun.
        calls = partial(getattr(ctypes.CDLL(None), "raise"), number), partial(time.sleep, 20)
        deque(map(methodcaller("__call__"), calls), maxlen=0)

    monkeypatch.setattr(LocalCarrier, "open", open_slowly)
    with pytest.raises(SystemExit) as ending:
        parallel_pipeline(small_configs(engine="local"), 0)
    assert ending.value.code == status
    assert time.monotonic() - begin[0] < 10
    last = capfd.readouterr().out.splitlines()[-1]
    assert last == f"interrupted: {words}, before the run was up"
    assert (record()["status"], record()["reason"]) == tuple(last.split(": "))
    # Its folder is free.
    monkeypatch.setattr(LocalCarrier, "open", lambda carrier: None)
    parallel_pipeline(small_configs(engine="local"), 0)
    assert os.listdir() == ["run"]
    assert record()["status"] == "converged"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["collector0", "learner0"])
def test_one_that_dies_is_replaced_and_the_run_goes_on(engine, kill, name, capfd, caplog):
    configs = small_configs(engine=engine, stop_value=501)
    killed = []

    def let_die(status):
        killed.append(status["train_iter"])
        kill(name)

    def stop(status):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def goes_on(status):
        is_reported = f"{name} lost" in caplog.text  # else it may still seem to run
        running = status["workers"].get(name, {}).get("state") == "running"
        return is_reported and running and status["train_iter"] > killed[0] + 20

    dies = as_soon_as(lambda status: status["train_iter"] >= 5, let_die)
    with dies, as_soon_as(goes_on, stop), pytest.raises(SystemExit):
        parallel_pipeline(configs, 0)
    assert record()["reason"] == "Ctrl-C"
    out = capfd.readouterr()
    assert f"{name} lost" in out.out + out.err  # with its task, if it had one
    assert "starting it again (1 of 5)" in out.out + out.err


@pytest.mark.slow
def test_learners_that_train_together(capfd):
    documented_engine()
    configs = small_configs(engine=dict(type="sqlite", import_names=["documented_engine"]))
    configs[2].learner_gpu_num = 2
    updates = []
    trains = as_soon_as(lambda status: status["train_iter"] >= 10, updates.append)
    configs[0].env.stop_value = 501

    def stop(status):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with trains, as_soon_as(lambda status: updates, stop), pytest.raises(SystemExit):
        parallel_pipeline(configs, 0)
    assert record()["reason"] == "Ctrl-C"
    assert updates[0]["workers"]["learner_aggregator0"]["state"] == "running"


def test_learners_that_train_together_need_processes():
    configs = small_configs(engine="local")
    configs[2].learner_gpu_num = 2
    with pytest.raises(ConfigError, match=r"learner_gpu_num=2: the engine 'local' has no"):
        parallel_pipeline(configs, 0)

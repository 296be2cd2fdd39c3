"""What goes wrong around collector workers."""

import errno
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from easydict import EasyDict

from ding.interaction import Master
from ding.utils import PARALLEL_COLLECTOR_REGISTRY, durations, find_free_port
from ding.utils.errors import CheckpointWriteError, ConfigError
from ding.worker import FlaskFileSystemCollector
from ding.worker.collector.base_parallel_collector import BaseParallelCollector
from ding.worker.collector.comm import collect_task
from ding.worker.engines import shared_folder
from tests.children import wait_for
from tests.worker.collector import parallel_tasks as tasks
from tests.worker.collector.comm.driver import Driver
from tests.worker.collector.parallel_tasks import env_cfg, task_info


def _works_again(driver):
    driver.publish()
    driver.begin(task_id="next")
    metadata, _ = driver.drain()
    assert sum(m["sample_num"] for m in metadata) == 20
    assert driver.ask("collector_close_task")["task_id"] == "next"


@pytest.mark.parametrize("manager", ["base", "subprocess"])
def test_an_env_that_raises_fails_the_task_and_the_next_one_works(driver, manager):
    env = env_cfg(fail_at=300, manager=dict(type=manager))
    driver.begin(env=env)
    failure, seconds = driver.fail()
    assert failure["type"] == "EnvError"
    assert failure["message"].startswith("env 0 (ParallelLineEnv) failed in step()")
    assert "the track broke" in failure["message"]
    assert "Traceback" in failure["traceback"]
    assert seconds < 10
    assert not driver.untold()
    _works_again(driver)


@PARALLEL_COLLECTOR_REGISTRY.register("late")
class Late(BaseParallelCollector):
    """Sends after it was asked to stop, as one that is making its samples then."""

    config = dict(hangs=False)

    def start(self):
        self._ended.wait(20)
        if self._cfg.hangs:
            tasks.RELEASE.wait(20)
        data_id = self._link.new_data_id()
        self.send_stepdata(data_id, {"obs": [1.0]})
        self.send_metadata({"data_id": data_id})

    def get_finish_info(self):
        return {}


def test_a_task_that_is_given_up_leaves_no_samples(driver):
    driver.begin(kind="late")
    _works_again(driver)
    driver.begin(kind="late")
    driver.worker.close()
    assert not driver.untold()


def test_a_collector_that_hung_sends_nothing_to_the_next_task(driver):
    driver.begin(kind="late", hangs=True)
    hung = driver.worker.task
    driver.begin(task_id="next", kind="late")
    tasks.RELEASE.set()
    wait_for(lambda: not hung.hangs, 10)
    *news, _ = driver.ask("collector_data_task", wait=0.1)
    assert not news
    assert not driver.untold()


@pytest.fixture
def short_limits(monkeypatch):
    """A step may take two seconds."""
    monkeypatch.setattr(durations, "STEP_LOOK_AFTER", 0.1)
    monkeypatch.setattr(durations, "COLLECTOR_STEP_LIMIT", 0.5)


@pytest.mark.parametrize("where", ["hang_at", "hang_in_reset"])
def test_an_env_that_hangs_fails_the_task_and_the_next_one_works(driver, short_limits, where):
    driver.begin(env=env_cfg(**{where: 50}))
    failure, seconds = driver.fail()
    assert failure["type"] == "EnvTimeoutError"
    assert failure["message"].startswith("env 0 (ParallelLineEnv, in")
    assert "parallel_tasks.py" in failure["message"]
    assert seconds < 10
    _works_again(driver)


@pytest.mark.slow
def test_a_hang_is_reported_when_the_task_is_closed(driver, short_limits):
    driver.begin(env=env_cfg(hang_at=3))
    driver.ask("collector_data_task", wait=0.3)
    task = driver.task("collector_close_task")
    assert task.status.name == "FAILED"
    assert task.result["type"] == "EnvTimeoutError"
    assert task.result["message"].startswith("env 0 (ParallelLineEnv, in step")
    _works_again(driver)


@pytest.mark.slow
def test_a_hanging_process_of_an_env_fails_the_task_in_time(driver, monkeypatch):
    monkeypatch.setattr(durations, "ENV_PROCESS_LIMIT", 1.0)
    driver.begin(env=env_cfg(hang_at=10, manager=dict(type="subprocess")))
    failure, seconds = driver.fail()
    assert failure["type"].startswith("Env")
    assert "env 0" in failure["message"]
    assert seconds < 10
    _works_again(driver)


def test_a_step_timeout_of_the_config_is_used(driver):
    driver.begin(env=env_cfg(hang_at=10, manager=dict(step_timeout=0.3)))
    failure, seconds = driver.fail()
    assert failure["type"] == "EnvTimeoutError"
    assert "step_timeout=0.3" in failure["message"]
    assert seconds < 10


def test_damaged_weights_are_reported_and_do_not_stop_a_task(driver):
    driver.publish(0.0, 1)
    driver.begin(env=env_cfg(step_time=0.01), update_policy_second=0.05)
    while driver.ask("collector_data_task", wait=0.1)[-1]["policy_iter"] != 1:
        pass
    with open(driver.policy.file("policy_a"), "wb") as stream:
        stream.write(b"nonsense")
    warnings, deadline = [], time.monotonic() + 20
    while not warnings and time.monotonic() < deadline:
        *_, progress = driver.ask("collector_data_task", wait=0.1)
        warnings += [progress["warning"]] if "warning" in progress else []
    assert "policy_a" in warnings[0]
    assert driver.ask("collector_data_task", wait=0.5)[-1]["policy_iter"] == 1


def test_an_evaluation_waits_visibly_for_its_policy(driver):
    driver.begin(eval_flag=True)
    deadline = time.monotonic() + 8
    while driver.ask("collector_data_task", wait=0.05)[-1]["waiting"] != "policy":
        assert time.monotonic() < deadline
    driver.publish(0.0, 2)
    driver.drain()
    assert driver.ask("collector_close_task")["train_iter"] == 2


@pytest.mark.parametrize("evaluate", [False, True])
def test_only_damaged_weights_fail_the_task(driver, monkeypatch, evaluate):
    monkeypatch.setattr(durations, "POLICY_FIRST_WAIT", 0.5)
    with open(driver.policy.file("policy_a"), "wb") as stream:
        stream.write(b"nonsense")
    driver.begin(eval_flag=evaluate)
    failure, _ = driver.fail()
    assert failure["type"] == "CheckpointError"
    assert "policy_a" in failure["message"]
    assert driver.policy.names() == ["policy_a"]


def test_a_full_folder_makes_it_wait_visibly(driver):
    driver.begin(env=env_cfg())
    quota, deadline = 30_000, time.monotonic() + 20
    total, waiting = 0, None
    while waiting != "space" and time.monotonic() < deadline:
        *metadata, progress = driver.ask("collector_data_task", wait=0.1, quota=quota)
        total += sum(m["size"] for m in metadata)
        waiting = progress["waiting"]
    assert waiting == "space"
    *metadata, progress = driver.ask("collector_data_task", wait=0.1, quota=quota)
    assert not metadata
    assert progress["waiting_bytes"] > quota - progress["written"]
    assert 0 < total == progress["written"] <= quota
    assert sum(os.path.getsize(driver.data.file(n)) for n in driver.data.names()) <= quota
    while not metadata and time.monotonic() < deadline:
        *metadata, _ = driver.ask("collector_data_task", wait=0.5, quota=quota + 20_000)
    assert metadata
    assert driver.ask("collector_close_task")["sample_count"] > 0


def test_chunks_fit_into_what_may_be_written(driver):
    driver.begin(env=env_cfg(episodes=100), policy=tasks.policy_cfg())
    quota, sizes, deadline = 0, [], time.monotonic() + 30
    while time.monotonic() < deadline:
        quota += 8_000
        *metadata, progress = driver.ask("collector_data_task", wait=0.05, quota=quota)
        sizes += [m["size"] for m in metadata]
        assert sum(sizes) <= progress["written"] <= quota
        if progress["collector_done"]:
            break
    assert progress["collector_done"]


def test_a_folder_that_cannot_be_written_to_fails_the_task(driver):
    os.rmdir(driver.data.path)
    with open(driver.data.path, "w"):
        pass
    driver.begin()
    failure, _ = driver.fail()
    assert failure["type"] == "CheckpointWriteError"
    assert driver.data.path in failure["message"]


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file/data"):
        FlaskFileSystemCollector(EasyDict(path_data=str(tmp_path / "file" / "data"))).start()


def test_a_start_over_a_running_task_closes_that_one(driver):
    driver.begin(task_id="first", env=env_cfg())
    driver.ask("collector_data_task", wait=0.0)
    assert not driver.ask("collector_close_task")["collector_done"]
    assert driver.worker.task is None
    assert not driver.untold()
    driver.begin(task_id="first", env=env_cfg())
    driver.begin(task_id="second")
    metadata, progress = driver.drain()
    assert progress["task_id"] == "second"
    assert {m["task_id"] for m in metadata} == {"second"}


def test_messages_do_not_pile_up(driver, monkeypatch):
    monkeypatch.setattr(collect_task, "MAX_BACKLOG", 3)
    driver.begin(env=env_cfg())
    driver.ask("collector_data_task", wait=0.0)
    files, deadline = 0, time.monotonic() + 20
    while time.monotonic() < deadline:
        time.sleep(0.2)
        before, files = files, len(driver.data.names())
        if files == before and files > 0:
            break
    assert files <= 6
    assert driver.ask("collector_close_task")["step_count"] > 0


def test_a_lost_master_ends_the_task_and_the_files(tmp_path):
    with Driver(tmp_path, heartbeat_span=0.2) as driver:
        driver.begin(env=env_cfg())
        driver.ask("collector_data_task", wait=0.5)
        # Its server is gone without a goodbye.
        driver.worker.coordinator_lost("the line is dead")
        assert driver.worker.task is None
        wait_for(lambda: not driver.untold())
        assert not driver.worker.failed


def test_what_is_written_after_the_end_is_removed(tmp_path, monkeypatch):
    write, began, goes_on = shared_folder.write_chunk, threading.Event(), threading.Event()

    def slow(*args, **kwargs):
        began.set()
        assert goes_on.wait(30)
        return write(*args, **kwargs)

    monkeypatch.setattr(shared_folder, "write_chunk", slow)
    with Driver(tmp_path) as driver:
        driver.begin(env=env_cfg())
        driver.ask("collector_data_task", wait=0.1)
        assert began.wait(30)
        task = driver.worker.task
        task.close(timeout=0.1)
        assert task.hangs
        goes_on.set()
        wait_for(lambda: not task.hangs)
        assert not driver.untold()


_MASTER = """
import json, sys, time
from ding.interaction import Master

with Master(port=0) as master:
    connection = master.new_connection("c", "127.0.0.1", int(sys.argv[1]))
    connection.connect()
    task = json.load(sys.stdin)
    connection.new_task({"name": "collector_start_task", "task_info": task}).start().join()
    connection.new_task({"name": "collector_data_task", "wait": 5.0}).start().join()
    print("running", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_a_killed_master_is_noticed_and_another_one_may_come(tmp_path):
    with Driver(tmp_path, heartbeat_span=0.2) as driver:
        driver.connection.disconnect()
        port = str(driver.worker.port)
        master = subprocess.Popen(
            [sys.executable, "-c", _MASTER, port], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            out = master.stdin
            out.write(json.dumps(task_info(env=env_cfg())).encode())
            out.close()
            assert master.stdout.readline() == b"running\n"
            task = driver.worker.task
            assert task is not None
        finally:
            master.kill()
            master.wait()
            master.stdout.close()
        deadline = time.monotonic() + 20
        while driver.worker.task is not None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert driver.worker.task is None
        assert task.collector.closed
        assert len(driver.data.names()) <= collect_task.MAX_ANSWER  # what the master had asked for
        driver.connection.connect()
        _works_again(driver)


def test_a_worker_that_cannot_join_says_why(tmp_path):
    folders = dict(path_data=str(tmp_path / "data"), path_policy=str(tmp_path / "policy"))
    with Master(port=0) as no_coordinator:
        address = ["127.0.0.1", no_coordinator.port]
        worker = FlaskFileSystemCollector(EasyDict(coordinator=address, run_key="k", **folders))
        worker.start()
        try:
            assert worker.join(20)
            assert str(no_coordinator.port) in worker.failed
        finally:
            worker.close()


def test_a_worker_with_a_custom_port_is_found_by_the_coordinator(tmp_path):
    folders = dict(path_data=str(tmp_path / "data"), path_policy=str(tmp_path / "policy"))
    worker = FlaskFileSystemCollector(
        EasyDict(port=find_free_port("127.0.0.1"), coordinator=["127.0.0.1", 1], **folders)
    )
    worker.start()
    try:
        assert not worker.join(0.3)
        assert worker.address == f"127.0.0.1:{worker.port}"
    finally:
        worker.close()


def test_a_goodbye_ends_the_task(driver):
    driver.begin(env=env_cfg())
    driver.ask("collector_data_task", wait=0.5)
    assert not driver.worker.join(0)
    driver.connection.disconnect()
    assert driver.worker.task is None
    assert driver.worker.join(0)  # the run is over
    assert driver.worker.failed is None
    driver.connection = driver.master.new_connection("c", "127.0.0.1", driver.worker.port)
    driver.connection.connect()
    _works_again(driver)


def test_closing_ends_everything(tmp_path):
    driver = Driver(tmp_path)
    driver.worker.close()  # was never started
    with Driver(tmp_path) as driver:
        driver.begin(env=env_cfg())
        driver.ask("collector_data_task", wait=0.5)
        driver.worker.close()
        driver.worker.close()
        assert driver.worker.join(0)
        names = [t.name for t in threading.enumerate() if t.is_alive()]
        assert "collector" not in names


class FullDisk:
    """A disk that has room again after ``tries`` failed writes."""

    def __init__(self, monkeypatch, tries):
        self.write, self.left = shared_folder.write_chunk, tries
        monkeypatch.setattr(shared_folder, "write_chunk", self)

    def __call__(self, folder, name, rows):
        self.left -= 1
        if self.left >= 0:
            raise CheckpointWriteError(f"cannot write {name}: no space", errno.ENOSPC)
        return self.write(folder, name, rows)


@pytest.mark.slow
def test_a_full_disk_is_waited_for(driver, monkeypatch):
    monkeypatch.setattr(durations, "DISK_PAUSE", 0.3)
    disk = FullDisk(monkeypatch, tries=10**9)
    driver.publish()
    driver.begin()
    while driver.ask("collector_data_task", wait=0.1)[-1]["waiting"] != "disk":
        pass
    disk.left = 0
    metadata, _ = driver.drain()
    assert sum(m["sample_num"] for m in metadata) == 20


@pytest.mark.slow
def test_a_disk_that_stays_full_fails_the_task(driver, monkeypatch):
    monkeypatch.setattr(durations, "DISK_PAUSE", 0.1)
    monkeypatch.setattr(durations, "DISK_PATIENCE", 0.5)
    FullDisk(monkeypatch, tries=10**9)
    driver.publish()
    begin = time.monotonic()
    driver.begin()
    failure, _ = driver.fail()
    assert failure["type"] == "CheckpointWriteError"
    assert 0.5 < time.monotonic() - begin < 30
    monkeypatch.undo()


def test_a_task_is_closed_while_the_disk_is_full(driver, monkeypatch):
    FullDisk(monkeypatch, tries=10**9)
    driver.publish()
    driver.begin()
    deadline = time.monotonic() + 20
    while driver.ask("collector_data_task", wait=0.1)[-1]["waiting"] != "disk":
        assert time.monotonic() < deadline
    begin = time.monotonic()
    assert driver.ask("collector_close_task")["task_id"]
    assert time.monotonic() - begin < 10
    monkeypatch.undo()
    _works_again(driver)

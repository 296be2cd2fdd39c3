"""Collector workers that a master drives over HTTP."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
import torch
from easydict import EasyDict

from ding.data.chunks import SharedFolder, read_chunk
from ding.interaction import Master
from ding.torch_utils.weights_file import read_weights, write_weights
from ding.utils import PARALLEL_COLLECTOR_REGISTRY, find_free_port, get_data_compressor
from ding.utils.errors import ConfigError
from ding.worker import FlaskFileSystemCollector, create_comm_collector
from ding.worker.collector import _policy_source, _step_watch
from ding.worker.collector.base_parallel_collector import BaseParallelCollector
from ding.worker.collector.comm import collect_task
from tests.worker.collector import parallel_tasks as tasks
from tests.worker.collector.parallel_tasks import env_cfg, task_info
from tests.worker.collector.test_parallel_collector import FINISH_KEYS, _weights


class Driver:
    """A master with one collector worker."""

    def __init__(self, folder, **cfg):
        self.data, self.policy = SharedFolder(f"{folder}/data"), SharedFolder(f"{folder}/policy")
        self.worker = create_comm_collector(
            EasyDict(
                type="flask_fs",
                name="collector0",
                port="auto",
                path_data=self.data.path,
                path_policy=self.policy.path,
                **cfg,
            )
        )
        self.told = set()
        self.master = Master(port=0, heartbeat_tolerance=5, request_retry_waiting=0.05)

    def __enter__(self):
        self.worker.start()
        self.master.start()
        self.connection = self.master.new_connection("c", "127.0.0.1", self.worker.port)
        self.connection.connect()
        return self

    def __exit__(self, *args):
        tasks.RELEASE.set()
        self.master.close()
        self.worker.close()

    def task(self, name, **data):
        task = self.connection.new_task({"name": name, **data})
        task.start().join()
        if name == "collector_data_task" and isinstance(task.result, list):
            self.told |= {m["data_id"] for m in task.result if "data_id" in m}
        return task

    def untold(self):
        """Files in the folder that the master does not know of."""
        return set(self.data.names()) - self.told

    def ask(self, name, **data):
        task = self.task(name, **data)
        assert task.status.name == "COMPLETED", task.result
        return task.result

    def begin(self, **cfg):
        self.ask("collector_start_task", task_info=task_info(**cfg))

    def drain(self, take=True, **data):
        """Metadata until the task is done, and the last progress."""
        found, deadline = [], time.monotonic() + 30
        while time.monotonic() < deadline:
            *metadata, progress = self.ask("collector_data_task", **{"wait": 0.5, **data})
            found += metadata
            if progress["collector_done"]:
                return found, progress
        raise AssertionError("the task does not end")

    def publish(self, value=0.0, policy_iter=0, name="policy_a"):
        write_weights(self.policy, name, _weights(value), {"policy_iter": policy_iter})

    def fail(self, **data):
        """What a data task fails with, and after how many seconds."""
        begin, deadline = time.monotonic(), time.monotonic() + 30
        while time.monotonic() < deadline:
            task = self.task("collector_data_task", **{"wait": 0.5, **data})
            if task.status.name == "FAILED":
                return task.result, time.monotonic() - begin
        raise AssertionError("no data task fails")


@pytest.fixture
def driver(tmp_path):
    tasks.RELEASE.clear()
    with Driver(tmp_path) as driver:
        yield driver


@contextmanager
def _short_limits(monkeypatch, limit=0.5):
    monkeypatch.setattr(_step_watch, "_PATIENCE", 0.1)
    monkeypatch.setattr(_step_watch, "STEP_LIMIT", limit)
    monkeypatch.setattr(_step_watch.StepWatch, "allow", lambda self, cfg: None)
    original = _step_watch.StepWatch.__init__

    def init(self):
        original(self)
        self._limit = limit

    monkeypatch.setattr(_step_watch.StepWatch, "__init__", init)
    yield


# ---------------------------------------------------------------------- the ordinary way


def test_resources(driver):
    resource = driver.ask("resource")
    assert resource["ours"] == 1
    assert {"cpu", "gpu"} <= set(resource)


def test_a_collect_task_from_start_to_end(driver):
    driver.publish(0.0, 7)
    driver.begin()
    metadata, progress = driver.drain()
    assert sum(m["sample_num"] for m in metadata) == 20
    assert {"cur_episode": 4, "cur_sample": 20, "cur_step": 20}.items() <= progress.items()
    assert progress["policy_iter"] == 7
    assert progress["written"] == sum(m["size"] for m in metadata)
    for meta in metadata:
        assert (meta["task_id"], meta["buffer_id"]) == ("task", "buffer")
        assert meta["data_id"].startswith("buffer.collector0.")
        assert os.path.getsize(driver.data.file(meta["data_id"])) == meta["size"]
        assert len(read_chunk(driver.data, meta["data_id"])) == meta["sample_num"]
    info = driver.ask("collector_close_task")
    assert set(info) == FINISH_KEYS | {"task_id", "buffer_id", "episode_info"}
    assert sorted(info["episode_info"]) == [[0, 15.0, 5], [0, 15.0, 5], [1, 15.0, 5], [1, 15.0, 5]]
    assert info["real_episode_count"] == 4
    assert len(driver.data.names()) == len({m["data_id"] for m in metadata})


def test_names_are_never_used_again(driver):
    names = []
    for _ in range(2):
        driver.begin()
        names += [m["data_id"] for m in driver.drain()[0]]
        driver.ask("collector_close_task")
    assert len(set(names)) == len(names)


def test_an_evaluation_keeps_the_weights_that_it_is_of(driver):
    driver.publish(0.25, 9)
    driver.begin(eval_flag=True)
    metadata, progress = driver.drain()
    assert not metadata
    assert progress["cur_episode"] == 3
    driver.publish(0.5, 10)
    info = driver.ask("collector_close_task")
    assert info["policy_iter"] == info["train_iter"] == 9
    state, facts = read_weights(driver.policy, info["eval_policy"])
    assert facts["policy_iter"] == 9
    assert float(next(iter(state["model"].values())).flatten()[0]) == 0.25


def test_weights_are_copied_where_there_are_no_links(driver, monkeypatch):
    def no_links(*args):
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", no_links)
    driver.publish(0.25, 9)
    driver.begin(eval_flag=True)
    driver.drain()
    kept = driver.ask("collector_close_task")["eval_policy"]
    assert read_weights(driver.policy, kept)[1]["policy_iter"] == 9


def test_an_evaluation_that_is_given_up_leaves_no_weights(driver):
    driver.publish()
    driver.begin(eval_flag=True, env=env_cfg(step_time=0.2, n_evaluator_episode=50))
    driver.ask("collector_data_task", wait=0.5)
    assert len(driver.policy.names()) == 2
    driver.begin(task_id="another")
    driver.drain()
    assert driver.policy.names() == ["policy_a"]


def test_a_foreign_master_gets_one_sample_at_a_time(driver):
    driver.begin()
    samples = []
    for _ in range(100):
        answer = driver.ask("collector_data_task")
        assert isinstance(answer, dict)
        if "data_id" not in answer:
            if answer["collector_done"]:
                break
            continue
        assert answer["sample_num"] == 1
        samples += list(read_chunk(driver.data, answer["data_id"]))
    assert len(samples) == 20
    assert set(driver.ask("collector_close_task")) >= FINISH_KEYS


def test_a_foreign_master_is_left_no_copies_of_weights(driver):
    driver.publish()
    driver.begin(eval_flag=True)
    while not driver.ask("collector_data_task")["collector_done"]:
        pass
    assert "eval_policy" not in driver.ask("collector_close_task")
    assert driver.policy.names() == ["policy_a"]


def test_new_weights_reach_the_samples(driver):
    driver.publish(0.0, 1)
    driver.begin(env=env_cfg(step_time=0.01), update_policy_second=0.05)
    driver.publish(0.5, 2)
    seen, deadline = set(), time.monotonic() + 20
    while 2 not in seen and time.monotonic() < deadline:
        *metadata, _ = driver.ask("collector_data_task", wait=0.5)
        for meta in metadata:
            seen |= set(read_chunk(driver.data, meta["data_id"]).columns["collect_iter"].tolist())
    assert 2 in seen


def test_a_user_s_collector_may_send_one_sample_at_a_time(driver):
    @PARALLEL_COLLECTOR_REGISTRY.register("foreign_style", force_overwrite=True)
    class ForeignStyle(BaseParallelCollector):
        def start(self):
            for number in range(3):
                data_id = f"foreign_{number}"
                self.send_stepdata(data_id, {"obs": torch.full((2,), float(number))})
                self.send_metadata({"data_id": data_id, "unroll_len": 1})

        def get_finish_info(self):
            return {"collector_done": True}

    driver.begin(kind="foreign_style")
    metadata, _ = driver.drain()
    assert [m["data_id"] for m in metadata] == ["foreign_0", "foreign_1", "foreign_2"]
    assert all("sample_num" not in m for m in metadata)
    assert driver.ask("collector_close_task")["task_id"] == "task"


@pytest.mark.parametrize("sample", [b"packed", 7])
def test_only_samples_are_sent(driver, sample):
    @PARALLEL_COLLECTOR_REGISTRY.register("foreign_bytes", force_overwrite=True)
    class ForeignBytes(BaseParallelCollector):
        config = dict(compressor="zlib")

        def start(self):
            self.send_stepdata("wrong", sample)

        def get_finish_info(self):
            return {}

    driver.begin(kind="foreign_bytes")
    assert driver.fail()[0]["type"] == "DataError"
    assert not driver.untold()


def test_packed_samples_are_unpacked(driver):
    @PARALLEL_COLLECTOR_REGISTRY.register("packing", force_overwrite=True)
    class Packing(BaseParallelCollector):
        config = dict(compressor="zlib")

        def start(self):
            packed = get_data_compressor(self.compressor)({"obs": torch.ones(2)})
            self.send_stepdata("packed", packed)
            self.send_metadata({"data_id": "packed"})

        def get_finish_info(self):
            return {}

    driver.begin(kind="packing")
    driver.drain()
    (row,) = read_chunk(driver.data, "packed")
    assert torch.as_tensor(row["obs"]).tolist() == [1.0, 1.0]


# ---------------------------------------------------------------------- what is asked wrongly


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (dict(name="collector_jump_task"), "expected 'resource'"),
        (dict(), "expected 'resource'"),
        (dict(name="collector_start_task"), "without task_id, buffer_id, collector_cfg"),
        (dict(name="collector_start_task", task_info={"task_id": 1}), "without buffer_id"),
        (dict(name="collector_data_task"), "collector_start_task"),
        (dict(name="collector_data_task", wait="long"), "collector_start_task"),
        (dict(name="collector_close_task"), "collector_start_task"),
    ],
)
def test_nonsense_fails_with_what_was_expected(driver, data, told):
    task = driver.connection.new_task(data)
    task.start().join()
    assert task.status.name == "FAILED"
    assert told in task.result["message"]


def test_an_unknown_type_is_told_at_once(driver):
    info = task_info(kind="zerglin")
    task = driver.task("collector_start_task", task_info=info)
    assert task.status.name == "FAILED"
    assert "zergling" in task.result["message"]


def test_a_task_without_type_is_told_at_once(driver):
    info = dict(task_id="t", buffer_id="b", collector_cfg={})
    assert "'type'" in driver.task("collector_start_task", task_info=info).result["message"]


@pytest.mark.parametrize("value", ["long", -1, float("nan"), True, [1]])
@pytest.mark.parametrize("name", ["wait", "quota"])
def test_numbers_of_a_data_task_are_checked(driver, name, value):
    driver.begin()
    task = driver.task("collector_data_task", **{name: value})
    assert task.status.name == "FAILED"
    assert f"'{name}'" in task.result["message"]
    driver.drain()  # the task goes on


# ---------------------------------------------------------------------- faults


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


def test_an_env_that_hangs_fails_the_task_and_the_next_one_works(driver, monkeypatch):
    with _short_limits(monkeypatch):
        driver.begin(env=env_cfg(hang_at=50))
        failure, seconds = driver.fail()
    assert failure["type"] == "EnvTimeoutError"
    assert failure["message"].startswith("env 0 (ParallelLineEnv, in step")
    assert seconds < 10
    _works_again(driver)


def test_a_hang_is_told_when_the_task_is_closed(driver, monkeypatch):
    with _short_limits(monkeypatch, 1.5):
        driver.begin(env=env_cfg(hang_at=3))
        driver.ask("collector_data_task", wait=0.3)
        task = driver.task("collector_close_task")
    assert task.status.name == "FAILED"
    assert task.result["type"] == "EnvTimeoutError"
    assert task.result["message"].startswith("env 0 (ParallelLineEnv, in step")
    _works_again(driver)


def test_a_hanging_process_of_an_env_fails_the_task_in_time(driver):
    driver.begin(env=env_cfg(hang_at=10, manager=dict(type="subprocess")))
    failure, seconds = driver.fail()
    assert failure["type"].startswith("Env")
    assert "env 0" in failure["message"]
    assert seconds < 10
    _works_again(driver)


def test_a_step_timeout_of_the_config_is_heeded(driver):
    driver.begin(env=env_cfg(hang_at=10, manager=dict(step_timeout=0.3)))
    failure, seconds = driver.fail()
    assert failure["type"] == "EnvTimeoutError"
    assert "step_timeout=0.3" in failure["message"]
    assert seconds < 10


def test_damaged_weights_are_told_and_do_not_stop_a_task(driver):
    driver.publish(0.0, 1)
    driver.begin(env=env_cfg(step_time=0.01), update_policy_second=0.05)
    driver.ask("collector_data_task", wait=0.5)
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
    monkeypatch.setattr(_policy_source, "FIRST_WAIT", 0.5)
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


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file/data"):
        FlaskFileSystemCollector(EasyDict(path_data=str(tmp_path / "file" / "data")))


def test_a_task_closed_early_leaves_nothing(driver):
    driver.begin(env=env_cfg())
    driver.ask("collector_data_task", wait=0.0)
    time.sleep(0.1)
    info = driver.ask("collector_close_task")
    assert not info["collector_done"]
    assert driver.worker._task is None
    assert not driver.untold()


def test_a_start_over_a_running_task_closes_that_one(driver):
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
        driver.worker._slave._lost_master(
            driver.worker._slave._session, ConnectionError("the line is dead")
        )
        assert driver.worker._task is None
        assert not driver.untold()
        assert not driver.worker.failed


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


def test_a_worker_with_a_port_of_its_own_is_found_by_the_coordinator(tmp_path):
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
    assert driver.worker._task is None
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

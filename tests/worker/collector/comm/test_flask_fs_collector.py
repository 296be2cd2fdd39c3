"""Collector workers that a master drives over HTTP."""

import os
import time

import pytest
import torch

from ding.data.chunks import read_chunk
from ding.torch_utils.weights_file import read_weights
from ding.utils import PARALLEL_COLLECTOR_REGISTRY, get_data_compressor
from ding.worker.collector.base_parallel_collector import BaseParallelCollector
from tests.worker.collector.parallel_tasks import FINISH_KEYS, env_cfg, task_info


def test_resources(driver):
    assert driver.ask("resource").keys() == {"cpu", "gpu", "ours"}
    assert driver.worker.deal_with_resource()["ours"] is True


def test_a_collect_task_from_start_to_end(driver):
    driver.begin()
    names = {m["data_id"] for m in driver.drain()[0]}
    driver.ask("collector_close_task")
    for name in names:
        driver.data.remove(name)
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
    assert len(driver.data.names()) == len({m["data_id"] for m in metadata} - names)


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


def test_an_evaluation_that_is_given_up_leaves_noweights(driver):
    driver.publish()
    driver.begin(eval_flag=True, env=env_cfg(step_time=0.2, n_evaluator_episode=50))
    while len(driver.policy.names()) < 2:
        driver.ask("collector_data_task", wait=0.1)
    driver.begin(task_id="another")
    driver.drain()
    assert driver.policy.names() == ["policy_a"]


def test_the_documented_calls_do_a_task(driver):
    worker = driver.worker
    worker.deal_with_collector_start(task_info())
    metadata, progress = [], {}
    while not progress.get("collector_done"):
        *news, progress = worker.deal_with_collector_data()
        metadata += news
    assert sum(m["sample_num"] for m in metadata) == 20
    assert set(worker.deal_with_collector_close()) >= FINISH_KEYS


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


@PARALLEL_COLLECTOR_REGISTRY.register("packing")
class Packing(BaseParallelCollector):
    """Sends the sample of its config as it is, or one that it packs."""

    config = dict(compressor="zlib", sample=None)

    def start(self):
        packed = get_data_compressor(self.compressor)({"obs": torch.ones(2)})
        self.send_stepdata("packed", self._cfg.sample or packed)
        self.send_metadata({"data_id": "packed"})

    def get_finish_info(self):
        return {}


@pytest.mark.parametrize("sample", [b"wrong", 7])
def test_only_samples_are_sent(driver, sample):
    driver.worker.begin_task(task_info(kind="packing", sample=sample))
    assert driver.fail()[0]["type"] == "DataError"
    assert not driver.untold()


def test_packed_samples_are_unpacked(driver):
    driver.begin(kind="packing")
    driver.drain()
    (row,) = read_chunk(driver.data, "packed")
    assert torch.as_tensor(row["obs"]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (dict(name="collector_jump_task"), "a collector knows resource"),
        (dict(), "a collector knows resource"),
        (dict(name="collector_start_task"), "task_info is a NoneType"),
        (dict(name="collector_start_task", task_info={}), "without task_id, buffer_id"),
        (dict(name="collector_start_task", task_info={"task_id": 1}), "without buffer_id"),
        (dict(name="collector_start_task", task_info=task_info(kind="zerglin")), "zergling"),
        (
            dict(
                name="collector_start_task",
                task_info=dict(task_id="t", buffer_id="b", collector_cfg={}),
            ),
            "'type'",
        ),
        (dict(name="collector_data_task"), "collector_start_task"),
        (dict(name="collector_data_task", wait="long"), "expected a number"),
        (dict(name="collector_close_task"), "collector_start_task"),
    ],
)
def test_nonsense_fails_with_what_was_expected(driver, data, message):
    task = driver.connection.new_task(data)
    task.start().join()
    assert task.status.name == "FAILED"
    assert message in task.result["message"]


def test_news_waits_for_more_as_long_as_it_is_asked_to(driver):
    driver.begin(env=env_cfg(step_time=0.002))
    driver.publish()
    driver.ask("collector_data_task", wait=5.0, gather=0.0)
    begun = time.monotonic()
    *chunks, _ = driver.ask("collector_data_task", wait=5.0, gather=0.4)
    assert time.monotonic() - begun >= 0.4
    assert len(chunks) > 1


@pytest.mark.parametrize("value", ["long", -1, float("nan"), True, [1]])
@pytest.mark.parametrize("name", ["wait", "quota", "gather"])
def test_numbers_of_a_data_task_are_checked(driver, name, value):
    driver.begin()
    task = driver.task("collector_data_task", **{name: value})
    assert task.status.name == "FAILED"
    assert f"'{name}'" in task.result["message"]
    driver.drain()  # the task continues

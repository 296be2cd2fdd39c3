"""A user's comm type without a coordinator: everything stays in one process."""

import queue

import pytest
from easydict import EasyDict

from ding.utils import COMM_COLLECTOR_REGISTRY
from ding.worker import BaseCommCollector, create_comm_collector
from tests.worker.collector import parallel_tasks as tasks
from tests.worker.collector.parallel_tasks import FINISH_KEYS, weights


class Hub:
    """Where workers, learner and coordinator of one process meet."""

    def __init__(self):
        self.policies = {}  # name -> state with "iter"
        self.samples = {}  # name -> samples
        self.messages = queue.Queue()


@COMM_COLLECTOR_REGISTRY.register("in_process", force_overwrite=True)
class InProcessCollector(BaseCommCollector):
    """Collector worker that a `Hub` takes everything from, and gives everything to."""

    def __init__(self, cfg):
        super().__init__(cfg)
        self.hub = cfg.hub

    def get_policy_update_info(self, path):
        return self.hub.policies.get(path)

    def send_stepdata(self, path, stepdata):
        self.hub.samples[path] = stepdata

    def send_metadata(self, metadata):
        self.hub.messages.put({**self.task.ids, **metadata})


@pytest.fixture
def worker():
    cfg = EasyDict(type="in_process", name="collector0")
    cfg["hub"] = Hub()
    worker = create_comm_collector(cfg)
    worker.start()
    yield worker
    worker.close()


def _report(task):
    while not task.poll(wait=1.0).progress.done:
        pass
    return task.report().info


def test_it_collects(worker):
    hub = worker.hub
    hub.policies["policy_a"] = {**weights(0.0), "iter": 3}
    info = _report(worker.begin_task(tasks.task_info()))
    assert set(info) >= FINISH_KEYS
    sent = [hub.messages.get_nowait() for _ in range(hub.messages.qsize())]
    assert sum(message["sample_num"] for message in sent) == 20
    assert {message["buffer_id"] for message in sent} == {"buffer"}
    assert {message["data_id"] for message in sent} == set(hub.samples)
    assert sum(map(len, hub.samples.values())) == 20


def test_it_evaluates(worker):
    worker.hub.policies["policy_a"] = {**weights(0.0), "iter": 3}
    info = _report(worker.begin_task(tasks.task_info(eval_flag=True)))
    assert info["reward_raw"] == [15.0] * 3
    assert info["train_iter"] == 3


def test_what_its_collector_raises_comes_out(worker):
    task = worker.begin_task(tasks.task_info(env=tasks.env_cfg(fail_at=3)))
    with pytest.raises(Exception, match="the track broke"):
        _report(task)
    worker.end_task()
    assert _report(worker.begin_task(tasks.task_info()))["sample_count"] == 20

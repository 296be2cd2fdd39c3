"""A base class of comm collectors that a user wrote, over our parallel collectors."""

from abc import ABC, abstractmethod
from typing import Any

import pytest
from easydict import EasyDict

from ding.utils import COMM_COLLECTOR_REGISTRY, get_task_uid, import_module
from ding.worker.collector.base_parallel_collector import (
    BaseParallelCollector,
    create_parallel_collector,
)
from ding.worker.collector.comm.base_comm_collector import create_comm_collector
from tests.worker.collector import parallel_tasks as tasks


class UserCommCollector(ABC):
    """Gives each collector the functions that it reaches the rest of the system by."""

    def __init__(self, cfg):
        self._cfg = cfg
        self._end_flag = True
        self._collector_uid = get_task_uid()

    @abstractmethod
    def get_policy_update_info(self, path: str) -> Any:
        raise NotImplementedError

    @abstractmethod
    def send_metadata(self, metadata: Any) -> None:
        raise NotImplementedError

    @abstractmethod
    def send_stepdata(self, stepdata: Any) -> None:
        raise NotImplementedError

    def start(self) -> None:
        self._end_flag = False

    def close(self) -> None:
        self._end_flag = True

    @property
    def collector_uid(self) -> str:
        return self._collector_uid

    def _create_collector(self, task_info: dict) -> BaseParallelCollector:
        collector_cfg = EasyDict(task_info["collector_cfg"])
        collector = create_parallel_collector(collector_cfg)
        for item in ["send_metadata", "send_stepdata", "get_policy_update_info"]:
            setattr(collector, item, getattr(self, item))
        return collector


@COMM_COLLECTOR_REGISTRY.register("user_in_memory")
class InMemory(UserCommCollector):
    def __init__(self, cfg):
        super().__init__(cfg)
        self.messages, self.samples = [], {}

    def get_policy_update_info(self, path):
        return {**tasks.weights(0.0), "iter": 3} if path == "policy_a" else None

    def send_metadata(self, metadata):
        self.messages.append(metadata)

    def send_stepdata(self, path, stepdata):
        self.samples[path] = stepdata


@pytest.fixture(params=["theirs", "ours"])
def worker(request):
    cfg = EasyDict(type="user_in_memory", import_names=[])
    if request.param == "ours":
        worker = create_comm_collector(cfg)
    else:
        import_module(cfg.get("import_names", []))
        worker = COMM_COLLECTOR_REGISTRY.build(cfg.type, cfg=cfg)
    worker.start()
    yield worker
    worker.close()


def test_a_collector_with_functions_set_one_by_one(worker):
    collector = worker._create_collector(tasks.task_info())
    collector.start()
    collector.close()
    info = collector.get_finish_info()
    assert set(info) >= tasks.FINISH_KEYS
    assert (info["collector_done"], info["sample_count"], info["train_iter"]) == (True, 20, 3)
    samples = [message for message in worker.messages if "data_id" in message]
    assert {message["data_id"] for message in samples} == set(worker.samples)
    rows = [row for sent in worker.samples.values() for row in sent]
    assert len(rows) == 20
    assert {"obs", "next_obs", "action", "reward", "done"} <= set(rows[0])


def test_identity(worker):
    assert isinstance(worker.collector_uid, str)
    assert type(worker)(EasyDict()).collector_uid != worker.collector_uid

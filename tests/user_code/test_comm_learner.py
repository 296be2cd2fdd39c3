"""Comm learners that users wrote: custom base classes, and subclasses of built-in ones."""

from abc import ABC, abstractmethod
from typing import Any

import pytest
from easydict import EasyDict

from ding.policy import create_policy
from ding.utils import (
    COMM_LEARNER_REGISTRY,
    EasyTimer,
    dist_finalize,
    dist_init,
    get_task_uid,
    import_module,
)
from ding.worker.learner import LearnerHook, create_learner
from ding.worker.learner.comm import BaseCommLearner, create_comm_learner
from tests.worker.learner.comm.rig import learner_cfg, policy_cfg, rows


class UserCommLearner(ABC):
    """As users know it: the learner calls the three functions that are set on it."""

    def __init__(self, cfg: EasyDict) -> None:
        self._cfg = cfg
        self._learner_uid = get_task_uid()
        self._timer = EasyTimer()
        if cfg.multi_gpu:
            self._rank, self._world_size = dist_init()
        else:
            self._rank, self._world_size = 0, 1
        self._multi_gpu = cfg.multi_gpu
        self._end_flag = True

    @abstractmethod
    def send_policy(self, state_dict: dict) -> None:
        raise NotImplementedError

    @abstractmethod
    def get_data(self, batch_size: int) -> list:
        raise NotImplementedError

    @abstractmethod
    def send_learn_info(self, learn_info: dict) -> None:
        raise NotImplementedError

    def start(self) -> None:
        self._end_flag = False

    def close(self) -> None:
        self._end_flag = True
        if self._multi_gpu:
            dist_finalize()

    @property
    def hooks4call(self) -> list:
        raise NotImplementedError

    def _create_learner(self, task_info: dict) -> Any:
        learner_cfg = EasyDict(task_info["learner_cfg"])
        learner = create_learner(
            learner_cfg, dist_info=[self._rank, self._world_size], exp_name=learner_cfg.exp_name
        )
        for item in ["get_data", "send_policy", "send_learn_info"]:
            setattr(learner, item, getattr(self, item))
        policy_cfg = EasyDict(task_info["policy"])
        learner.policy = create_policy(policy_cfg, enable_field=["learn"]).learn_mode
        learner.setup_dataloader()
        return learner


class SendHook(LearnerHook):
    """Gives weights and results on."""

    def __init__(self, *args, ext_args=EasyDict(), **kwargs):
        super().__init__(*args, **kwargs)
        self._freq = ext_args.get("freq", 1)

    def __call__(self, engine):
        if engine.last_iter.val % self._freq == 0:
            state = {"model": engine.policy.state_dict()["model"], "iter": engine.last_iter.val}
            engine.send_policy(state)
            engine.send_learn_info(engine.learn_info)


class _Memory:
    """What both learners of this module do with data, weights and results."""

    def __init__(self, cfg):
        super().__init__(cfg)
        self.batches, self.weights, self.infos = [], [], []
        self._hooks4call = [SendHook("send", 100, position="after_iter", ext_args=EasyDict(freq=1))]

    def get_data(self, batch_size):
        batch = self.batches.pop(0)
        # Functions that load one sample each, as users' data loaders read them.
        return [lambda row=row: row for row in batch[:batch_size]]

    def send_policy(self, state_dict):
        self.weights.append(state_dict["iter"])

    def send_learn_info(self, learn_info):
        self.infos.append(learn_info)

    @property
    def hooks4call(self):
        return self._hooks4call

    @property
    def from_the_base(self):
        """What the base class has for its subclasses."""
        return self._end_flag, self._timer.value, self._learner_uid

    def run(self, task_info):
        with self._timer:
            learner = self._create_learner(task_info)
            for hook in self.hooks4call:
                learner.register_hook(hook)
            learner.start()
        learner.close()
        return learner


@COMM_LEARNER_REGISTRY.register("user_own_base")
class OnTheirBase(_Memory, UserCommLearner):
    pass


@COMM_LEARNER_REGISTRY.register("user_our_base")
class OnOurBase(_Memory, BaseCommLearner):
    pass


@pytest.mark.parametrize("kind", ["user_own_base", "user_our_base"])
def test_trains_and_reports_each_result_once(kind):
    cfg = EasyDict(type=kind, import_names=[], multi_gpu=False)
    import_module(cfg.get("import_names", []))
    worker = create_comm_learner(cfg)
    worker.start()
    assert worker.from_the_base[0] is False
    worker.batches = [list(rows(8, seed=i)) for i in range(5)]
    task = {"learner_cfg": learner_cfg(train_iterations=3), "policy": policy_cfg()}
    learner = worker.run(task)
    assert worker.weights == [0, 1, 2]
    assert [info["learner_step"] for info in worker.infos] == [0, 1, 2]
    assert len(worker.infos[0]["priority_info"]["priority"]) == 8
    assert learner.learn_info["learner_done"]
    worker.close()
    if kind == "user_our_base":
        assert worker.join(0)
        assert worker.failed is None
    has_ended, seconds, uid = worker.from_the_base
    assert has_ended is True
    assert seconds > 0
    assert isinstance(uid, str)


LATE = """
from ding.utils import COMM_LEARNER_REGISTRY
from tests.user_code.test_comm_learner import OnOurBase
COMM_LEARNER_REGISTRY.register("user_late", type("Late", (OnOurBase,), {}))
"""


def test_a_type_is_found_where_import_names_say(tmp_path, monkeypatch):
    with pytest.raises(KeyError, match="user_late"):
        create_comm_learner(EasyDict(type="user_late"))
    (tmp_path / "late_learner.py").write_text(LATE)
    monkeypatch.syspath_prepend(tmp_path)
    worker = create_comm_learner(EasyDict(type="user_late", import_names=["late_learner"]))
    assert isinstance(worker, OnOurBase)
    del COMM_LEARNER_REGISTRY["user_late"]


def test_abstract_methods_of_our_base():
    for name in ("send_policy", "get_data", "send_learn_info", "hooks4call"):
        assert getattr(getattr(BaseCommLearner, name), "__isabstractmethod__", False), name
    with pytest.raises(TypeError, match="abstract"):
        BaseCommLearner(EasyDict(multi_gpu=False))

"""A comm learner of another kind, written as users do: no HTTP, no files."""

import sys
import threading
import types

import pytest
from easydict import EasyDict

from ding.utils import COMM_LEARNER_REGISTRY
from ding.worker import BaseCommLearner, create_comm_learner
from ding.worker.learner import LearnerHook
from tests.worker.learner.comm.rig import learner_cfg, policy_cfg, rows

SOURCE = '''
from ding.utils import COMM_LEARNER_REGISTRY
from ding.worker import BaseCommLearner
from ding.worker.learner import LearnerHook


class ReportHook(LearnerHook):
    def __call__(self, engine):
        engine.send_learn_info(engine.learn_info)
        model = engine.policy.state_dict()["model"]
        engine.send_policy({"model": model, "iter": engine.train_iter})


@COMM_LEARNER_REGISTRY.register("in_process")
class InProcessLearner(BaseCommLearner):
    """Learns from a list that others fill."""

    def __init__(self, cfg):
        super().__init__(cfg)
        self.batches, self.policies, self.infos = [], [], []

    def get_data(self, batch_size):
        return self.batches.pop(0) if self.batches else None

    def send_policy(self, state_dict):
        self.policies.append(state_dict["iter"])

    def send_learn_info(self, learn_info):
        self.infos.append(learn_info)

    @property
    def hooks4call(self):
        return [ReportHook("report", 100, position="after_iter")]

    def work(self, task_info):
        learner = self._create_learner(task_info)
        for hook in self.hooks4call:
            learner.register_hook(hook)
        try:
            with self._timer:  # what subclasses find in the base class
                learner.start()
        finally:
            self.uid, self.seconds = self._learner_uid, self._timer.value
            learner.close()
'''


@pytest.fixture
def own_module():
    module = types.ModuleType("own_comm_learner")
    sys.modules["own_comm_learner"] = module
    exec(SOURCE, module.__dict__)
    yield "own_comm_learner"
    del sys.modules["own_comm_learner"], COMM_LEARNER_REGISTRY["in_process"]


def test_is_found_by_its_type_and_trains(own_module):
    learner = create_comm_learner(EasyDict(type="in_process", import_names=[own_module]))
    assert isinstance(learner, BaseCommLearner)
    learner.start()
    learner.batches = [rows(8, seed=i) for i in range(3)]
    task = {"learner_cfg": learner_cfg(train_iterations=3), "policy": policy_cfg()}
    learner.work(task)
    assert learner.policies == [0, 1, 2]
    assert learner.seconds > 0
    assert learner.uid
    assert [len(info["priority_info"]["priority"]) for info in learner.infos] == [8, 8, 8]
    learner.close()
    assert learner.join(0)
    assert learner.failed is None
    assert not [t for t in threading.enumerate() if t.name == "data-loader"]
    assert all(isinstance(hook, LearnerHook) for hook in learner.hooks4call)


def test_unknown_type_is_reported():
    with pytest.raises(KeyError, match="flask_fss"):
        create_comm_learner(EasyDict(type="flask_fss"))

"""Attributes that a user's policy adds are in its states, through a file and into another one."""

import copy
import random
import threading
from collections import Counter, OrderedDict, deque

import numpy as np
import pytest
import torch
from torch import nn

from ding.model import model_wrap
from ding.policy import DQNPolicy
from ding.utils import read_file, save_file
from ding.worker import BaseLearner, create_learner
from ding.worker.engines.shared_folder import FolderArtifacts
from ding.worker.learner.comm.state_keeper import StateKeeper
from tests.policy.attributes import model_of

OBS = torch.ones(2, 3)


class Mine(DQNPolicy):
    """Has one additional attribute, that `begin` makes and `go_on` changes."""

    begin = staticmethod(lambda policy: None)

    def _init_learn(self):
        super()._init_learn()
        self.mine = type(self).begin(self)


@pytest.fixture
def resumed(make_dqn, tmp_path):
    """``resumed(begin, go_on)``: a policy after `go_on`, and another one with its state."""

    def resumed_(begin, go_on=lambda policy: None, mode="learn_mode", into=Mine):
        Mine.begin = staticmethod(begin)
        policy, other = make_dqn(cls=Mine), make_dqn(cls=into)
        go_on(policy)
        save_file(str(tmp_path / "state"), getattr(policy, mode).state_dict())
        getattr(other, mode).load_state_dict(read_file(str(tmp_path / "state")))
        return policy, other

    return resumed_


def put(value):
    def go_on(policy):
        policy.mine = value

    return go_on


@pytest.mark.parametrize("mode", ["learn_mode", "collect_mode", "eval_mode"])
@pytest.mark.parametrize(
    "value",
    [
        *(7, 2**100, 0.1, True, "text", None, np.float64(0.1), np.int64(3)),
        *([1, [2, "x"]], (1, (None,)), {1: {"a": [2]}}, {1, 2}, frozenset({3}), Counter("aab")),
        *(deque([1, 2, 3], maxlen=3), OrderedDict(b=1, a=2), [], {}),
    ],
)
def test_numbers_texts_and_containers(resumed, value, mode):
    _, other = resumed(lambda policy: 0, put(value), mode)
    assert type(other.mine) is type(value)
    assert other.mine == value
    assert getattr(other.mine, "maxlen", None) == getattr(value, "maxlen", None)
    if isinstance(value, dict):
        assert list(other.mine) == list(value)


@pytest.mark.parametrize(
    "value",
    [torch.arange(3.0), torch.tensor(2), np.eye(3), nn.Parameter(torch.ones(2)), np.array(["a"])],
)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: deque([v]), lambda v: {"a": [v]}])
def test_tensors_and_arrays(resumed, value, wrap):
    def unwrap(mine):
        return (
            mine["a"][0] if isinstance(mine, dict) else mine[0] if isinstance(mine, deque) else mine
        )

    _, other = resumed(lambda policy: None, put(wrap(value)))
    found = unwrap(other.mine)
    assert type(found) is type(value)
    assert found.dtype == value.dtype
    assert found.tolist() == value.tolist()
    assert getattr(found, "requires_grad", False) == getattr(value, "requires_grad", False)


def test_checkpoints_may_be_read_by_torch(make_dqn, tmp_path):
    """As scripts do that load a policy themselves."""
    Mine.begin = staticmethod(lambda policy: None)
    policy, other = make_dqn(cls=Mine), make_dqn(cls=Mine)
    policy.mine = {"eye": np.eye(3), "last": deque([np.float64(0.5)], maxlen=2)}
    save_file(str(tmp_path / "state"), policy.learn_mode.state_dict())
    other.learn_mode.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert other.mine["eye"].tolist() == np.eye(3).tolist()
    assert other.mine["last"] == deque([0.5])


@pytest.mark.parametrize(
    ("begin", "draw"),
    [
        (lambda p: np.random.default_rng(1), lambda g: g.random()),
        (lambda p: np.random.Generator(np.random.MT19937(1)), lambda g: g.random()),
        (lambda p: np.random.Generator(np.random.Philox(1)), lambda g: g.random()),
        (lambda p: np.random.RandomState(1), lambda g: g.normal()),
        (lambda p: random.Random(1), lambda g: g.gauss(0, 1)),
        (lambda p: torch.Generator().manual_seed(1), lambda g: torch.rand(1, generator=g).item()),
    ],
)
def test_random_generators(resumed, begin, draw):
    policy, other = resumed(begin, lambda policy: draw(policy.mine))
    assert [draw(policy.mine) for _ in range(3)] == [draw(other.mine) for _ in range(3)]


def test_networks_that_come_later_are_copies_of_ones_that_exist(resumed):
    def go_on(policy):
        for scale in (1, 2):
            network = copy.deepcopy(model_of(policy)).requires_grad_(False).eval()
            nn.init.constant_(next(network.parameters()), scale)
            policy.mine.append(network)
        policy.mine.append(policy.mine[0])
        policy.mine.append(model_of(policy))

    policy, other = resumed(lambda policy: deque(maxlen=9), go_on)
    for network, copied in zip(policy.mine, other.mine, strict=True):
        torch.testing.assert_close(network(OBS)["logit"], copied(OBS)["logit"], rtol=0, atol=0)
        assert network.training == copied.training
    assert not next(other.mine[0].parameters()).requires_grad
    assert other.mine[0] is other.mine[2] is not other.mine[1]
    assert other.mine[3] is model_of(other)


def test_networks_optimisers_and_schedules_of_ones_own(resumed):
    def begin(policy):
        network = nn.Linear(3, 1)
        optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        policy.network, policy.schedule = network, schedule
        return {"one": optimizer}

    def learn(policy):
        for _ in range(3):
            policy.mine["one"].zero_grad()
            policy.network(OBS).sum().backward()
            policy.mine["one"].step()
            policy.schedule.step()

    policy, other = resumed(begin, learn)
    for one in (policy, other):
        learn(one)
    torch.testing.assert_close(
        list(policy.network.parameters()), list(other.network.parameters()), rtol=0, atol=0
    )
    assert other.schedule.last_epoch == 6


def test_target_networks_count_their_updates(resumed):
    def begin(policy):
        copied = copy.deepcopy(model_of(policy))
        return model_wrap(copied, "target", update_type="assign", update_kwargs={"freq": 3})

    policy, other = resumed(begin, lambda policy: policy.mine.update(model_of(policy)))
    assert other.mine.update_count == policy.mine.update_count == 1


def test_objects_with_a_state_are_asked_for_it(resumed):
    class Mean:
        total = 0.0

        def state_dict(self):
            return {"total": self.total}

        def load_state_dict(self, state):
            self.total = state["total"]

    _, other = resumed(lambda policy: Mean(), lambda policy: setattr(policy.mine, "total", 3.0))
    assert other.mine.total == 3.0


def test_settings_follow_the_config_unless_training_has_changed_them(make_dqn):
    Mine.begin = staticmethod(lambda policy: policy.learn_mode.get_attribute("batch_size"))
    policy, other = make_dqn(cls=Mine), make_dqn(cls=Mine, learn=dict(batch_size=32))
    other.learn_mode.load_state_dict(policy.learn_mode.state_dict())
    assert other.mine == 32
    policy.mine = 16
    policy.learn_mode.set_attribute("gamma", 0.5)  # of a base class, but changed by hand
    state = policy.learn_mode.state_dict()
    other.learn_mode.load_state_dict(state)
    assert (other.mine, other.learn_mode.get_attribute("gamma")) == (16, 0.5)


def test_what_cannot_be_saved_is_named_and_the_rest_is_saved(resumed):
    def go_on(policy):
        policy.count = 3

    policy, other = resumed(lambda policy: [threading.Lock()], go_on)
    assert policy.learn_mode.get_attribute("unsaved_attributes") == ["mine[0] (a _thread.lock)"]
    assert other.count == 3


def test_states_without_it_load_and_ours_have_none(make_dqn):
    Mine.begin = staticmethod(lambda policy: [1])
    plain, own = make_dqn(), make_dqn(cls=Mine)
    state = plain.learn_mode.state_dict()
    assert "own_state" not in state
    own.mine.append(2)
    own.learn_mode.load_state_dict(state)
    assert own.mine == [1, 2]
    plain.learn_mode.load_state_dict(own.learn_mode.state_dict())
    assert not hasattr(plain, "mine")


def test_functions_and_classes_are_no_state(make_dqn):
    Mine.begin = staticmethod(lambda policy: [torch.nn.functional.relu, nn.Linear, torch.float32])
    policy = make_dqn(cls=Mine)
    assert policy.learn_mode.get_attribute("unsaved_attributes") == []


def test_a_learner_that_is_started_again_goes_on_with_it(make_dqn, tmp_path):
    def begin(policy):
        policy.lock = threading.Lock()
        return deque(maxlen=2)

    Mine.begin = staticmethod(begin)
    policies, warnings = [make_dqn(cls=Mine), make_dqn(cls=Mine)], []
    learners = [
        create_learner(
            BaseLearner.default_config(), policy=policy.learn_mode, exp_name=str(tmp_path)
        )
        for policy in policies
    ]
    policies[0].mine.append(copy.deepcopy(model_of(policies[0])))
    nn.init.constant_(next(policies[0].mine[0].parameters()), 3)
    artifacts = FolderArtifacts(str(tmp_path))
    keeper = StateKeeper(artifacts, "learner_state", print, writes=True)
    keeper(learners[0])
    keeper.save()
    StateKeeper(artifacts, "learner_state", warnings.append, writes=True)(learners[1])
    (line,) = warnings
    assert "attribute lock (a _thread.lock) is not part of the learner's state" in line
    outputs = [policy.mine[0](OBS)["logit"] for policy in policies]
    torch.testing.assert_close(*outputs, rtol=0, atol=0)
    for learner in learners:
        learner.close()

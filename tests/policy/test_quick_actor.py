"""Acting on arrays gives what the network gives, whatever happened to the network since."""

import copy

import numpy as np
import pytest
import torch

from ding.model import DQN
from ding.model.template.array_q import ArrayQ
from ding.policy import DQNPolicy

OBS = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


def q_values(policy, obs=OBS):
    with torch.no_grad():
        return policy._model(torch.from_numpy(obs).float())["logit"]


def assert_follows(policy):
    expected = q_values(policy)
    for output in (
        policy.collect_mode.batched.forward(OBS, eps=0.0),
        policy.eval_mode.batched.forward(OBS),
    ):
        torch.testing.assert_close(torch.as_tensor(output["logit"]), expected)
        assert output["action"].tolist() == expected.argmax(-1).tolist()


@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("head_layer_num", [0, 2])
def test_outputs_are_the_networks(make_dqn, dueling, head_layer_num):
    model = dict(obs_shape=3, action_shape=4, dueling=dueling, head_layer_num=head_layer_num)
    policy = make_dqn(model=model)
    assert ArrayQ.applies(policy._model)
    assert_follows(policy)
    rows = policy.collect_mode.forward({5: torch.from_numpy(OBS[0])}, eps=0.0)
    assert rows[5]["action"].tolist() == [int(q_values(policy)[0].argmax())]


def test_other_dtypes_are_cast(make_dqn):
    policy = make_dqn()
    obs = np.arange(12).reshape(4, 3)
    logit = policy.eval_mode.batched.forward(obs)["logit"]
    torch.testing.assert_close(torch.as_tensor(logit), q_values(policy, obs))


def _step(policy):
    policy._model(torch.from_numpy(OBS))["logit"].sum().backward()
    policy._optimizer.step()


def _load(policy):
    state = {name: value + 1 for name, value in policy._model.state_dict().items()}
    policy._model.load_state_dict(state)


def _assign(policy):
    state = {name: value + 1 for name, value in policy._model.state_dict().items()}
    policy._model.load_state_dict(state, assign=True)


def _replace_data(policy):
    for parameter in policy._model.parameters():
        parameter.data = parameter.data * 2 + 1


def _replace_parameter(policy):
    layer = policy._model.encoder.main[0]
    layer.weight = torch.nn.Parameter(layer.weight.detach() * 2)


def _hook(policy):
    policy._model.head.register_forward_hook(lambda *args: {"logit": args[2]["logit"] * -3})


def _own_forward(policy):
    layer = policy._model.encoder.main[0]
    layer.forward = lambda x: torch.ones(len(x), layer.out_features)


@pytest.mark.parametrize(
    "change", [_step, _load, _assign, _replace_data, _replace_parameter, _hook, _own_forward]
)
def test_changes_of_the_network_are_followed(make_dqn, change):
    policy = make_dqn()
    assert_follows(policy)
    before = q_values(policy)
    change(policy)
    assert not torch.allclose(q_values(policy), before)
    assert_follows(policy)


def test_a_copy_acts_on_its_own_network(make_dqn):
    policy = make_dqn()
    assert_follows(policy)
    other = copy.deepcopy(policy)
    _load(other)
    assert_follows(other)
    assert_follows(policy)


def test_a_subclass_s_core_is_called(make_dqn):
    class Ones(DQNPolicy):
        def _forward_collect_batch(self, obs, eps):
            return {"action": torch.ones(len(obs), dtype=torch.int64)}

    policy = make_dqn(cls=Ones)
    assert policy.collect_mode.batched.forward(OBS, eps=0.0)["action"].tolist() == [1] * 8


def test_explores_as_often_as_asked(make_dqn):
    policy = make_dqn()
    obs = np.zeros((200, 3), np.float32)
    best = int(q_values(policy, obs)[0].argmax())
    forward = policy.collect_mode.batched.forward
    drawn = np.concatenate([forward(obs, eps=0.5)["action"] for _ in range(50)])
    assert (drawn != best).mean() == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("model", [torch.nn.Linear(3, 2), DQN([3, 84, 84], 2), DQN(3, [2, 2])])
def test_other_networks_act_themselves(model):
    assert not ArrayQ.applies(model)

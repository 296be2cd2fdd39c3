import copy

import pytest
import torch
from torch import nn

from ding.model import DQN
from ding.model.common.head import DiscreteHead, DuelingHead, MultiHead
from ding.utils.errors import ConfigError


@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("obs_shape", [4, [4], (3, 44, 44)])
def test_q_values_of_one_action_dimension(obs_shape, dueling, noise):
    model = DQN(obs_shape, 3, [8, 8, 6], dueling=dueling, noise=noise)
    shape = [obs_shape] if isinstance(obs_shape, int) else obs_shape
    output = model(torch.randn(5, *shape))
    assert list(output) == ["logit"]
    assert output["logit"].shape == (5, 3)
    assert isinstance(model.head, DuelingHead if dueling else DiscreteHead)


def test_several_action_dimensions_give_a_list():
    model = DQN(4, [2, 3])
    assert isinstance(model.head, MultiHead)
    assert [part.shape for part in model(torch.randn(5, 4))["logit"]] == [(5, 2), (5, 3)]
    assert DQN(4, [2])(torch.randn(5, 4))["logit"].shape == (5, 2)


def test_every_parameter_is_trained():
    model = DQN(4, [2, 3], norm_type="LN", dropout=0.1, head_hidden_size=10, head_layer_num=2)
    sum(part.square().mean() for part in model(torch.randn(5, 4))["logit"]).backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("action_shape", [3, [2, 3]])
def test_init_bias_is_where_the_values_start(action_shape, dueling, noise):
    model = DQN(4, action_shape, dueling=dueling, init_bias=50.0, noise=noise).eval()
    logit = model(torch.zeros(5, 4))["logit"]
    for part in logit if isinstance(logit, list) else [logit]:
        torch.testing.assert_close(part, torch.full_like(part, 50.0), atol=2, rtol=0)


def test_names_of_the_state_are_encoder_and_head():
    assert {name.split(".")[0] for name in DQN(4, 2).state_dict()} == {"encoder", "head"}


def test_a_batch_gives_what_its_rows_give():
    model = DQN(4, 2)
    x = torch.randn(8, 4)
    rows = torch.cat([model(row[None])["logit"] for row in x])
    torch.testing.assert_close(model(x)["logit"], rows)


def test_the_same_seed_gives_the_same_model():
    models = []
    for _ in range(2):
        torch.manual_seed(0)
        models.append(DQN(4, 2))
    for a, b in zip(models[0].parameters(), models[1].parameters()):
        assert torch.equal(a, b)


def test_survives_copy_and_training_step():
    model = DQN(4, 2, activation=nn.Tanh())
    twin = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(8, 4)
    before = twin(x)["logit"]
    model(x)["logit"].square().mean().backward()
    optimizer.step()
    assert not torch.equal(model(x)["logit"], before)
    assert torch.equal(twin(x)["logit"], before)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"obs_shape": [4, 4]}, r"obs_shape is \[4, 4\]"),
        ({"action_shape": 0}, "action_shape is 0"),
        ({"action_shape": []}, r"action_shape is \[\]"),
        ({"encoder_hidden_size_list": []}, "hidden_size_list"),
    ],
)
def test_arguments_that_cannot_be_built_are_named(kwargs, message):
    with pytest.raises(ConfigError, match=message):
        DQN(**{"obs_shape": 4, "action_shape": 2, **kwargs})

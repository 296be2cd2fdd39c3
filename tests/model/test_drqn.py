import pytest
import torch
from torch import nn

from ding.model import DRQN, model_wrap
from ding.model.common.recurrent import StatefulGRU
from ding.utils.errors import ConfigError


@pytest.mark.parametrize("res_link", [True, False])
@pytest.mark.parametrize("dueling", [True, False])
def test_a_sequence_gives_what_its_steps_give(res_link, dueling):
    model = DRQN(4, 2, [8, 6], res_link=res_link, dueling=dueling)
    obs = torch.randn(5, 3, 4)
    output = model({"obs": obs, "prev_state": None}, saved_state_timesteps=[2, 5])
    assert output["logit"].shape == (5, 3, 2)
    assert output["hidden_state"].shape == (5, 3, 6)
    state = [None] * 3
    for t in range(5):
        step = model({"obs": obs[t], "prev_state": state}, inference=True)
        state = step["next_state"]
        torch.testing.assert_close(step["logit"], output["logit"][t])
        if t + 1 in (2, 5):
            saved = output["saved_state"][(2, 5).index(t + 1)]
            for got, want in zip(saved, state):
                torch.testing.assert_close(got, want)
    assert len(output["next_state"]) == 3
    assert output["next_state"][0]["h"].shape == (1, 1, 6)


def test_states_of_environments_are_independent():
    torch.manual_seed(0)
    model = DRQN(4, 2, [8, 6])
    wrapper = model_wrap(model_wrap(model, "hidden_state", state_num=2), "argmax_sample")
    obs = torch.randn(2, 4)
    first = wrapper.forward({"obs": obs}, inference=True)["logit"]
    wrapper.reset(data_id=[0])
    second = wrapper.forward({"obs": obs}, inference=True)["logit"]
    torch.testing.assert_close(second[0], first[0])
    assert not torch.allclose(second[1], first[1])


def test_images_and_several_action_dimensions():
    model = DRQN((3, 44, 44), [2, 3], [4, 4, 8], head_hidden_size=10)
    output = model({"obs": torch.rand(3, 2, 3, 44, 44), "prev_state": [None, None]})
    assert [part.shape for part in output["logit"]] == [(3, 2, 2), (3, 2, 3)]


def test_arguments_that_do_not_fit_are_named():
    with pytest.raises(ConfigError, match="lstm_type is 'tree'"):
        DRQN(4, 2, lstm_type="tree")
    with pytest.raises(ConfigError, match="give head_hidden_size=64"):
        DRQN(4, 2, res_link=True, head_hidden_size=32)
    model = DRQN(4, 2)
    with pytest.raises(ValueError, match="3 states for a batch of 2 rows"):
        model({"obs": torch.zeros(1, 2, 4), "prev_state": [None] * 3})
    with pytest.raises(ValueError, match="rising steps from 1 to 1"):
        model({"obs": torch.zeros(1, 2, 4), "prev_state": None}, saved_state_timesteps=[2])


def test_a_gru_goes_on_like_its_cell():
    torch.manual_seed(0)
    layer = StatefulGRU(3, 4)
    x, h = torch.randn(5, 2, 3), torch.randn(2, 4)
    states = [{"h": row.view(1, 1, 4)} for row in h]
    output, after = layer(x, states)
    whole, batched = layer(x, {"h": h.unsqueeze(0)})
    for step, row in zip(x, output):
        h = nn.GRUCell.forward(layer, step, h)
        assert torch.allclose(row, h, atol=1e-6)
    assert torch.equal(whole, output)
    assert torch.allclose(torch.cat([one["h"] for one in after], 1)[0], h, atol=1e-6)
    assert torch.equal(batched["h"], torch.cat([one["h"] for one in after], 1))
    assert torch.equal(layer(x, None)[0], layer(x, [None, None])[0])

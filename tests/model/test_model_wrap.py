import pytest
import torch
from torch import nn

from ding.model import DQN, model_wrap, register_wrapper, wrapper_name_map
from ding.model.wrapper.model_wrappers import BaseModelWrapper, IModelWrapper
from ding.utils.errors import UnknownTypeError


class Action(nn.Module):
    def forward(self, obs):
        return {"action": torch.zeros(500, 2), "q": obs}


def test_no_name_is_the_plain_wrapper():
    model = DQN(4, 2)
    wrapper = model_wrap(model)
    assert type(wrapper) is BaseModelWrapper
    x = torch.randn(3, 4)
    assert torch.equal(wrapper.forward(x)["logit"], model(x)["logit"])


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownTypeError, match=r"'argmax'; did you mean 'argmax_sample'\?.*target"):
        model_wrap(DQN(4, 2), "argmax")


def test_a_wrapper_of_ones_own(monkeypatch):
    monkeypatch.setattr(
        "ding.model.wrapper.model_wrappers.wrapper_name_map", dict(wrapper_name_map)
    )

    class Double(IModelWrapper):
        def forward(self, *args, **kwargs):
            return 2 * super().forward(*args, **kwargs)

    register_wrapper("double", Double)
    model = nn.Identity()
    assert model_wrap(model_wrap(model, "double"), "double").forward(torch.ones(1)) == 4
    with pytest.raises(TypeError, match="expected a subclass of IModelWrapper"):
        register_wrapper("identity", nn.Identity)


def test_noise_stays_in_its_ranges():
    torch.manual_seed(0)
    noisy = model_wrap(
        Action(),
        "action_noise",
        noise_type="gauss",
        noise_kwargs={"mu": 0.0, "sigma": 0.5},
        noise_range={"min": -0.6, "max": 0.8},
        action_range={"min": -0.4, "max": 2},
    )
    output = noisy.forward("q")
    assert output["q"] == "q"
    assert output["action"].min() == pytest.approx(-0.4)
    assert output["action"].max() == pytest.approx(0.8)


def test_noise_without_ranges():
    torch.manual_seed(0)
    noisy = model_wrap(Action(), "action_noise", noise_kwargs={"sigma": 3.0}, action_range=None)
    action = noisy.forward(None)["action"]
    assert action.std() == pytest.approx(3.0, abs=0.4)

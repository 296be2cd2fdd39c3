import pytest
import torch
from torch import nn

from ding.model import MAVAC, VAC, FCEncoder, IMPALAConvEncoder
from ding.utils.errors import ConfigError

HYBRID = {"action_type_shape": 3, "action_args_shape": 2}


def test_observations_by_name():
    x, team = torch.zeros(5, 4), {"agent_state": torch.zeros(5, 3, 4)}
    assert VAC(4, 2)(x=x, mode="compute_critic")["value"].shape == (5,)
    assert MAVAC(4, 6, 2, 3)(inputs=team, mode="compute_actor")["logit"].shape == (5, 3, 2)


@pytest.mark.parametrize("share_encoder", [True, False])
@pytest.mark.parametrize("mode", VAC.mode)
@pytest.mark.parametrize(
    ("action_shape", "action_space"),
    [
        (3, "discrete"),
        ([2, 3], "discrete"),
        (2, "continuous"),
        ([2], "continuous"),
        (HYBRID, "hybrid"),
    ],
)
def test_outputs_of_every_mode(action_shape, action_space, mode, share_encoder):
    model = VAC(4, action_shape, action_space, share_encoder=share_encoder)
    x = torch.randn(5, 4)
    output = model(x, mode=mode)
    keys = {"compute_actor": {"logit"}, "compute_critic": {"value"}}
    assert output.keys() == keys.get(mode, {"logit", "value"})
    if "value" in output:
        assert output["value"].shape == (5,)
    if "logit" in output:
        assert _shapes(output["logit"]) == {
            "3": (5, 3),
            "[2, 3]": [(5, 2), (5, 3)],
            "2": {"mu": (5, 2), "sigma": (5, 2)},
            "[2]": {"mu": (5, 2), "sigma": (5, 2)},
        }.get(
            str(action_shape),
            {"action_type": (5, 3), "action_args": {"mu": (5, 2), "sigma": (5, 2)}},
        )


def _shapes(value):
    if isinstance(value, dict):
        return {key: _shapes(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_shapes(part) for part in value]
    return tuple(value.shape)


@pytest.mark.parametrize("share_encoder", [True, False])
def test_modes_agree(share_encoder):
    model = VAC(4, 2, share_encoder=share_encoder)
    x = torch.randn(5, 4)
    both = model(x, mode="compute_actor_critic")
    assert torch.equal(both["logit"], model(x, mode="compute_actor")["logit"])
    assert torch.equal(both["value"], model(x, mode="compute_critic")["value"])


def test_losses_reach_their_own_parameters_only():
    model = VAC(4, 2, share_encoder=False)
    model(torch.randn(5, 4), mode="compute_critic")["value"].sum().backward()
    assert all(p.grad is not None for p in model.critic.parameters())
    assert all(p.grad is None for p in model.actor.parameters())


def test_a_shared_encoder_learns_from_both():
    model = VAC(4, 2)
    assert model.actor[0] is model.critic[0] is model.encoder
    output = model(torch.randn(5, 4), mode="compute_actor_critic")
    (output["logit"].sum() + output["value"].sum()).backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("share_encoder", [True, False])
def test_names_of_the_state(share_encoder):
    model = VAC(4, 2, share_encoder=share_encoder)
    state = model.state_dict()
    encoders = {"encoder"} if share_encoder else {"actor_encoder", "critic_encoder"}
    assert {name.split(".")[0] for name in state} == encoders | {"actor_head", "critic_head"}


def test_separate_encoders_start_from_different_weights():
    model = VAC(4, 2, share_encoder=False)
    x = torch.randn(5, 4)
    assert not torch.equal(model.actor_encoder(x), model.critic_encoder(x))


@pytest.mark.parametrize("share_encoder", [True, False])
def test_an_encoder_of_ones_own(share_encoder):
    encoder = FCEncoder(4, [10])
    model = VAC(4, 2, share_encoder=share_encoder, encoder=encoder)
    assert model.actor[0] is encoder
    assert (model.critic[0] is encoder) == share_encoder
    assert model(torch.randn(5, 4), mode="compute_actor_critic")["value"].shape == (5,)
    plain = nn.Linear(4, 7)
    model = VAC(4, 2, encoder=plain, encoder_hidden_size_list=[7])
    assert model(torch.randn(5, 4), mode="compute_actor")["logit"].shape == (5, 2)


def test_images():
    x = torch.rand(2, 3, 44, 44)
    model = VAC((3, 44, 44), 4, encoder_hidden_size_list=[4, 4, 8])
    assert model(x, mode="compute_actor_critic")["logit"].shape == (2, 4)
    impala = VAC((3, 44, 44), 4, encoder_hidden_size_list=[4, 8], impala_cnn_encoder=True)
    assert isinstance(impala.encoder, IMPALAConvEncoder)
    assert impala(x, mode="compute_actor_critic")["logit"].shape == (2, 4)


def test_head_sizes_are_free():
    model = VAC(4, 2, actor_head_hidden_size=20, critic_head_hidden_size=30, actor_head_layer_num=2)
    assert model(torch.randn(5, 4), mode="compute_actor_critic")["value"].shape == (5,)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"action_space": "discret"}, "action_space is 'discret'; expected one of"),
        ({"action_space": "hybrid"}, "needs a mapping of action_type_shape"),
        ({"action_space": "continuous", "sigma_type": "x"}, "sigma_type is 'x'"),
        ({"encoder": "conv"}, "expected a torch.nn.Module instance"),
    ],
)
def test_arguments_that_cannot_be_built_are_named(kwargs, message):
    with pytest.raises(ConfigError, match=message):
        VAC(4, 2, **kwargs)


def test_an_unknown_mode_is_named():
    with pytest.raises(ValueError, match=r"mode is 'actor'; expected one of .*compute_actor"):
        VAC(4, 2)(torch.zeros(1, 4), mode="actor")

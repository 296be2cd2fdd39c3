"""Networks of policies for data sets."""

import pytest
import torch
from torch import nn

from ding.model import BCQ, EDAC, ContinuousQVAC
from ding.model.template.qac_dist import EnsembleLinear, EnsembleMLP
from ding.utils.errors import ConfigError


def test_an_ensemble_is_as_many_single_networks():
    many = EnsembleMLP(3, [4, 8, 8], 2, nn.ReLU())
    x = torch.randn(3, 5, 4)
    for e in range(3):
        alone = nn.Sequential(
            nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)
        )
        with torch.no_grad():
            for (layer, *_), theirs in zip(many.pred, alone[::2]):
                theirs.weight.copy_(layer.weight.view(3, -1, theirs.in_features)[e])
                theirs.bias.copy_(layer.bias.view(3, -1)[e])
        assert torch.allclose(many(x)[e], alone(x[e]), atol=1e-6)
        assert torch.allclose(many(x[0])[e], alone(x[0]), atol=1e-6)


def test_an_ensemble_starts_as_linear_layers_do():
    layer = EnsembleLinear(200, 16, 16)
    assert layer.weight.abs().max() <= 0.25
    assert layer.weight.std().item() == pytest.approx(0.25 / 3**0.5, rel=0.05)
    assert not torch.equal(layer.weight[:16], layer.weight[16:32])


def test_edac():
    model = EDAC(4, [2], ensemble_num=5, critic_head_layer_num=2, twin_critic=True)
    obs, action = torch.randn(7, 4), torch.rand(7, 2)
    mu, sigma = model(obs, mode="compute_actor")["logit"]
    assert mu.shape == sigma.shape == (7, 2)
    q_value = model({"obs": obs, "action": action}, mode="compute_critic")["q_value"]
    assert q_value.shape == (5, 7)
    each = {"obs": obs.expand(5, -1, -1), "action": action.expand(5, -1, -1)}
    assert torch.allclose(model(each, mode="compute_critic")["q_value"], q_value)
    assert len(list(model.critic.parameters())) == 6  # weights and biases of three layers
    again = EDAC(4, 2, ensemble_num=5, critic_head_layer_num=2)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(each, mode="compute_critic")["q_value"][0], q_value[0])


def test_continuous_qvac():
    model = ContinuousQVAC(4, 2)
    obs, action = torch.randn(7, 4) * 50, torch.rand(7, 2)
    mu, sigma = model(obs, mode="compute_actor")["logit"]
    assert bool((mu.abs() <= 1).all())
    assert torch.equal(sigma[0], sigma[6])
    q_value = model({"obs": obs, "action": action}, mode="compute_critic")["q_value"]
    assert [q.shape for q in q_value] == [(7,), (7,)]
    value = model(obs, mode="compute_value")["v_value"]
    assert value.shape == (7,)
    value.sum().backward()
    assert any(p.grad is not None for p in model.critic.parameters())
    assert all(p.grad is None for p in model.actor.parameters())


def test_bcq():
    model = BCQ([4], 2, [8], [8, 8], vae_hidden_dims=[8], phi=0.1)
    obs, action = torch.randn(7, 4), torch.rand(7, 2) * 2 - 1
    inputs = {"obs": obs, "action": action}
    changed = model(inputs, mode="compute_actor")["action"]
    assert bool(((changed - action).abs() <= 0.1 + 1e-6).all() and (changed.abs() <= 1).all())
    q_value = model(inputs, mode="compute_critic")["q_value"]
    assert [q.shape for q in q_value] == [(7,), (7,)]
    encoded = model(inputs, mode="compute_vae")
    assert encoded["recons_action"].shape == (7, 2)
    assert encoded["mu"].shape == encoded["sigma"].shape == (7, 4)
    assert model({"obs": obs}, mode="compute_vae")["recons_action"].shape == (7, 2)
    assert model(obs, mode="compute_eval")["action"].shape == (7, 2)


def test_bcq_chooses_what_the_first_critic_likes_best():
    model = BCQ(1, 1, [4], [4], vae_hidden_dims=[4], phi=0.0)
    torch.manual_seed(0)
    drawn = model.vae.draw(torch.ones(model.candidates, 1))
    torch.manual_seed(0)
    action = model(torch.ones(1, 1), mode="compute_eval")["action"]
    inputs = {"obs": torch.ones(model.candidates, 1), "action": drawn}
    best = model(inputs, mode="compute_critic")["q_value"][0].argmax()
    assert torch.equal(action[0], drawn[best])


def test_mistakes():
    with pytest.raises(ConfigError, match="ensemble_num is 0"):
        EDAC(4, 2, ensemble_num=0)
    with pytest.raises(ConfigError, match="norm_type"):
        EDAC(4, 2, norm_type="LN")
    with pytest.raises(ConfigError, match="obs_shape"):
        BCQ([3, 8, 8], 2)
    with pytest.raises(ValueError, match="compute_nothing"):
        BCQ(4, 2)(torch.zeros(1, 4), mode="compute_nothing")

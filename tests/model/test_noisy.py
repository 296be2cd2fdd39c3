import pytest
import torch
from torch.nn import functional as F

from ding.model import DQN, model_wrap
from ding.torch_utils.network import NoiseLinearLayer, set_noise_mode

X = torch.ones(5, 4)


def is_noisy(model):
    """Whether two forward passes of one input differ."""
    first, second = model(X), model(X)
    if isinstance(first, dict):
        first, second = first["logit"], second["logit"]
    return not torch.equal(first, second)


@pytest.fixture(params=["layer", "model"])
def model(request):
    return NoiseLinearLayer(4, 3) if request.param == "layer" else DQN(4, 3, noise=True)


def test_noise_follows_the_training_mode(model):
    assert is_noisy(model.train())
    assert not is_noisy(model.eval())


def test_noise_mode_holds_in_both_modes(model):
    set_noise_mode(model, True)
    assert is_noisy(model.train())
    assert is_noisy(model.eval())
    set_noise_mode(model, False)
    assert not is_noisy(model.train())
    assert not is_noisy(model.eval())
    set_noise_mode(model, None)
    assert is_noisy(model.train())


def test_without_noise_a_layer_is_linear():
    layer = NoiseLinearLayer(4, 3).eval()
    torch.testing.assert_close(layer(X), F.linear(X, layer.weight_mu, layer.bias_mu))
    assert layer.weight_sigma.unique().item() == pytest.approx(0.4 / 2)


def test_noise_mode_reaches_through_wrappers():
    wrapper = model_wrap(DQN(4, 3, noise=True).eval(), "argmax_sample")
    set_noise_mode(wrapper, True)
    assert is_noisy(wrapper)


def test_one_draw_of_noise_holds_for_the_whole_batch():
    out = NoiseLinearLayer(4, 3)(X)
    torch.testing.assert_close(out, out[:1].expand(5, 3))


def test_the_seed_decides_the_noise(model):
    outputs = []
    for _ in range(2):
        torch.manual_seed(3)
        outputs.append(model(X))
    assert str(outputs[0]) == str(outputs[1])


def test_statistics_of_the_noise():
    """The mean is that without noise; the variance is that of the products of the draws."""
    torch.manual_seed(0)
    layer = NoiseLinearLayer(4, 1000, sigma0=1.0)
    x = torch.ones(1, 4)
    with torch.no_grad():
        draws = torch.stack([layer(x)[0] for _ in range(300)])
        mean = layer.eval()(x)[0]
    sigma = 1.0 / 2
    expected_abs = (2 / torch.pi) ** 0.5
    # Var of sum_i f(e_i) f(e_j) over inputs i: 4 E|e|^2, and of the bias: E|e|.
    variance = sigma**2 * (4 * expected_abs**2 + expected_abs)
    assert (draws - mean).mean().item() == pytest.approx(0, abs=0.02)
    assert (draws - mean).var().item() == pytest.approx(variance, rel=0.15)


def test_noise_is_learned_and_not_part_of_the_state(model):
    out = model(X)
    (out["logit"] if isinstance(out, dict) else out).square().sum().backward()
    sigmas = [p for name, p in model.named_parameters() if "sigma" in name]
    assert sigmas
    assert all(p.grad.abs().sum() > 0 for p in sigmas)
    assert set(model.state_dict()) == {name for name, _ in model.named_parameters()}

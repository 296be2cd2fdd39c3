"""Network blocks."""

import pytest
import torch
from torch import nn

from ding.torch_utils import (
    MLP,
    DataParallel,
    NoiseLinearLayer,
    ResBlock,
    ResFCBlock,
    Transformer,
    build_activation,
    build_normalization,
    conv2d_block,
    fc_block,
    get_num_params,
    is_differentiable,
    noise_block,
)
from ding.torch_utils.model_helper import set_training


@pytest.mark.parametrize("norm_type", [None, "BN", "LN"])
@pytest.mark.parametrize("activation", [None, nn.ReLU()])
@pytest.mark.parametrize("make", [fc_block, noise_block])
def test_linear_blocks(make, activation, norm_type) -> None:
    block = make(3, 5, activation, norm_type, True, 0.2)
    out = block(torch.randn(4, 3))
    assert out.shape == (4, 5)
    is_differentiable(out.sum(), block)
    assert len(block) == 2 + (activation is not None) + (norm_type is not None)


@pytest.mark.parametrize("norm_type", [None, "BN", "LN", "IN", "GN"])
@pytest.mark.parametrize("pad_type", ["zero", "reflect", "replication"])
def test_conv_block(pad_type: str, norm_type: str | None) -> None:
    block = conv2d_block(
        3, 4, 3, 2, 1, pad_type=pad_type, activation=nn.ReLU(), norm_type=norm_type,
        num_groups_for_gn=2,
    )  # fmt: skip
    out = block(torch.randn(2, 3, 8, 8))
    assert out.shape == (2, 4, 4, 4)
    is_differentiable(out.sum(), block)
    with pytest.raises(ValueError, match="'mirror'"):
        conv2d_block(3, 4, 3, pad_type="mirror")


def test_mlp() -> None:
    mlp = MLP(3, 8, 2, 3, activation=nn.ReLU(), norm_type="LN", use_dropout=True)
    kinds = [type(module).__name__ for module in mlp]
    assert kinds == ["Linear", "LayerNorm", "ReLU", "Dropout"] * 3
    assert mlp(torch.randn(5, 3)).shape == (5, 2)
    bare = MLP(3, 8, 2, 2, nn.Linear, nn.ReLU(), "LN", output_activation=False, output_norm=False)
    assert [type(module).__name__ for module in bare] == ["Linear", "LayerNorm", "ReLU", "Linear"]
    zero = MLP(3, 8, 2, 1, last_linear_layer_init_zero=True)
    assert zero(torch.randn(5, 3)).abs().sum() == 0
    noisy = MLP(3, 8, 2, 2, layer_fn=NoiseLinearLayer, activation=nn.ReLU())
    assert isinstance(noisy[0], NoiseLinearLayer)
    with pytest.raises(ValueError, match="layer_num=0"):
        MLP(3, 8, 2, 0)


def test_noise_is_factorised() -> None:
    layer = NoiseLinearLayer(6, 5, sigma0=1.0)
    with torch.no_grad():
        layer.weight_mu.zero_()
        layer.bias_mu.zero_()
    torch.manual_seed(0)
    bias = layer(torch.zeros(1, 6))
    torch.manual_seed(0)
    weight = layer(torch.eye(6)) - bias
    assert torch.linalg.matrix_rank(weight, rtol=1e-4).item() == 1
    # |sgn(x) sqrt|x||^2 of a standard normal has mean E|x| = sqrt(2 / pi).
    wide = NoiseLinearLayer(1, 100_000, sigma0=1.0)
    with torch.no_grad():
        noise = wide(torch.zeros(1, 1)) - wide.bias_mu
    assert noise.square().mean().item() == pytest.approx((2 / torch.pi) ** 0.5, abs=0.01)


@pytest.mark.parametrize(
    ("res_type", "width", "size"), [("basic", 4, 8), ("bottleneck", 4, 8), ("downsample", 6, 4)]
)
def test_res_block(res_type: str, width: int, size: int) -> None:
    block = ResBlock(4, res_type=res_type, out_channels=width)
    out = block(torch.randn(2, 4, 8, 8))
    assert out.shape == (2, width, size, size)
    is_differentiable(out.sum(), block)


def test_res_block_options() -> None:
    with pytest.raises(ValueError, match="'wide'"):
        ResBlock(4, res_type="wide")
    with pytest.raises(ValueError, match="keeps 4 channels"):
        ResBlock(4, out_channels=8)
    block = ResFCBlock(4, norm_type=None, dropout=0.1)
    is_differentiable(block(torch.randn(2, 4)).sum(), block)


def test_names_are_looked_up() -> None:
    assert isinstance(build_activation("leakyrelu"), nn.LeakyReLU)
    assert build_activation("relu", inplace=True).inplace is True
    with pytest.raises(ValueError, match="'tanh'"):
        build_activation("tanh", inplace=True)
    assert isinstance(build_activation("Leaky_ReLU"), nn.LeakyReLU)
    assert isinstance(build_activation("silu"), nn.SiLU)
    with pytest.raises(KeyError, match=r"'reul': did you mean 'relu'.*'celu', 'elu', 'gelu'"):
        build_activation("reul")
    assert build_normalization("BN", 2) is nn.BatchNorm2d
    assert build_normalization("LN") is nn.LayerNorm
    with pytest.raises(KeyError, match="'XN'"):
        build_normalization("XN", 1)
    with pytest.raises(KeyError, match="dim None"):
        build_normalization("BN")


def test_num_params_and_data_parallel() -> None:
    model = nn.Linear(3, 2)
    model.note = "here"
    assert get_num_params(model) == 8
    assert DataParallel(model).note == "here"
    with pytest.raises(AttributeError):
        DataParallel(model).missing  # noqa: B018


def test_is_differentiable_finds_a_parameter_out_of_reach() -> None:
    model = nn.ModuleList([nn.Linear(2, 1), nn.Linear(2, 1)])
    with pytest.raises(AssertionError, match=r"1\.weight"):
        is_differentiable(model[0](torch.ones(1, 2)).sum(), model)
    with pytest.raises(AssertionError, match="zero_grad"):
        is_differentiable(model[1](torch.ones(1, 2)).sum(), [model[0], model[1]])


@pytest.mark.parametrize(
    "make",
    [
        lambda name: fc_block(3, 5, name),
        lambda name: noise_block(3, 5, name),
        lambda name: conv2d_block(3, 5, 1, activation=name),
        lambda name: MLP(3, 8, 2, 3, activation=name),
        lambda name: ResBlock(4, name),
        lambda name: ResFCBlock(4, name),
        lambda name: Transformer(3, 4, 4, 4, layer_num=1, activation=name),
    ],
)
def test_blocks_take_activations_by_name(make) -> None:
    assert any(isinstance(layer, nn.Softsign) for layer in make("softsign").modules())
    with pytest.raises(KeyError, match="did you mean 'softsign'"):
        make("softsing")


def test_training_is_set_in_all_layers_and_by_custom_methods():
    class Frozen(nn.Linear):
        def train(self, mode=True):
            return super().train(False)

    patched = nn.Dropout()
    calls = []
    patched.train = calls.append
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(), Frozen(2, 2)), patched)
    model.register_module("absent", None)
    for training in (False, True):
        set_training(model, training)
        assert [m.training for m in model.modules() if m is not patched] == [
            *(training, training, training, training, False)
        ]
    assert calls == [False, True]

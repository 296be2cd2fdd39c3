import pytest
import torch
from torch import nn

from ding.model.common import ConvEncoder, FCEncoder, IMPALAConvEncoder, build_encoder
from ding.model.common.encoder import IMPALACnnDownStack, IMPALACnnResidualBlock
from ding.utils.errors import ConfigError, DataError


@pytest.mark.parametrize("options", [{}, {"dropout": 0.1}, {"norm_type": "LN"}])
def test_vector_encoder_gives_the_last_size(options):
    encoder = FCEncoder(5, [16, 8], **options)
    assert encoder(torch.randn(3, 5)).shape == (3, 8)
    assert encoder(torch.randn(2, 3, 5)).shape == (2, 3, 8)
    assert encoder.output_size == 8


def test_vector_encoder_with_residual_blocks():
    encoder = FCEncoder(5, [16, 16, 16], res_block=True)
    assert encoder(torch.randn(3, 5)).shape == (3, 16)
    with pytest.raises(ConfigError, match=r"one width.*\[16, 8\]"):
        FCEncoder(5, [16, 8], res_block=True)


@pytest.mark.parametrize("sizes", [[8, 8, 12], [8, 8, 8, 20], [8, 8, 8, 8, 20]])
@pytest.mark.parametrize("norm_type", [None, "BN", "LN"])
def test_image_encoder_gives_the_last_size(sizes, norm_type):
    encoder = ConvEncoder((3, 44, 44), sizes, norm_type=norm_type, layer_norm=True)
    assert encoder(torch.randn(2, 3, 44, 44)).shape == (2, sizes[-1])
    assert encoder.training


def test_image_encoder_does_not_touch_running_statistics_when_built():
    encoder = ConvEncoder((3, 44, 44), [8, 8, 8], norm_type="BN")
    norms = [m for m in encoder.modules() if isinstance(m, nn.BatchNorm2d)]
    assert norms
    assert all(m.num_batches_tracked == 0 for m in norms)


def test_image_encoder_takes_other_kernels():
    encoder = ConvEncoder((1, 10, 10), [4, 6], kernel_size=[3], stride=[2], padding=[1])
    assert encoder(torch.zeros(2, 1, 10, 10)).shape == (2, 6)


def test_impala_encoder_takes_bytes_and_scales_them():
    encoder = IMPALAConvEncoder((3, 33, 30), channels=(4, 8), outsize=16)
    image = torch.randint(256, (2, 3, 33, 30), dtype=torch.uint8)
    out = encoder(image)
    assert out.shape == (2, 16)
    assert (out >= 0).all()
    torch.testing.assert_close(out, encoder(image.float()))


@pytest.mark.parametrize("make", [ConvEncoder, IMPALAConvEncoder])
def test_features_and_gradients_do_not_depend_on_the_memory_layout(make):
    torch.manual_seed(0)
    encoder, images = make((3, 44, 44)).double(), torch.rand(4, 3, 44, 44).double()
    with torch.no_grad():
        features = encoder(images)  # as they come
    learned = encoder(images)  # channels last
    torch.testing.assert_close(learned, features)
    learned.square().sum().backward()
    bias = encoder.mid.bias if make is ConvEncoder else encoder.dense.bias
    before, step = bias.grad.clone(), 1e-6
    with torch.no_grad():
        bias[0] += step
        change = (encoder(images).square().sum() - features.square().sum()) / step
    assert before[0].item() == pytest.approx(change.item(), rel=1e-3, abs=1e-4)


def test_impala_parts():
    block = IMPALACnnResidualBlock(4, batch_norm=True)
    assert block(torch.randn(2, 4, 5, 5)).shape == (2, 4, 5, 5)
    stack = IMPALACnnDownStack(3, nblock=1, out_channel=6)
    for shape in [(3, 9, 8), (3, 1, 2)]:
        assert stack(torch.randn(2, *shape)).shape[1:] == stack.output_shape(shape)
    norm = stack.firstconv.weight.flatten(1).norm(dim=1)
    torch.testing.assert_close(norm, torch.ones(6))


@pytest.mark.parametrize(
    ("obs_shape", "cls"),
    [(4, FCEncoder), ([4], FCEncoder), ((4,), FCEncoder), ([3, 40, 40], ConvEncoder)],
)
def test_the_observation_shape_picks_the_encoder(obs_shape, cls):
    assert isinstance(build_encoder(obs_shape, [8, 8, 8]), cls)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: build_encoder([4, 4], [8]), r"obs_shape is \[4, 4\]; expected an int"),
        (lambda: FCEncoder([3, 8, 8], [8]), "FCEncoder: obs_shape"),
        (lambda: ConvEncoder([4], [8, 8, 8]), "ConvEncoder: obs_shape"),
        (lambda: IMPALAConvEncoder([4]), "IMPALAConvEncoder: obs_shape"),
        (lambda: FCEncoder(4, []), "hidden_size_list is"),
        (lambda: FCEncoder(4, [8, -1]), "hidden_size_list is"),
        (lambda: ConvEncoder([3, 5, 5], [8, 8, 8]), "too small for these kernels"),
        (lambda: ConvEncoder([3, 40, 40], [8, 8]), "at least that many sizes"),
        (lambda: ConvEncoder([3, 40, 40], [8, 8, 8, 4, 9]), r"\[4\] between convolutions"),
    ],
)
def test_shapes_that_cannot_be_built_are_named(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


def test_an_observation_of_another_shape_is_named():
    with pytest.raises(DataError, match=r"shape \[8, 5\] came; expected \[batch, 4\]"):
        FCEncoder(4, [8])(torch.zeros(8, 5))
    with pytest.raises(DataError, match=r"expected \[batch, 3, 40, 40\]"):
        ConvEncoder([3, 40, 40], [8, 8, 8])(torch.zeros(2, 4, 40, 40))


def test_an_observation_of_another_dtype_is_named():
    with pytest.raises(DataError, match=r"float64 came; expected torch.float32"):
        FCEncoder(4, [8])(torch.zeros(8, 4, dtype=torch.float64))

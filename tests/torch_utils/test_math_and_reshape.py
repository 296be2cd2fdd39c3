"""Covariance and folding of dimensions."""

import numpy as np
import pytest
import torch

from ding.torch_utils.math_helper import cov
from ding.torch_utils.reshape_helper import fold_batch, unfold_batch, unsqueeze_repeat


@pytest.mark.parametrize("options", [{}, {"bias": True}, {"ddof": 0}, {"rowvar": True}])
def test_cov_equals_numpy(options: dict) -> None:
    x = np.random.default_rng(0).normal(size=(6, 4))
    want = np.cov(x, **{"rowvar": False, **options})
    np.testing.assert_allclose(cov(torch.from_numpy(x), **options), want)


def test_weighted_cov_equals_numpy() -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(6, 4)), rng.random(6)
    got = cov(torch.from_numpy(x), aweights=torch.from_numpy(weight))
    np.testing.assert_allclose(got, np.cov(x, rowvar=False, aweights=weight))


@pytest.mark.parametrize("ndims", [0, 1, 2])
def test_fold_and_unfold(ndims: int) -> None:
    x = torch.arange(24).reshape(2, 3, 4)
    folded, batch = fold_batch(x, ndims)
    assert folded.dim() == ndims + 1
    assert torch.equal(unfold_batch(folded, batch), x)


def test_fold_needs_enough_dimensions() -> None:
    with pytest.raises(ValueError, match="nonbatch_ndims=3"):
        fold_batch(torch.ones(2, 2), 3)


@pytest.mark.parametrize(("dim", "shape"), [(0, (5, 2, 3)), (1, (2, 5, 3)), (-1, (2, 3, 5))])
def test_unsqueeze_repeat(dim: int, shape: tuple[int, ...]) -> None:
    assert unsqueeze_repeat(torch.ones(2, 3), 5, dim).shape == shape

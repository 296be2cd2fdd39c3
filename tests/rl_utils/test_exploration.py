"""Epsilon schedules, action noise, value squashing."""

import math

import pytest
import torch

from ding.rl_utils import (
    GaussianNoise,
    OUNoise,
    create_noise_generator,
    get_epsilon_greedy_fn,
    inv_symlog,
    symlog,
    value_inv_transform,
    value_transform,
)


def test_exponential_schedule() -> None:
    eps = get_epsilon_greedy_fn(0.9, 0.1, 100)
    assert eps(0) == pytest.approx(0.9)
    assert eps(100) == pytest.approx(0.1 + 0.8 / math.e)
    assert eps(10**6) == pytest.approx(0.1)


def test_linear_schedule() -> None:
    eps = get_epsilon_greedy_fn(0.9, 0.1, 100, "linear")
    assert [eps(step) for step in (0, 50, 100, 500)] == pytest.approx([0.9, 0.5, 0.1, 0.1])


def test_bad_schedules() -> None:
    with pytest.raises(ValueError, match="'cosine'"):
        get_epsilon_greedy_fn(1.0, 0.1, 100, "cosine")
    with pytest.raises(ValueError, match="decay=0"):
        get_epsilon_greedy_fn(1.0, 0.1, 0)


def test_gaussian_noise() -> None:
    torch.manual_seed(0)
    noise = create_noise_generator("gauss", {"mu": 2.0, "sigma": 0.5})
    assert isinstance(noise, GaussianNoise)
    drawn = noise((100_000,), "cpu")
    assert drawn.mean().item() == pytest.approx(2.0, abs=0.02)
    assert drawn.std().item() == pytest.approx(0.5, abs=0.02)


def test_ou_noise_follows_its_process() -> None:
    noise = create_noise_generator("ou", {"mu": 1.0, "sigma": 0.0, "theta": 0.5, "dt": 0.1})
    assert isinstance(noise, OUNoise)
    assert noise((2,), "cpu").tolist() == pytest.approx([0.05, 0.05])
    assert noise((2,), "cpu").tolist() == pytest.approx([0.0975, 0.0975])
    noise.reset()
    assert noise((2,), "cpu", mu=0.0).tolist() == [0.0, 0.0]
    noise.x0 = 1.0
    assert noise.x0 == 1.0
    assert noise((2,), "cpu").tolist() == [1.0, 1.0]


def test_ou_noise_takes_a_new_shape() -> None:
    noise = OUNoise(x0=None)
    assert noise((2, 3), "cpu").shape == (2, 3)
    assert noise((4,), "cpu").shape == (4,)


def test_unknown_noise() -> None:
    with pytest.raises(KeyError, match="pink"):
        create_noise_generator("pink", {})


@pytest.mark.parametrize(
    ("there", "back"), [(value_transform, value_inv_transform), (symlog, inv_symlog)]
)
def test_squashing_inverts(there, back) -> None:
    x = torch.tensor([-300.0, -1.0, 0.0, 0.5, 100.0], dtype=torch.float64)
    torch.testing.assert_close(back(there(x)), x)
    assert there(x).abs().max() < 25

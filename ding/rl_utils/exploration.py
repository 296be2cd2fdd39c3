"""Epsilon schedules and action noise."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch

from ding.utils.types import Config


def get_epsilon_greedy_fn(
    start: float, end: float, decay: int, type_: str = "exp"
) -> Callable[[int], float]:
    """Schedule of ε-greedy exploration, from ``start`` down to ``end``.

    Args:
        decay: ``'linear'``: step at which ``end`` is reached. ``'exp'``: number of steps in which
            the distance to ``end`` shrinks by the factor e.
        type_: ``'linear'`` or ``'exp'``.

    Returns:
        A function from the step to epsilon.

    Example:

        >>> from ding.rl_utils import get_epsilon_greedy_fn
        >>> epsilon = get_epsilon_greedy_fn(start=0.9, end=0.1, decay=100, type_="linear")
        >>> epsilon(0), epsilon(50), epsilon(1000)
        (0.9, 0.5, 0.1)
    """
    if type_ not in ("linear", "exp"):
        raise ValueError(f"got type_={type_!r}: expected 'linear' or 'exp'")
    if decay <= 0:
        raise ValueError(f"got decay={decay}: expected a positive number of steps")
    if type_ == "exp":
        return lambda step: end + (start - end) * math.exp(-step / decay)
    return lambda step: end + (start - end) * max(0.0, 1 - step / decay)


class BaseNoise(ABC):
    """Base class of action noise."""

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def __call__(self, shape: tuple[int, ...], device: str) -> torch.Tensor:
        """Draw noise of the given shape."""


class GaussianNoise(BaseNoise):
    """Independent Gaussian noise, float32.

    Args:
        mu: Mean.
        sigma: Standard deviation, 0 or more.

    Raises:
        ValueError: ``sigma`` is negative.
    """

    def __init__(self, mu: float = 0.0, sigma: float = 1.0) -> None:
        super().__init__()
        if sigma < 0:
            raise ValueError(f"got sigma={sigma}: a standard deviation is not negative")
        self._mu = mu
        self._sigma = sigma

    def __call__(self, shape: tuple[int, ...], device: str) -> torch.Tensor:
        return torch.randn(shape, device=device) * self._sigma + self._mu


class OUNoise(BaseNoise):
    """Ornstein-Uhlenbeck noise, correlated in time.

    Args:
        mu: Long-term mean.
        sigma: Scale of the noise.
        theta: Rate of reversion to the mean.
        dt: Time between samples.
        x0: Initial value; None for zeros.
    """

    def __init__(
        self,
        mu: float = 0.0,
        sigma: float = 0.3,
        theta: float = 0.15,
        dt: float = 1e-2,
        x0: float | torch.Tensor | None = 0.0,
    ) -> None:
        super().__init__()
        self._mu = mu
        self._alpha = theta * dt
        self._beta = sigma * math.sqrt(dt)
        self._x0 = x0
        self.reset()

    def reset(self) -> None:
        """Reset the process to its initial value."""
        self._x = self._x0

    def __call__(
        self, shape: tuple[int, ...], device: str, mu: float | None = None
    ) -> torch.Tensor:
        if self._x is None or (isinstance(self._x, torch.Tensor) and self._x.shape != shape):
            self._x = torch.zeros(shape, device=device)
        target = self._mu if mu is None else mu
        drift = self._alpha * (target - self._x)
        self._x = self._x + drift + self._beta * torch.randn(shape, device=device)
        return self._x

    @property
    def x0(self) -> float | torch.Tensor | None:
        return self._x0

    @x0.setter
    def x0(self, _x0: float | torch.Tensor | None) -> None:
        """Set the initial value and reset the process."""
        self._x0 = _x0
        self.reset()


_NOISES: dict[str, Callable[..., BaseNoise]] = {"gauss": GaussianNoise, "ou": OUNoise}


def create_noise_generator(noise_type: str, noise_kwargs: Config) -> BaseNoise:
    """Build noise by name.

    Args:
        noise_type: ``'gauss'`` or ``'ou'`` (Ornstein-Uhlenbeck).
        noise_kwargs: Arguments of `GaussianNoise` or `OUNoise`.

    Raises:
        KeyError: The name is unknown.
    """
    if noise_type not in _NOISES:
        raise KeyError(f"got noise_type {noise_type!r}: expected one of {sorted(_NOISES)}")
    return _NOISES[noise_type](**noise_kwargs)

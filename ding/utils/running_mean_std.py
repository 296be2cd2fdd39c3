"""Running mean and standard deviation of a stream of numbers."""

import math
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from ding.utils.types import SavedState, State

if TYPE_CHECKING:
    import torch
    from numpy.typing import ArrayLike

Obs = TypeVar("Obs")
Act = TypeVar("Act")
Rew = TypeVar("Rew")
#: Float64 in numpy's arrays and scalars, float32 in tensors.
Moment: TypeAlias = "np.ndarray | np.float64 | torch.Tensor"


class RunningMeanStd:
    """Running mean and standard deviation, updated with the moments of batches.

    Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing sample
    variances" (1979). All computations use float64, for precision in long runs and with large
    offsets.

    Args:
        epsilon: Weight of the initial guess (mean 0, variance 1).
        shape: Shape of one item.
        device: For ``cpu``, `mean` and `std` are float64 arrays (numpy scalars for shape ``()``);
            for another device, float32 tensors on it.
    """

    def __init__(
        self,
        epsilon: float = 1e-4,
        shape: tuple[int, ...] = (),
        device: "torch.device | str" = "cpu",
    ) -> None:
        self._epsilon = epsilon
        self._shape = tuple(shape)
        self._device = device
        self.reset()

    def reset(self) -> None:
        """Reset to the initial guess."""
        self._mean = np.zeros(self._shape)
        self._var = np.ones(self._shape)
        self._count = float(self._epsilon)

    def update(self, x: "ArrayLike | torch.Tensor") -> None:
        """Add a batch ``[N, *shape]`` (array, tensor or sequence).

        If an item is a single number, ``[N]`` is accepted for ``[N, 1]``, and a number for a batch
        of one.
        """
        batch = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x, dtype=np.float64)
        if math.prod(self._shape) == 1 and (batch.ndim == 0 or batch.size == len(batch)):
            batch = batch.reshape(-1, *self._shape)
        if batch.ndim == 0 or batch.shape[1:] != self._shape:
            raise ValueError(f"expected a batch of [N, *{self._shape}], got {batch.shape}")
        if len(batch):
            self.merge(len(batch), batch.mean(axis=0), batch.var(axis=0))

    def merge(self, count: float, mean: np.ndarray | float, variance: np.ndarray | float) -> None:
        """Add ``count`` (at least one) items, given their mean and population variance."""
        total = self._count + count
        shift = mean - self._mean
        squares = self._var * self._count + variance * count
        self._var = (squares + shift**2 * (self._count * count / total)) / total
        self._mean = self._mean + shift * (count / total)
        self._count = total

    @property
    def mean(self) -> Moment:
        """The mean, in the shape of one item; a copy."""
        return self._out(self._mean)

    @property
    def std(self) -> Moment:
        """The standard deviation; at least 1e-4, so that it can be a divisor."""
        return self._out(np.sqrt(np.maximum(self._var, 1e-8)))

    def state_dict(self) -> State:
        """The state as plain numbers, which ``torch.load`` can read."""
        return {"mean": self._mean.tolist(), "var": self._var.tolist(), "count": self._count}

    def load_state_dict(self, state: SavedState) -> None:
        """Restore a saved state."""
        self._mean = np.array(state["mean"], dtype=np.float64)
        self._var = np.array(state["var"], dtype=np.float64)
        self._count = float(state["count"])

    @staticmethod
    def new_shape(obs_shape: Obs, act_shape: Act, rew_shape: Rew) -> tuple[Obs, Act, Rew]:
        """Shapes of observation, action and reward after normalisation: unchanged."""
        return obs_shape, act_shape, rew_shape

    def _out(self, value: np.ndarray) -> Moment:
        if str(self._device) == "cpu":
            # A scalar: tensors that require a gradient cannot be divided by 0-d arrays.
            return np.array(value) if self._shape else np.float64(value)
        import torch

        return torch.as_tensor(value, dtype=torch.float32, device=self._device)

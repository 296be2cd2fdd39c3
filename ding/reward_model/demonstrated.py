"""What models share that learn a reward from demonstrations: their network and their data."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from easydict import EasyDict
from torch import Tensor, nn
from torch.nn import functional as F

from ding.model.common.encoder import build_encoder
from ding.policy.train_columns import flatten_numbers
from ding.reward_model.base_reward_model import (
    BaseRewardModel,
    Shapes,
    Transitions,
    require_obs_shape,
)
from ding.utils.errors import ConfigError, DataError
from ding.utils.log_writer import ScalarWriter

#: Widths of an image's convolutions where a config has fewer.
_IMAGE_SIZES = [32, 64, 64]


class RewardNetwork(nn.Module):
    """One number for an observation, or for an observation and an action: ``[N]``.

    Args:
        sizes: Widths of the hidden layers.
        sees_actions: Whether actions are an input; discrete ones as one-hot vectors.
    """

    def __init__(self, shapes: Shapes, sizes: Sequence[int], sees_actions: bool) -> None:
        super().__init__()
        self._discrete, self._actions = shapes.discrete, 0
        if sees_actions:
            if shapes.action_shape is None:
                raise ConfigError("reward_model.action_shape is missing: the actions are unusual")
            self._actions = shapes.action_shape
        shape: Any = shapes.obs_shape
        is_image = not isinstance(shape, int)
        widths = list(sizes) if len(sizes) >= len(_IMAGE_SIZES) else _IMAGE_SIZES
        self.encoder = build_encoder(shape, widths) if is_image else None
        width = self.encoder.output_size if self.encoder is not None else shape
        layers: list[nn.Module] = []
        for size in [sizes[-1]] if is_image else sizes:
            layers += [nn.Linear(width + (0 if layers else self._actions), size), nn.Tanh()]
            width = size
        self.head = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, obs: Tensor, action: Tensor | None = None) -> Tensor:
        seen = obs if self.encoder is None else self.encoder(obs)
        if self._actions and action is not None:
            if self._discrete:
                action = F.one_hot(action.long().reshape(len(obs)), self._actions)
            seen = torch.cat([seen, action.reshape(len(obs), -1).float()], 1)
        found: Tensor = self.head(seen).squeeze(-1)
        return found


class DemonstratedRewardModel(BaseRewardModel):
    """Base class of models that a pipeline gives demonstrations before the first round."""

    config: dict[str, Any] = dict(
        # Of observations and actions; None takes those of the environment.
        obs_shape=None,
        action_shape=None,
        learning_rate=1e-3,
        batch_size=64,
        # A checkpoint of the expert, its run's folder, or zoo:NAME.
        expert_model_path=None,
        # A file of the expert's transitions; it counts where no expert plays.
        data_path=None,
        # Demonstrations that an expert plays.
        collect_count=1000,
        # Not read: widths follow from the shapes, and the model is part of the run's state.
        input_size=None,
        reward_model_path=None,
    )
    #: Columns of the demonstrations.
    columns: tuple[str, ...] = ("obs", "action", "next_obs", "done")

    def __init__(
        self, cfg: EasyDict, shapes: Shapes, device: str, tb_logger: ScalarWriter | None = None
    ) -> None:
        super().__init__(cfg, shapes, device, tb_logger)
        require_obs_shape(shapes, cfg.type)

    @abstractmethod
    def demonstrate(self, transitions: Transitions, lengths: np.ndarray) -> None:
        """Take demonstrations.

        Args:
            transitions: The `columns`, ``[N, ...]`` each; trajectories one after the other.
            lengths: Number of transitions of each trajectory.
        """

    def _train_on(self, network: nn.Module) -> torch.optim.Optimizer:
        """Make a network and its optimiser part of the state."""
        network.to(self._device)
        optimizer = torch.optim.Adam(network.parameters(), self._cfg.learning_rate)
        self.networks.update(reward=network, optimizer=optimizer)
        return optimizer

    def _steps(self, transitions: Transitions, *others: str) -> dict[str, np.ndarray]:
        """Observations, actions and other columns as arrays."""
        flat = flatten_numbers(transitions)
        steps = {name: flat[name] for name in ("obs", "action", *others)}
        for name, column in steps.items():
            if not isinstance(column, np.ndarray | Tensor):
                raise DataError(
                    f"reward_model.type={self._cfg.type!r}: {name!r} of a transition must be one "
                    f"array, got {type(column).__name__}"
                )
        return {name: np.asarray(column) for name, column in steps.items()}

    def _tensor(self, column: Any) -> Tensor:
        return torch.as_tensor(np.asarray(column), dtype=torch.float32, device=self._device)

    def _descend(self, loss: Tensor) -> float:
        optimizer: Any = self.networks["optimizer"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

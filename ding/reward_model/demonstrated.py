"""Base of models that learn a reward from demonstrations: their network and their data."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ding.model.common.encoder import build_encoder
from ding.reward_model.base_reward_model import BaseRewardModel, Transitions, of_rows
from ding.utils.errors import ConfigError
from ding.utils.types import Config, Tree

#: Channels of an image's convolutions if a config has fewer.
_IMAGE_SIZES = [32, 64, 64]


class RewardNetwork(nn.Module):
    """One number for an observation, or for an observation and an action: ``[N]``.

    Args:
        shape: Shape of an observation.
        sizes: Widths of the hidden layers.
        actions: Width of an action as an input; 0 for no action.
    """

    def __init__(self, shape: int | Sequence[int], sizes: Sequence[int], actions: int = 0) -> None:
        super().__init__()
        is_image = not isinstance(shape, int)
        if not isinstance(shape, int):
            widths = list(sizes) if len(sizes) >= len(_IMAGE_SIZES) else _IMAGE_SIZES
            encoder = build_encoder(shape, widths)
            self.encoder: nn.Module = encoder
            width = encoder.output_size
        else:
            self.encoder, width = nn.Identity(), shape
        layers: list[nn.Module] = []
        for size in [sizes[-1]] if is_image else sizes:
            layers += [nn.Linear(width + (0 if layers else actions), size), nn.Tanh()]
            width = size
        self.head = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, obs: Tensor, *action: Tensor) -> Tensor:
        found: Tensor = self.head(torch.cat([self.encoder(obs), *action], 1)).squeeze(-1)
        return found


class DemonstratedRewardModel(BaseRewardModel):
    """Base class of models that receive demonstrations before the first round."""

    config: Config = dict(
        # Shapes of observations and actions; None: the environment's.
        obs_shape=None,
        action_shape=None,
        learning_rate=1e-3,
        batch_size=64,
        # A checkpoint of the expert, its run's folder, or zoo:NAME.
        expert_model_path=None,
        # A file of the expert's transitions, used if no expert plays.
        data_path=None,
        # Number of steps that an expert plays.
        collect_count=1000,
        # Ignored: widths follow from the shapes, and the model is part of the run's state.
        input_size=None,
        reward_model_path=None,
    )
    #: Columns of the demonstrations.
    columns: tuple[str, ...] = ("obs", "action", "next_obs", "done")
    #: Whether it learns from ranked trajectories.
    ranks = False
    #: Name of the pipeline that provides demonstrations.
    entry = "serial_pipeline_reward_model_onpolicy or _offpolicy"

    @property
    def has_learned(self) -> bool:
        """Whether it was trained on demonstrations and will not be again."""
        return False

    @abstractmethod
    def demonstrate(self, transitions: Transitions, lengths: np.ndarray) -> None:
        """Receive demonstrations.

        Args:
            transitions: The `columns`, ``[N, ...]`` each; trajectories one after the other.
            lengths: Number of transitions of each trajectory.
        """

    def load_expert_data(self, data: Sequence[Mapping[str, Tree]]) -> None:
        """`demonstrate` a list of transitions."""
        self.demonstrate(*of_rows(data, self.columns))

    def _require_demonstrations(self, found: object) -> None:
        if not found:
            raise ConfigError(
                f"reward_model.type={self._cfg.type!r} has no demonstrations: use {self.entry}, "
                "which brings them, or load_expert_data"
            )

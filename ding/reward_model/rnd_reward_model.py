"""Random network distillation (Burda et al. 2018)."""

from typing import Any

import numpy as np
import torch
from easydict import EasyDict
from torch import nn

from ding.model.common.encoder import build_encoder
from ding.reward_model.base_reward_model import Shapes, State, Transitions, require_obs_shape
from ding.reward_model.curiosity import CuriosityRewardModel
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.log_writer import ScalarWriter
from ding.utils.running_mean_std import RunningMeanStd


@REWARD_MODEL_REGISTRY.register("rnd")
class RndRewardModel(CuriosityRewardModel):
    """Pays for observations whose random features a network cannot predict yet.

    The bonus of a transition is the squared error of the prediction at ``next_obs``, averaged over
    the features. Both networks see observations normalised by running moments and clipped.
    """

    config: dict[str, Any] = dict(
        obs_norm=True,
        obs_norm_clamp_min=-5.0,
        obs_norm_clamp_max=5.0,
    )

    def __init__(
        self, cfg: EasyDict, shapes: Shapes, device: str, tb_logger: ScalarWriter | None = None
    ) -> None:
        super().__init__(cfg, shapes, device, tb_logger)
        shape = require_obs_shape(shapes, cfg.type)
        target, predictor = (_features(shape, cfg.hidden_size_list, device) for _ in range(2))
        target.requires_grad_(False)
        self._target, self._predictor = target, predictor
        optimizer = torch.optim.Adam(predictor.parameters(), cfg.learning_rate)
        self.networks = {"target": target, "predictor": predictor, "optimizer": optimizer}
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        self._moments = RunningMeanStd(shape=sizes)
        self._has_moments = False

    def _see(self, transitions: Transitions) -> None:
        if self._cfg.obs_norm:
            self._moments.update(transitions["next_obs"])

    def collected(
        self, transitions: Transitions, lengths: np.ndarray
    ) -> tuple[Transitions, np.ndarray]:
        if self._cfg.obs_norm and not self._has_moments:
            # The paper takes the first moments from a random agent; here from the first collection.
            self._moments.update(transitions["next_obs"])
        self._has_moments = True
        return super().collected(transitions, lengths)

    def _errors(self, steps: dict[str, torch.Tensor]) -> torch.Tensor:
        """Squared errors ``[N]``, averaged over features."""
        obs, cfg = steps["next_obs"], self._cfg
        if cfg.obs_norm:
            mean, std = (
                torch.as_tensor(value, dtype=torch.float32, device=self._device)
                for value in (self._moments.mean, self._moments.std)
            )
            obs = ((obs - mean) / std).clamp(cfg.obs_norm_clamp_min, cfg.obs_norm_clamp_max)
        errors: torch.Tensor = (self._predictor(obs) - self._target(obs)).pow(2).mean(-1)
        return errors

    _bonus = _errors

    def _loss(self, steps: dict[str, torch.Tensor]) -> tuple[torch.Tensor, dict[str, float]]:
        return self._errors(steps).mean(), {}

    def state_dict(self) -> State:
        moments = self._moments.state_dict()
        return {**super().state_dict(), "moments": moments, "has_moments": self._has_moments}

    def load_state_dict(self, state_dict: State) -> None:
        super().load_state_dict(state_dict)
        self._moments.load_state_dict(state_dict["moments"])
        self._has_moments = state_dict["has_moments"]


def _features(shape: Any, sizes: list[int], device: str) -> nn.Module:
    encoder = build_encoder(shape, sizes)
    # Without an activation at the end, whose zeros would hide errors.
    return nn.Sequential(encoder, nn.Linear(encoder.output_size, encoder.output_size)).to(device)

"""The intrinsic curiosity module (Pathak et al. 2017)."""

from typing import Any

import torch
from easydict import EasyDict
from torch import nn
from torch.nn import functional

from ding.model.common.encoder import build_encoder
from ding.reward_model.base_reward_model import Shapes, require_obs_shape
from ding.reward_model.curiosity import CuriosityRewardModel
from ding.torch_utils.network import MLP
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.log_writer import ScalarWriter


@REWARD_MODEL_REGISTRY.register("icm")
class ICMRewardModel(CuriosityRewardModel):
    """Pays for transitions whose outcome a network cannot predict in a learned feature space.

    Features φ are learned by predicting the action from ``φ(obs)`` and ``φ(next_obs)`` (the inverse
    model). The bonus of a transition is half the squared error of the predicted ``φ(next_obs)``
    (the forward model), eq. 6 of the paper; η is ``intrinsic_reward_weight``. The loss is
    ``reverse_scale`` times that of the inverse model, plus that of the forward model: eq. 7 with
    β = 0.2 where ``reverse_scale`` is 4.
    """

    config: dict[str, Any] = dict(reverse_scale=4.0)

    def __init__(
        self, cfg: EasyDict, shapes: Shapes, device: str, tb_logger: ScalarWriter | None = None
    ) -> None:
        super().__init__(cfg, shapes, device, tb_logger)
        if shapes.action_shape is None:
            raise ConfigError(
                "reward_model.type='icm' needs actions that are one choice or one vector: set "
                "reward_model.action_shape if they are"
            )
        encoder = build_encoder(require_obs_shape(shapes, cfg.type), cfg.hidden_size_list)
        size, actions = encoder.output_size, shapes.action_shape
        # Linear at the end, so that no feature is always 0.
        self._encoder = nn.Sequential(encoder, nn.Linear(size, size)).to(device)
        self._inverse = MLP(2 * size, size, actions, 2, output_activation=False).to(device)
        self._forward = MLP(size + actions, size, size, 2, output_activation=False).to(device)
        parts = nn.ModuleList([self._encoder, self._inverse, self._forward])
        optimizer = torch.optim.Adam(parts.parameters(), cfg.learning_rate)
        self.networks = {"networks": parts, "optimizer": optimizer}

    def _bonus(self, steps: dict[str, torch.Tensor]) -> torch.Tensor:
        return self._forward_error(
            self._encoder(steps["obs"]), self._encoder(steps["next_obs"]), steps["action"]
        )

    def _forward_error(
        self, features: torch.Tensor, outcome: torch.Tensor, action: torch.Tensor
    ) -> torch.Tensor:
        predicted = self._forward(torch.cat([features, self._as_input(action)], dim=-1))
        error: torch.Tensor = 0.5 * (predicted - outcome).pow(2).sum(-1)
        return error

    def _loss(self, steps: dict[str, torch.Tensor]) -> tuple[torch.Tensor, dict[str, float]]:
        features, outcome = self._encoder(steps["obs"]), self._encoder(steps["next_obs"])
        action = steps["action"]
        guess = self._inverse(torch.cat([features, outcome], dim=-1))
        if self._shapes.discrete:
            inverse = functional.cross_entropy(guess, action.long())
        else:
            inverse = functional.mse_loss(guess, action)
        forward = self._forward_error(features, outcome, action).mean()
        facts = {"inverse_loss": float(inverse.detach()), "forward_loss": float(forward.detach())}
        return self._cfg.reverse_scale * inverse + forward, facts

    def _as_input(self, action: torch.Tensor) -> torch.Tensor:
        if not self._shapes.discrete:
            return action
        return functional.one_hot(action.long(), self._shapes.action_shape or 0).float()

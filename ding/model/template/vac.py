"""Actor and critic for on-policy policies."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.encoder import IMPALAConvEncoder, build_encoder
from ding.model.common.head import (
    DiscreteHead,
    RegressionHead,
    ReparameterizationHead,
    build_discrete_head,
)
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("vac")
class VAC(nn.Module):
    """V-value actor-critic: a policy and a state value, from one encoder or two.

    ``logit`` depends on ``action_space``:

    - ``'discrete'``: ``[B, action_shape]``, or a list of such with several action dimensions.
    - ``'continuous'``: ``{'mu', 'sigma'}``, each ``[B, action_shape]``.
    - ``'hybrid'``: ``{'action_type': [B, action_type_shape], 'action_args': {'mu', 'sigma'}}``;
      ``action_shape`` is a mapping of ``action_type_shape`` and ``action_args_shape``.

    ``value`` is ``[B]``.

    Args:
        encoder: An encoder of your own. Its output width is its ``output_size`` if it has one, else
            the last of ``encoder_hidden_size_list``. Without ``share_encoder`` the critic gets a
            copy.
        impala_cnn_encoder: `IMPALAConvEncoder` with ``encoder_hidden_size_list`` as its channels
            and the last of it as its output width.
    """

    mode = ["compute_actor", "compute_critic", "compute_actor_critic"]
    action_spaces = ("discrete", "continuous", "hybrid")

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int] | Mapping[str, Any],
        action_space: str = "discrete",
        share_encoder: bool = True,
        encoder_hidden_size_list: Sequence[int] = [128, 128, 64],
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: nn.Module | None = nn.ReLU(),
        norm_type: str | None = None,
        sigma_type: str | None = "independent",
        fixed_sigma_value: float | None = 0.3,
        bound_type: str | None = None,
        encoder: nn.Module | None = None,
        impala_cnn_encoder: bool = False,
    ) -> None:
        super().__init__()
        if action_space not in self.action_spaces:
            raise ConfigError(
                f"VAC: action_space is {action_space!r}; expected one of {self.action_spaces}"
            )
        self.action_space = action_space
        self.share_encoder = share_encoder

        def make_encoder() -> nn.Module:
            if encoder is not None:
                return copy.deepcopy(encoder)
            if impala_cnn_encoder:
                sizes = encoder_hidden_size_list
                return IMPALAConvEncoder(obs_shape, channels=sizes, outsize=sizes[-1])
            return build_encoder(obs_shape, encoder_hidden_size_list, activation, norm_type)

        if encoder is not None and not isinstance(encoder, nn.Module):
            raise ConfigError(f"VAC: encoder is {encoder!r}; expected a torch.nn.Module instance")
        actor_encoder = encoder if encoder is not None else make_encoder()
        if share_encoder:
            self.encoder = actor_encoder
        else:
            self.actor_encoder = actor_encoder
            self.critic_encoder = make_encoder()
        width = getattr(actor_encoder, "output_size", encoder_hidden_size_list[-1])
        common = {"activation": activation, "norm_type": norm_type}
        self.actor_head = _build_actor_head(
            action_space,
            action_shape,
            width,
            {**common, "layer_num": actor_head_layer_num, "hidden_size": actor_head_hidden_size},
            {
                "sigma_type": sigma_type,
                "fixed_sigma_value": fixed_sigma_value,
                "bound_type": bound_type,
            },
        )
        self.critic_head = RegressionHead(
            width, 1, critic_head_layer_num, hidden_size=critic_head_hidden_size, **common
        )

    # Views, not submodules: a state dict then holds every tensor once.
    @property
    def actor(self) -> nn.ModuleList:
        """Encoder and head of the actor."""
        encoder = self.encoder if self.share_encoder else self.actor_encoder
        return nn.ModuleList([encoder, self.actor_head])

    @property
    def critic(self) -> nn.ModuleList:
        """Encoder and head of the critic."""
        encoder = self.encoder if self.share_encoder else self.critic_encoder
        return nn.ModuleList([encoder, self.critic_head])

    def forward(self, x: torch.Tensor | dict, mode: str) -> dict:
        """Runs the method that ``mode`` names, one of `VAC.mode`."""
        if mode == "compute_actor_critic":
            return self.compute_actor_critic(x)
        if mode == "compute_actor":
            return self.compute_actor(x)
        if mode == "compute_critic":
            return self.compute_critic(x)
        raise ValueError(f"VAC: mode is {mode!r}; expected one of {self.mode}")

    def compute_actor(self, x: torch.Tensor | dict) -> dict:
        """``{'logit'}``."""
        feature = self.encoder(x) if self.share_encoder else self.actor_encoder(x)
        return {"logit": self._logit(feature)}

    def compute_critic(self, x: torch.Tensor | dict) -> dict:
        """``{'value'}``."""
        feature = self.encoder(x) if self.share_encoder else self.critic_encoder(x)
        return {"value": self.critic_head(feature)["pred"]}

    def compute_actor_critic(self, x: torch.Tensor | dict) -> dict:
        """``{'logit', 'value'}``; a shared encoder runs once."""
        if self.share_encoder:
            actor_feature = critic_feature = self.encoder(x)
        else:
            actor_feature = self.actor_encoder(x)
            critic_feature = self.critic_encoder(x)
        return {
            "logit": self._logit(actor_feature),
            "value": self.critic_head(critic_feature)["pred"],
        }

    def _logit(self, feature: torch.Tensor) -> Any:
        if self.action_space == "discrete":
            return self.actor_head(feature)["logit"]
        if self.action_space == "continuous":
            return self.actor_head(feature)
        type_head, args_head = self.actor_head
        return {"action_type": type_head(feature)["logit"], "action_args": args_head(feature)}


def _build_actor_head(
    action_space: str,
    action_shape: Any,
    width: int,
    common: dict[str, Any],
    gaussian: dict[str, Any],
) -> nn.Module:
    if action_space == "hybrid":
        if not isinstance(action_shape, Mapping):
            raise ConfigError(
                f"VAC: action_shape is {action_shape!r}; a hybrid action space needs a mapping of "
                "action_type_shape and action_args_shape"
            )
        spaces = {"discrete": "action_type_shape", "continuous": "action_args_shape"}
        return nn.ModuleList(
            _build_actor_head(space, action_shape[key], width, common, gaussian)
            for space, key in spaces.items()
        )
    if action_space == "discrete":
        return build_discrete_head(
            DiscreteHead, action_shape=action_shape, input_size=width, **common
        )
    size = action_shape if isinstance(action_shape, int) else math.prod(action_shape)
    return ReparameterizationHead(width, size, **gaussian, **common)

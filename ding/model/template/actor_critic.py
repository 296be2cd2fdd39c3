"""Base classes of actor-critic models."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.dense import Dense, linear_layers
from ding.model.common.head import (
    RegressionHead,
    ReparameterizationHead,
    build_policy_head,
    column,
    flat_size,
)
from ding.model.common.old_names import OtherNames

_TWO_ENCODERS = ("actor_encoder", "critic_encoder")


class ByMode(nn.Module):
    """A network whose ``forward`` calls the method that its argument ``mode`` names."""

    mode: list[str] = []

    def forward(self, inputs: Any, mode: str) -> dict[str, Any]:
        """Call the method ``mode``, one of the class's `mode`."""
        if mode not in self.mode:
            raise ValueError(
                f"{type(self).__name__}: mode is {mode!r}; expected one of {self.mode}"
            )
        return getattr(self, mode)(inputs)


class ActorCritic(ByMode, OtherNames):
    """An actor and a critic with a shared encoder or separate ones.

    Subclasses define a method for each name in `mode`.

    Args:
        encoder: The actor's encoder, stored as ``actor_encoder``; as ``encoder`` if it is shared.
        critic_encoder: ``None`` to share the actor's.
        heads: The heads of actor and critic, unless the subclass sets them.
    """

    actor_head: Any
    critic_head: Any

    def __init__(
        self,
        encoder: nn.Module,
        critic_encoder: nn.Module | None,
        heads: tuple[nn.Module, nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.share_encoder = critic_encoder is None
        if critic_encoder is None:
            self.encoder = encoder
        else:
            self.actor_encoder = encoder
            self.critic_encoder = critic_encoder
        if heads is not None:
            # The critic's head first: the order of parameters in optimisers of old checkpoints.
            self.critic_head = heads[1]
            self.actor_head = heads[0]

    # Views, not submodules: a state dict then contains every tensor once.
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

    @property
    def _other_names(self) -> dict[str, str]:  # type: ignore[override]
        encoders = ("encoder", "encoder") if self.share_encoder else _TWO_ENCODERS
        return {
            "actor.0": encoders[0],
            "actor.1": "actor_head",
            "critic.0": encoders[1],
            "critic.1": "critic_head",
        }

    def actor_feature(self, x: Any) -> torch.Tensor:
        return self.encoder(x) if self.share_encoder else self.actor_encoder(x)

    def critic_feature(self, x: Any) -> torch.Tensor:
        return self.encoder(x) if self.share_encoder else self.critic_encoder(x)


class ValueActorCritic(ActorCritic):
    """Policy and state value; subclasses define the encoders' inputs and the ``logit``."""

    mode = ["compute_actor", "compute_critic", "compute_actor_critic"]

    def compute_actor(self, x: Any) -> dict[str, Any]:
        """``{'logit'}``."""
        return {"logit": self._logit(self.actor_feature(x), x)}

    def compute_critic(self, x: Any) -> dict[str, Any]:
        """``{'value'}``."""
        return {"value": self.critic_head(self.critic_feature(x))["pred"]}

    def compute_actor_critic(self, x: Any) -> dict[str, Any]:
        """``{'logit', 'value'}``; a shared encoder is computed once."""
        feature = self.actor_feature(x)
        critic_feature = feature if self.share_encoder else self.critic_feature(x)
        # The logit first, which fixes the order of adding gradients in a shared encoder.
        logit = self._logit(feature, x)
        return {"logit": logit, "value": self.critic_head(critic_feature)["pred"]}

    def _logit(self, feature: torch.Tensor, x: Any) -> Any:
        raise NotImplementedError


def value_heads(
    action: Sequence[tuple[str, Any]],
    width: int,
    actor: tuple[int, int],
    critic: tuple[int, int],
    gaussian: Mapping[str, Any],
    **common: Any,
) -> tuple[nn.Module, nn.Module]:
    """The heads of a policy and of a state value.

    Args:
        action: Space and shape of the action, or of each of its parts with a separate head.
        width: Output width of the encoders.
        actor: Width and number of layers of the actor's head; likewise ``critic``.
        gaussian: Further arguments of `ReparameterizationHead`.
        common: ``activation`` and ``norm_type``.
    """
    parts = [
        build_policy_head(*part, width, actor[0], gaussian, layer_num=actor[1], **common)
        for part in action
    ]
    value = RegressionHead(width, 1, critic[1], hidden_size=critic[0], **common)
    return parts[0] if len(parts) == 1 else nn.ModuleList(parts), value


def continuous_actor(
    action_space: str,
    sizes: tuple[int, int],
    action_shape: Any,
    layer_num: int,
    gaussian: Mapping[str, Any] = {"sigma_type": "conditioned"},
    **common: Any,
) -> Dense:
    """A linear layer of ``sizes`` and a head: of an action (``'regression'``) or a Gaussian."""
    stem, size, width = linear_layers(sizes, **common), flat_size(action_shape), sizes[1]
    if action_space == "regression":
        return Dense(*stem, RegressionHead(width, size, layer_num, final_tanh=True, **common))
    return Dense(*stem, ReparameterizationHead(width, size, layer_num, **gaussian, **common))


def continuous_output(output: dict[str, torch.Tensor], x: torch.Tensor) -> dict[str, Any]:
    """``{'action': [B, A]}`` or ``{'logit': [mu, sigma]}`` of such a head for the input ``x``."""
    if "pred" in output:
        return {"action": column(output["pred"], x)}
    return {"logit": [output["mu"], output["sigma"]]}

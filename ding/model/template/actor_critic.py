"""What actor-critic models have in common."""

from typing import Any

import torch
from torch import nn

from ding.model.common.old_names import OtherNames

_TWO_ENCODERS = ("actor_encoder", "critic_encoder")


class ByMode(nn.Module):
    """A network whose ``forward`` calls the method named by its argument, one of `mode`."""

    mode: list[str] = []

    def forward(self, inputs: Any, mode: str) -> dict[str, Any]:
        """Runs the method that ``mode`` names, one of the class's `mode`."""
        if mode not in self.mode:
            raise ValueError(
                f"{type(self).__name__}: mode is {mode!r}; expected one of {self.mode}"
            )
        return getattr(self, mode)(inputs)


class ActorCritic(ByMode, OtherNames):
    """An actor and a critic with a shared encoder or separate ones.

    Subclasses have a method for each name in `mode`.

    Args:
        encoder: The actor's encoder, held as ``actor_encoder``; as ``encoder`` when it is shared.
        critic_encoder: ``None`` to share the other.
        heads: The actor's and the critic's, unless the subclass sets them.
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
            # The critic's first: so optimisers of old checkpoints count the parameters.
            self.critic_head = heads[1]
            self.actor_head = heads[0]

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

    def forward(self, x: Any, mode: str) -> dict[str, Any]:
        """Runs the method that ``mode`` names, one of the class's `mode`."""
        return super().forward(x, mode)

    def compute_actor(self, x: Any) -> dict[str, Any]:
        """``{'logit'}``."""
        return {"logit": self._logit(self.actor_feature(x), x)}

    def compute_critic(self, x: Any) -> dict[str, Any]:
        """``{'value'}``."""
        return {"value": self.critic_head(self.critic_feature(x))["pred"]}

    def compute_actor_critic(self, x: Any) -> dict[str, Any]:
        """``{'logit', 'value'}``; a shared encoder runs once."""
        feature = self.actor_feature(x)
        critic_feature = feature if self.share_encoder else self.critic_feature(x)
        # The logit first: gradients of a shared encoder are added in this order.
        logit = self._logit(feature, x)
        return {"logit": logit, "value": self.critic_head(critic_feature)["pred"]}

    def _logit(self, feature: torch.Tensor, x: Any) -> Any:
        raise NotImplementedError

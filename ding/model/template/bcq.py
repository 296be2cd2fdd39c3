"""Networks of batch-constrained Q-learning."""

from collections.abc import Sequence

import torch
from torch import nn

from ding.model.common.dense import Dense, linear_layers
from ding.model.common.head import flat_size, vector_size
from ding.model.template.actor_critic import ByMode
from ding.torch_utils.network.activation import Activation
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("bcq")
class BCQ(ByMode):
    """Networks of BCQ (Fujimoto et al. 2019): a generative model, a perturbation, two critics.

    Actions are in [-1, 1].

    Args:
        obs_shape: An int or ``[n]``.
        actor_head_hidden_size: Hidden layers of the perturbation network, bounded by ``phi``.
        critic_head_hidden_size: Hidden layers of each critic.
        vae_hidden_dims: Hidden layers of the generative model's encoder and decoder.
    """

    mode = ["compute_actor", "compute_critic", "compute_vae", "compute_eval"]
    #: Number of generated actions from which ``compute_eval`` chooses.
    candidates = 100

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        action_shape: int | Sequence[int],
        actor_head_hidden_size: Sequence[int] = [400, 300],
        critic_head_hidden_size: Sequence[int] = [400, 300],
        activation: Activation = nn.ReLU(),
        vae_hidden_dims: Sequence[int] = [750, 750],
        phi: float = 0.05,
    ) -> None:
        super().__init__()
        size, action_size = vector_size(obs_shape, "BCQ"), flat_size(action_shape)
        self.phi = phi

        def net(hidden: Sequence[int], output_size: int) -> Dense:
            layers = linear_layers([size + action_size, *hidden], activation)
            return Dense(*layers, nn.Linear(hidden[-1], output_size))

        self.actor = net(actor_head_hidden_size, action_size)
        self.critic = nn.ModuleList([net(critic_head_hidden_size, 1) for _ in range(2)])
        self.vae = _ActionVAE(size, action_size, vae_hidden_dims, activation)

    def compute_actor(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """``{'action': [B, A]}``: the input's ``action`` plus a perturbation, given ``obs``."""
        action = inputs["action"]
        change = torch.tanh(self.actor(torch.cat([inputs["obs"], action], -1)))
        return {"action": (action + self.phi * change).clamp(-1, 1)}

    def compute_critic(self, inputs: dict[str, torch.Tensor]) -> dict[str, list[torch.Tensor]]:
        """``{'q_value': [[B], [B]]}`` for ``obs`` and ``action``."""
        x = torch.cat([inputs["obs"], inputs["action"]], -1)
        return {"q_value": [critic(x).squeeze(-1) for critic in self.critic]}

    def compute_vae(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """``recons_action`` ``[B, A]``: the reconstruction of an ``action`` in the inputs, with the
        encoding's ``mu`` and ``sigma`` ``[B, 2 A]``; or a sampled action."""
        if "action" in inputs:
            return self.vae(inputs["obs"], inputs["action"])
        return {"recons_action": self.vae.draw(inputs["obs"])}

    def compute_eval(self, obs: torch.Tensor) -> dict[str, torch.Tensor]:
        """``{'action': [B, A]}``: of generated, perturbed actions the one with the highest value of
        the first critic."""
        many = obs.repeat_interleave(self.candidates, 0)
        action = self.compute_actor({"obs": many, "action": self.vae.draw(many)})["action"]
        q_value = self.critic[0](torch.cat([many, action], -1)).view(-1, self.candidates)
        best = q_value.argmax(-1)
        action = action.view(len(obs), self.candidates, -1)
        return {"action": action[torch.arange(len(obs), device=obs.device), best]}


class _ActionVAE(nn.Module):
    """A conditional variational auto-encoder of actions, given the observation."""

    # Range of the encoding's log-sigma.
    log_sigma_range = (-4.0, 15.0)

    def __init__(
        self, size: int, action_size: int, hidden: Sequence[int], activation: Activation
    ) -> None:
        super().__init__()
        self.latent_size = 2 * action_size
        self.encoder = Dense(*linear_layers([size + action_size, *hidden], activation))
        self.mu = nn.Linear(hidden[-1], self.latent_size)
        self.log_sigma = nn.Linear(hidden[-1], self.latent_size)
        layers = linear_layers([size + self.latent_size, *hidden], activation)
        self.decoder = Dense(*layers, nn.Linear(hidden[-1], action_size))

    def forward(self, obs: torch.Tensor, action: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.encoder(torch.cat([obs, action], -1))
        mu, sigma = self.mu(x), self.log_sigma(x).clamp(*self.log_sigma_range).exp()
        code = torch.addcmul(mu, sigma, torch.randn_like(mu))
        return {"recons_action": self.decode(obs, code), "mu": mu, "sigma": sigma}

    def draw(self, obs: torch.Tensor) -> torch.Tensor:
        """Sample actions ``[B, A]`` as in the data at ``obs``; improbable ones are left out."""
        return self.decode(
            obs, obs.new_empty(len(obs), self.latent_size).normal_().clamp_(-0.5, 0.5)
        )

    def decode(self, obs: torch.Tensor, code: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.decoder(torch.cat([obs, code], -1)))

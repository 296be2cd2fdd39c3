"""Rainbow (Hessel et al. 2018): six extensions of DQN in one."""

import torch
from easydict import EasyDict

from ding.policy.base_policy import Policy
from ding.policy.dqn import C51Policy
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("rainbow")
class RainbowDQNPolicy(C51Policy):
    """C51 with double and dueling Q-learning, n-step returns, priorities and noisy layers."""

    paper = "Hessel et al. 2018"
    config = dict(
        type="rainbow",
        priority=True,
        priority_IS_weight=True,
        discount_factor=0.99,
        nstep=3,
        noisy_net=True,
        learn=dict(update_per_collect=1, batch_size=32),
        other=dict(
            # The noise explores; ε only sees to it that no action dies out.
            eps=dict(type="exp", start=0.05, end=0.05, decay=100000),
            replay_buffer=dict(replay_buffer_size=100000, alpha=0.6, beta=0.4, anneal_step=100000),
        ),
    )

    _network = "rainbowdqn"

    def _create_model(self, cfg: EasyDict, model: torch.nn.Module | None) -> torch.nn.Module:
        # Not DQN's, which asks its network for noise: this one has it anyway.
        return Policy._create_model(self, cfg, model)

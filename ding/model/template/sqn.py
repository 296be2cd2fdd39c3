"""Two Q-networks side by side."""

import functools
from typing import Any

import torch
from torch import nn

from ding.model.template.q_learning import DQN
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("sqn")
class SQN(nn.Module):
    """Two networks `DQN` of the same arguments, and the lower of their values.

    ``[B, *obs_shape]`` to ``{'q_value': [two tensors [B, N]], 'logit': [B, N]}``.
    """

    @functools.wraps(DQN.__init__)  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.q0 = DQN(*args, **kwargs)
        self.q1 = DQN(*args, **kwargs)

    def forward(self, x: torch.Tensor) -> dict:
        values = [network(x)["logit"] for network in (self.q0, self.q1)]
        return {"q_value": values, "logit": torch.minimum(*values)}

"""A joint value of any form beside agents' values that are to agree with it (Son et al. 2019)."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ding.model.common.head import flat_size
from ding.model.template.qmix import QMix
from ding.utils.default_helper import one_size
from ding.utils.registry_factory import MODEL_REGISTRY


@MODEL_REGISTRY.register("qtran")
class QTran(QMix):
    """Agents' values, a joint value of state, memories and actions, and a value of the state.

    Arguments as of `QMix`, and:

    Args:
        embedding_size: Width of the networks of the joint value and of the state's.
    """

    def __init__(
        self,
        agent_num: int,
        obs_shape: int,
        global_obs_shape: int,
        action_shape: int,
        hidden_size_list: Sequence[int],
        embedding_size: int,
        lstm_type: str = "gru",
        dueling: bool = False,
    ) -> None:
        super().__init__(
            *(agent_num, obs_shape, global_obs_shape, action_shape, hidden_size_list),
            mixer=False,
            lstm_type=lstm_type,
            dueling=dueling,
        )
        memory, size = hidden_size_list[-1], flat_size(global_obs_shape)
        actions = one_size(action_shape, "QTRAN: action_shape", "the choices of an agent")
        self._action_shape = actions
        encoded = memory + actions
        # In the order in which optimisers of old checkpoints count the parameters.
        self.Q = _value_network(size + encoded, embedding_size)
        self.V = _value_network(size, embedding_size)
        self.action_encoding = nn.Sequential(
            nn.Linear(encoded, encoded), nn.ReLU(), nn.Linear(encoded, encoded)
        )

    def judge(self, output: dict[str, Any], obs: Mapping[str, torch.Tensor], action: Any) -> Any:
        """``joint_q``, ``total_q``, the sum of agents' values, and ``value``, ``[T, B]`` each."""
        hidden, state = output["hidden"], obs["global_state"]
        one_hot = nn.functional.one_hot(action, self._action_shape).to(hidden.dtype)
        pairs = self.action_encoding(torch.cat([hidden, one_hot], -1)).sum(-2)
        return {
            **super().judge(output, obs, action),
            "joint_q": self.Q(torch.cat([state, pairs], -1)).squeeze(-1),
            "value": self.V(state).squeeze(-1),
        }


def _value_network(size: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(size, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 1),
    )

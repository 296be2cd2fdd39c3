"""Recurrent networks of agents that act on local observations; their states are stored together."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from ding.data import tree_join, tree_rows, tree_take
from ding.model.template.drqn import DRQN
from ding.utils.errors import DataError

#: A tree of tensors ``[B, agents, ...]`` (or ``[agents, ...]`` for one environment).
State = dict[str, Any]


class AgentNetwork(DRQN):
    """A recurrent Q-network that all agents share; see `DRQN`.

    A state is ``{'h'}`` (LSTM: also ``'c'``), ``[B, agents, width]`` each.
    """

    @property
    def _width(self) -> int:
        return self.rnn.hidden_size  # type: ignore[return-value]

    def initial_state(self, batch: int, agents: int) -> State:
        zeros = next(self.parameters()).new_zeros((batch, agents, self._width))
        return dict.fromkeys(("h",) if isinstance(self.rnn, nn.GRUCell) else ("h", "c"), zeros)

    def unroll(self, obs: torch.Tensor, state: State) -> tuple[torch.Tensor, State, torch.Tensor]:
        """
        Args:
            obs: float32 ``[T, B, agents, n]``.
            state: The state before the first step.

        Returns:
            Values ``[T, B, agents, N]``, the state after the last step, and the recurrent layer's
            output, ``[T, B, agents, width]``.
        """
        steps, batch, agents = obs.shape[:3]
        flat = {name: part.reshape(1, batch * agents, -1) for name, part in state.items()}
        output = super().forward({"obs": obs.flatten(1, 2), "prev_state": flat})
        after = {name: part.view(batch, agents, -1) for name, part in output["next_state"].items()}
        shape = (steps, batch, agents, -1)
        return output["logit"].view(shape), after, output["hidden_state"].view(shape)


class AgentsModel(nn.Module):
    """Base of models for teams: values of agents' actions and, optionally, of joint actions.

    Subclasses define the agents' values (`initial_state`, `unroll`); those that evaluate joint
    actions override `judge`.
    """

    def __init__(self, agent_num: int) -> None:
        super().__init__()
        self.agent_num = agent_num

    @abstractmethod
    def initial_state(self, batch: int = 1) -> State:
        """The state at the start of episodes, ``[B, agents, ...]``."""

    @abstractmethod
    def unroll(self, obs: Mapping[str, torch.Tensor], state: State) -> dict[str, Any]:
        """
        Args:
            obs: ``agent_state`` ``[T, B, agents, n]`` and further parts that the model uses.
            state: The state before the first step.

        Returns:
            ``logit`` ``[T, B, agents, N]``, ``next_state``, and further terms of the loss.
        """

    def judge(self, output: dict[str, Any], obs: Mapping[str, torch.Tensor], action: Any) -> Any:
        """``total_q`` and further values of a joint action; empty by default."""
        return {}

    def forward(self, data: Mapping[str, Any], single_step: bool = True) -> dict[str, Any]:
        """One step of acting, or a whole sequence.

        Args:
            data: ``obs`` with parts ``[B, ...]``, for a sequence ``[T, B, ...]``; ``prev_state``, a
                state of the batch or a list of B states, None for initial ones; optionally
                ``action`` int64 ``[B, agents]`` (``[T, B, agents]``), by default the best ones.
            single_step: Whether the input is one step.

        Returns:
            ``logit``, ``next_state`` (a list of B), ``action_mask`` if there is one, and, if the
            observation has a ``global_state``, the results of `judge`, such as ``total_q``
            ``[B]`` (``[T, B]``).
        """
        obs, action = data["obs"], data.get("action")
        if single_step:
            obs = {name: part.unsqueeze(0) for name, part in obs.items()}
            action = None if action is None else action.unsqueeze(0)
        output = self.unroll(obs, self.joined_state(data.get("prev_state"), obs))
        mask, logit = obs.get("action_mask"), output["logit"]
        if mask is not None and mask.shape != logit.shape:
            raise DataError(
                f"action_mask is of {mask.shape[-1]} actions; policy.model.action_shape is "
                f"{logit.shape[-1]}"
            )
        judged = {}
        if "global_state" in obs:
            if action is None:
                action = best_actions(logit, mask)
            judged = self.judge(output, obs, action)
        out = {"logit": logit, **judged}
        if mask is not None:
            out["action_mask"] = mask
        if single_step:
            out = {name: part.squeeze(0) for name, part in out.items()}
        return {**out, "next_state": tree_rows(output["next_state"])}

    def joined_state(self, state: Any, obs: Mapping[str, torch.Tensor]) -> State:
        """The state of a batch, from any accepted form."""
        if isinstance(state, Mapping):
            return dict(state)
        batch = obs["agent_state"].shape[1]
        if state is None or all(one is None for one in state):
            return self.initial_state(batch)
        begins = tree_take(self.initial_state(1), 0)
        return tree_join(torch.stack, [begins if one is None else one for one in state])


def best_actions(logit: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """The best legal action of each agent: ``[..., N]`` to int64 ``[...]``."""
    return (logit if mask is None else logit.masked_fill(mask == 0, -torch.inf)).argmax(-1)

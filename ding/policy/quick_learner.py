"""The gradients of DQN's loss without autograd, where the Q network is small and plain."""

from typing import Any

import numpy as np
import torch

from ding.model.template.array_q import ArrayQ
from ding.model.wrapper.base import innermost

#: Rows times parameters beyond which the arithmetic costs more than the calls.
MAX_WORK = 1 << 23


class QuickLearner:
    """Does what `DQNPolicy` does with a batch, or leaves it to that one.

    Args:
        online: The network that learns.
        target: That of the targets, wrapped or not.
        gamma: Discount factor.
    """

    def __init__(self, online: Any, target: Any, gamma: float) -> None:
        self._parts = online, target, gamma
        self._gamma = gamma
        self._models = online, innermost(target)
        self._networks = self._read_networks()

    def __reduce__(self) -> Any:
        # A copy of the views would not follow the copied parameters.
        return QuickLearner, self._parts

    def descend(self, batch: dict[str, Any]) -> dict[str, Any] | None:
        """Set the gradients of the online network to those of the loss.

        Args:
            batch: As of `default_preprocess_learn`: ``obs`` and ``next_obs`` ``[B, n]``, ``action``
                ``[B]``, ``reward`` ``[nstep, B]``, ``done`` ``[B]``, ``weight`` ``[B]`` or None.

        Returns:
            ``total_loss``, ``q_value`` and ``target_q_value`` as floats, ``priority`` float32
            ``[B]``; ``None`` if autograd has to do it.
        """
        if self._networks is None or not self._takes(batch):
            return None
        if not (self._networks[0].valid and self._networks[0].learns and self._networks[1].valid):
            self._networks = self._read_networks()
            if self._networks is None:
                return None
        online, target = self._networks
        next_obs, action = batch["next_obs"].numpy(), batch["action"].numpy()
        q_values, traces = online.traced(batch["obs"].numpy())
        next_q_values = target(next_obs)
        next_action = online(next_obs).argmax(1)  # van Hasselt et al. 2016
        # Of each row: where in all values its own begin.
        begin = np.arange(0, q_values.size, q_values.shape[1])
        done = begin + action
        error = q_values.take(done)
        error -= self._targets(batch, next_q_values.take(begin + next_action))
        weighted = error if batch["weight"] is None else error * batch["weight"].numpy()
        gradient = np.zeros_like(q_values)
        gradient.put(done, weighted * np.float32(2 / len(done)))
        online.backward(traces, gradient)
        return {
            "total_loss": float(weighted.dot(error)) / len(done),
            "q_value": float(np.add.reduce(q_values, None)) / q_values.size,
            "target_q_value": float(np.add.reduce(next_q_values, None)) / q_values.size,
            "priority": torch.from_numpy(np.abs(error)),
        }

    def _targets(self, batch: dict[str, Any], next_value: np.ndarray) -> np.ndarray:
        """n-step returns ``[B]`` (see `nstep_return`)."""
        reward = batch["reward"].numpy()
        value_gamma = batch.get("value_gamma")
        factor = self._gamma ** len(reward) if value_gamma is None else value_gamma.numpy()
        total = (1 - batch["done"].numpy()) * next_value
        total *= factor
        for step, one in enumerate(reward):
            total += np.float32(self._gamma**step) * one
        return total

    def _takes(self, batch: dict[str, Any]) -> bool:
        obs, next_obs, action = batch["obs"], batch.get("next_obs"), batch.get("action")
        assert self._networks is not None
        online = self._networks[0]
        return (
            isinstance(obs, torch.Tensor)
            and isinstance(next_obs, torch.Tensor)
            and obs.is_cpu
            and obs.shape == next_obs.shape == (len(obs), online.obs_size)
            and isinstance(action, torch.Tensor)
            and action.shape == batch["done"].shape == (len(obs),)
            and batch["reward"].dim() == 2
            and len(obs) * online.parameter_count <= MAX_WORK
        )

    def _read_networks(self) -> tuple[ArrayQ, ArrayQ] | None:
        if not all(ArrayQ.applies(model) for model in self._models):
            return None
        online, target = (ArrayQ(model) for model in self._models)
        return (online, target) if online.learns else None

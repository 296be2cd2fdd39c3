"""Collect modes that act without a network."""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from easydict import EasyDict

from ding.data import tree_join, tree_map
from ding.envs.env_wrappers import as_gymnasium_space
from ding.policy._types import Action, Obs, Row
from ding.utils.errors import ConfigError


class PolicyFactory:
    """Creates collect modes from other collect modes."""

    @staticmethod
    def get_random_policy(
        policy: Any,
        action_space: gym.spaces.Space[Any] | None = None,
        forward_fn: Callable[..., Any] | None = None,
    ) -> Any:
        """A mode that acts at random, and otherwise behaves like ``policy``.

        Args:
            policy: A collect or eval mode.
            action_space: Action space of one environment, sampled uniformly.
            forward_fn: Used instead: ``({env_id: obs}, ...) -> {env_id: {'action': ...}}``.

        Raises:
            ConfigError: Neither of the two is given, or transitions of ``policy`` need outputs
                of its network.
        """
        if forward_fn is not None:
            return policy._replace(forward=forward_fn)
        if action_space is None:
            raise ConfigError("a random policy needs an action_space or a forward_fn")
        batched = getattr(policy, "batched", None)
        if needed := getattr(batched, "transition_outputs", ()):
            raise ConfigError(
                f"transitions of this policy hold {list(needed)} of its "
                "network, which random actions do not have: collect with the policy itself, or "
                "pass a forward_fn that returns them"
            )
        draw = _Draw(action_space)
        mode = policy._replace(forward=draw.rows)
        if batched is not None:
            mode.batched = dataclasses.replace(batched, forward=draw.columns)
        return mode


class _Draw:
    """Uniform actions from the space's generator, which is seeded by torch's."""

    def __init__(self, action_space: gym.spaces.Space[Any]) -> None:
        # A copy, so that the environment's space keeps its seed.
        self._space = copy.deepcopy(as_gymnasium_space(action_space))
        self._space.seed(int(torch.randint(2**31, ())))

    def rows(self, data: Mapping[int, Obs], *args: Any, **kwargs: Any) -> dict[int, Row]:
        return {env_id: {"action": self._action()} for env_id in data}

    def columns(self, obs: Obs, *args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:
        while isinstance(obs, Mapping):
            obs = next(iter(obs.values()))
        return {"action": tree_join(_joined, [self._space.sample() for _ in range(len(obs))])}

    def _action(self) -> Action:
        sample = self._space.sample()
        if isinstance(sample, tuple):
            return sample
        # In the shape of the network's actions.
        return tree_map(lambda part: torch.from_numpy(np.atleast_1d(_plain_dtype(part))), sample)


def _joined(samples: list[Action]) -> torch.Tensor:
    return torch.from_numpy(_plain_dtype(np.stack([np.asarray(sample) for sample in samples])))


def _plain_dtype(action: Action) -> np.ndarray:
    action = np.asarray(action)
    return action.astype(np.float32 if action.dtype.kind == "f" else np.int64)


def get_random_policy(cfg: EasyDict, policy: Any, env: Any) -> Any:
    """The collect mode that fills a buffer before training.

    Args:
        cfg: Compiled config; if ``policy.transition_with_policy_data`` is set, the mode is
            ``policy`` itself.
        policy: A collect mode.
        env: An env manager, for its ``action_space``.
    """
    if cfg.policy.get("transition_with_policy_data", False):
        return policy
    return PolicyFactory.get_random_policy(policy, action_space=env.action_space)

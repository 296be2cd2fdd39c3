"""What games of a team have in common: one reward for all, and observations by part."""

from abc import abstractmethod
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.envs.env._seeded_env import SeededEnv
from ding.envs.env.base_env import BaseEnvTimestep


class CooperativeGame(SeededEnv):
    """Agents who act at once and share a reward, float32 ``[1]``.

    The observation is a dict of float32 arrays: ``agent_state`` ``[agents, n]``, what each agent
    sees; ``global_state`` ``[m]``, what a critic or a mixer may know while training;
    ``action_mask`` ``[agents, actions]``, zero where an action is not to be had. Games whose agents
    see each other add ``agent_alone_state`` ``[agents, k]`` without what they see of the others,
    and ``agent_alone_padding_state`` ``[agents, n]`` with zeros there. An action is int64
    ``[agents]``.

    A game says how it begins (`_begin`), goes on (`_advance`) and looks (`_obs`), and sets its
    limit of steps, ``_max_steps``, or says when an episode is cut (`_is_cut`).
    """

    reward_space: spaces.Space
    _max_steps: int

    def __init__(self, cfg: dict) -> None:
        super().__init__(cfg)
        self._set_up()
        self.reward_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)

    @abstractmethod
    def _set_up(self) -> None:
        """Read the config; set the spaces and ``_max_steps``."""

    @abstractmethod
    def _begin(self) -> None:
        """Start an episode."""

    @abstractmethod
    def _advance(self, actions: Any) -> tuple[float, bool]:
        """Play one step; returns the team's reward and whether the game is over."""

    @abstractmethod
    def _obs(self) -> Any:
        """What is to be seen now."""

    def _is_cut(self) -> bool:
        """Whether the episode is to end though the game is not over."""
        return self._steps >= self._max_steps

    def _set_spaces(self, actions: int) -> None:
        """Spaces of observations as those that `_obs` gives, and of one action for each agent."""
        self._begin()
        obs = self._obs()
        self.observation_space: spaces.Space = spaces.Dict(
            {name: box_like(part) for name, part in obs.items()}
        )
        self.agent_num = len(obs["agent_state"])
        self.action_space: spaces.Space = spaces.MultiDiscrete([actions] * self.agent_num)

    def reset(self) -> Any:  # type: ignore[override]
        self._begin_episode()
        self._steps, self._return = 0, 0.0
        self._begin()
        return self._obs()

    def step(self, action: Any) -> BaseEnvTimestep:  # type: ignore[override]
        """
        Args:
            action: One action for each agent.

        Raises:
            ActionError: Not as many actions as agents, or one that there is not.
        """
        reward, terminated = self._advance(self._checked(action))
        self._steps += 1
        self._return += reward
        done = terminated or self._is_cut()
        info: dict[str, Any] = {}
        if done:
            info = {
                "eval_episode_return": self._return,
                "terminated": terminated,
                "truncated": not terminated,
            }
        return BaseEnvTimestep(self._obs(), np.array([reward], np.float32), done, info)

    def _checked(self, action: Any) -> Any:
        return self._whole_numbers(action, self.action_space.nvec, "agents")  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.agent_num} agents)"

    def __str__(self) -> str:
        return repr(self)  # gymnasium.Env has one of its own


def box_like(part: np.ndarray) -> spaces.Box:
    """The space of any float32 arrays of one shape."""
    return spaces.Box(-np.inf, np.inf, part.shape, np.float32)

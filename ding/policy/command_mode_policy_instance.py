"""Policies with the command mode, as the serial pipelines use them: types ``<name>_command``."""

from typing import Any

from ding.policy.base_policy import CommandModePolicy
from ding.policy.dqn import DQNPolicy
from ding.policy.ppo import PPOPolicy
from ding.rl_utils import get_epsilon_greedy_fn
from ding.utils import POLICY_REGISTRY


class EpsCommandModePolicy(CommandModePolicy):
    """Explores with an ε that falls with the number of environment steps (``other.eps``)."""

    def _init_command(self) -> None:
        eps = self._cfg.other.eps
        self.epsilon_greedy = get_epsilon_greedy_fn(eps.start, eps.end, eps.decay, eps.type)

    def _get_setting_collect(self, command_info: dict[str, Any]) -> dict[str, Any]:
        return {"eps": self.epsilon_greedy(command_info["envstep"])}


class DummyCommandModePolicy(CommandModePolicy):
    """Has no settings that change over time."""


@POLICY_REGISTRY.register("dqn_command")
class DQNCommandModePolicy(DQNPolicy, EpsCommandModePolicy):
    """DQN with the command mode."""


@POLICY_REGISTRY.register("ppo_command")
class PPOCommandModePolicy(PPOPolicy, DummyCommandModePolicy):
    """PPO with the command mode."""

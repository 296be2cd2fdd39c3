"""Policies with the command mode, for the serial pipelines: types ``<name>_command``."""

from ding.policy.array_update import updates_on_arrays
from ding.policy.base_policy import CommandModePolicy, Policy
from ding.policy.dqn import DQNPolicy
from ding.policy.ppo import PPOPolicy
from ding.rl_utils import get_epsilon_greedy_fn
from ding.utils import POLICY_REGISTRY
from ding.utils.types import Config


class EpsCommandModePolicy(CommandModePolicy):
    """Command mode that sets ε by the number of environment steps (``other.eps``).

    If the command info contains ``greedy``, ε is at most the schedule's ``end``.
    """

    def _init_command(self) -> None:
        eps = self._cfg.other.eps
        self.epsilon_greedy = get_epsilon_greedy_fn(eps.start, eps.end, eps.decay, eps.type)

    def _get_setting_collect(self, command_info: Config) -> Config:
        eps = self.epsilon_greedy(command_info["envstep"])
        return {"eps": min(eps, self._cfg.other.eps.end) if command_info.get("greedy") else eps}


class OpenCommandModePolicy(EpsCommandModePolicy):
    """Command mode that sets ε if the config contains a schedule (``other.eps``)."""

    def _init_command(self) -> None:
        if self._falls():
            super()._init_command()

    def _get_setting_collect(self, command_info: Config) -> Config:
        return super()._get_setting_collect(command_info) if self._falls() else {}

    def _falls(self) -> bool:
        eps = self._cfg.other.get("eps") or {}
        return all(name in eps for name in ("start", "end", "decay", "type"))


class DummyCommandModePolicy(CommandModePolicy):
    """Command mode without settings that change over time."""


def with_command_mode(policy: type[Policy]) -> type[Policy]:
    """A policy class with the command mode of the built-in policy from which it derives.

    Other classes get ε-greedy exploration if their config has a schedule (``other.eps``). A class
    that already has the mode is returned unchanged.
    """
    if not isinstance(policy, type) or issubclass(policy, CommandModePolicy):
        return policy
    mode: type[CommandModePolicy] = OpenCommandModePolicy
    for known in (DQNCommandModePolicy, PPOCommandModePolicy):
        if issubclass(policy, known.__bases__[0]):
            mode = known
    name = f"{policy.__name__.removesuffix('Policy')}CommandModePolicy"
    return type(name, (policy, mode), {"__module__": policy.__module__, "__doc__": policy.__doc__})


@updates_on_arrays
@POLICY_REGISTRY.register("dqn_command")
class DQNCommandModePolicy(DQNPolicy, EpsCommandModePolicy):
    """Deep Q-Network (Mnih et al. 2015) with the command mode, which sets ε while collecting."""


@POLICY_REGISTRY.register("ppo_command")
class PPOCommandModePolicy(PPOPolicy, DummyCommandModePolicy):
    """Proximal Policy Optimization (Schulman et al. 2017) with the command mode."""

"""The commander of a serial pipeline: it sets the collector's exploration."""

from collections.abc import Mapping
from typing import Any, Protocol

from ding.utils.default_helper import Configurable
from ding.utils.types import Settings


class _Learner(Protocol):
    @property
    def train_iter(self) -> int: ...


class _Collector(Protocol):
    @property
    def envstep(self) -> int: ...


class _CommandMode(Protocol):
    def get_setting_collect(self, facts: Mapping[str, int], /) -> dict[str, Any]: ...


class BaseSerialCommander(Configurable):
    """Commander of a serial run: gets settings from the command mode before each round.

    Args:
        cfg: Ignored.
        learner: Has ``train_iter``.
        collector: Has ``envstep``.
        evaluator: Ignored.
        replay_buffer: Ignored.
        policy: Command mode of the policy.

    Example:

        >>> from types import SimpleNamespace as Part
        >>> from ding.policy import DQNCommandModePolicy
        >>> from ding.worker import BaseSerialCommander
        >>> cfg = DQNCommandModePolicy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2)
        >>> mode = DQNCommandModePolicy(cfg).command_mode
        >>> learner, collector = Part(train_iter=0), Part(envstep=0)
        >>> commander = BaseSerialCommander({}, learner, collector, None, None, mode)
        >>> commander.step()
        {'eps': 0.95}
    """

    def __init__(
        self,
        cfg: Settings,
        learner: _Learner,
        collector: _Collector,
        evaluator: object,
        replay_buffer: object,
        policy: _CommandMode | None = None,
    ) -> None:
        self._cfg, self._learner, self._collector = cfg, learner, collector
        self._evaluator, self._replay_buffer, self._policy = evaluator, replay_buffer, policy

    def step(self) -> dict[str, Any]:
        """Current collect settings, such as ``{"eps": 0.9}``: keyword arguments of ``forward``."""
        assert self._policy is not None, "set the policy's command mode first"
        facts = {"learner_step": self._learner.train_iter, "envstep": self._collector.envstep}
        return self._policy.get_setting_collect(facts)

    @property
    def policy(self) -> _CommandMode | None:
        """The command mode that provides the settings."""
        return self._policy

    @policy.setter
    def policy(self, _policy: _CommandMode | None) -> None:
        self._policy = _policy

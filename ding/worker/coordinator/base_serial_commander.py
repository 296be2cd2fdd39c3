"""The commander of a serial pipeline: it sets the collector's exploration."""

from collections.abc import Mapping
from typing import Any, cast

from easydict import EasyDict

from ding.utils.class_config import class_config


class BaseSerialCommander:
    """Asks the command-mode policy for its settings before each round.

    Args:
        cfg: Commander config.
        learner: The learner, for its ``train_iter``.
        collector: The collector, for its ``envstep``.
        evaluator: The evaluator.
        replay_buffer: The replay buffer.
        policy: Command mode of the policy.
    """

    config: dict[str, Any] = {}

    @classmethod
    def default_config(cls) -> EasyDict:
        """Defaults of this class, merged over those of its base classes."""
        return class_config(cls)

    def __init__(
        self,
        cfg: Mapping[str, Any],
        learner: Any,
        collector: Any,
        evaluator: Any,
        replay_buffer: Any,
        policy: Any = None,
    ) -> None:
        self._cfg = cfg
        self._learner = learner
        self._collector = collector
        self._evaluator = evaluator
        self._replay_buffer = replay_buffer
        self._policy = policy

    def step(self) -> dict[str, Any]:
        """Collect settings for now, such as ``{"eps": 0.9}``: keyword arguments of ``forward``."""
        facts = {"learner_step": self._learner.train_iter, "envstep": self._collector.envstep}
        return cast("dict[str, Any]", self._policy.get_setting_collect(facts))

    @property
    def policy(self) -> Any:
        return self._policy

    @policy.setter
    def policy(self, _policy: Any) -> None:
        self._policy = _policy

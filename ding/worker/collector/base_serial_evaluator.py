"""The interface of serial evaluators."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from easydict import EasyDict

from ding.utils import SERIAL_EVALUATOR_REGISTRY, import_module
from ding.utils.class_config import class_config
from ding.worker.collector.vector_eval_monitor import VectorEvalMonitor

__all__ = ["ISerialEvaluator", "VectorEvalMonitor", "create_serial_evaluator"]


class ISerialEvaluator(ABC):
    """Judges a policy, keeps the best one, and tells when it is good enough."""

    config: dict[str, Any] = {}

    # What pipelines ask of an evaluator that has it.
    #: Best and newest result.
    best: Any = None
    last: Any = None
    #: Iteration at which :meth:`should_eval` last called for an evaluation; -1 for never.
    last_eval_iter: int = -1
    #: Called at each episode's end: source, env id, return, length, envstep, train_iter.
    on_episode: Callable[[str, int, float, int, int, int], None] | None = None
    #: Called before each step; what it raises ends the evaluation.
    before_step: Callable[[], None] | None = None

    @classmethod
    def default_config(cls) -> EasyDict:
        """Defaults of this class, merged over those of its base classes."""
        return class_config(cls)

    @abstractmethod
    def reset_env(self, _env: Any | None = None) -> None:
        """Reset the environments, or replace and launch them."""

    @abstractmethod
    def reset_policy(self, _policy: Any = None) -> None:
        """Reset the policy, or replace it."""

    @abstractmethod
    def reset(self, _policy: Any = None, _env: Any | None = None) -> None:
        """Reset or replace both, and forget the best result."""

    @abstractmethod
    def close(self) -> None:
        """Close the environments and the log."""

    @abstractmethod
    def should_eval(self, train_iter: int) -> bool:
        """Whether an evaluation is due; true at most once for each iteration."""

    def put_off(self) -> None:  # noqa: B027 - not every evaluator can be left midway
        """The evaluation that :meth:`should_eval` last called for did not come about."""

    @abstractmethod
    def eval(
        self,
        save_ckpt_fn: Callable | None = None,
        train_iter: int = -1,
        envstep: int = -1,
        n_episode: int | None = None,
    ) -> Any:
        """Evaluate; returns whether training may stop, and what was seen."""


def create_serial_evaluator(cfg: EasyDict, **kwargs: Any) -> ISerialEvaluator:
    """Build the registered evaluator ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    return SERIAL_EVALUATOR_REGISTRY.build(cfg.type, cfg=cfg, **kwargs)

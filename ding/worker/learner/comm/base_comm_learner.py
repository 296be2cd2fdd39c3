"""The part of a learner that talks to the rest of a parallel run."""

import threading
from abc import ABC, abstractmethod
from typing import Any, Protocol

from easydict import EasyDict

from ding.policy import create_policy
from ding.torch_utils.threads import fit_threads
from ding.utils import COMM_LEARNER_REGISTRY, EasyTimer, get_task_uid, import_module
from ding.utils.data import IDataLoader
from ding.worker.learner.base_learner import BaseLearner, create_learner
from ding.worker.learner.comm.learner_group import LearnerGroup
from ding.worker.learner.learner_hook import LearnerHook


class LearnerLink(Protocol):
    """What a learner calls while it trains."""

    def send_policy(self, state_dict: dict[str, Any]) -> None: ...

    def get_data(self, batch_size: int) -> list: ...

    def send_learn_info(self, learn_info: dict[str, Any]) -> None: ...


class BaseCommLearner(ABC):
    """Gets training tasks and data from a coordinator, and gives weights and results back.

    Args:
        cfg: ``multi_gpu``: whether this is one of several processes that train together; the
            environment says which, and they meet anew for each task.

    Attributes:
        failed: Why this learner cannot go on and its process should end; ``None`` while it can.
    """

    def __init__(self, cfg: EasyDict) -> None:
        self._cfg = cfg
        self._learner_uid = get_task_uid()
        self._timer = EasyTimer()  # for subclasses
        self._multi_gpu = bool(cfg.get("multi_gpu", False))
        self._group = LearnerGroup() if self._multi_gpu else None
        self._rank, self._world_size = (0, 1) if self._group is None else self._group.launched_as
        self._end_flag = True
        self._ended = threading.Event()
        self.failed: str | None = None

    @abstractmethod
    def send_policy(self, state_dict: dict[str, Any]) -> None:
        """Publish weights; called by a hook of the learner.

        Args:
            state_dict: ``model``, and ``iter``, the number of updates.
        """

    @abstractmethod
    def get_data(self, batch_size: int) -> list:
        """A batch: samples, or functions that each load one. Called by the learner's loader."""

    @abstractmethod
    def send_learn_info(self, learn_info: dict[str, Any]) -> None:
        """Take the results of an update; called by a hook of the learner."""

    def start(self) -> None:
        """Begin to take tasks."""
        self._end_flag = False
        self._ended.clear()

    def close(self) -> None:
        """End; closing twice does nothing."""
        if self._group is not None:
            self._group.close()
        self._end_flag = True
        self._ended.set()

    def join(self, timeout: float | None = None) -> bool:
        """Whether it has ended, by `close` or because it `failed`, within ``timeout`` seconds."""
        return self._ended.wait(timeout)

    def _fail(self, cause: str) -> None:
        """Note why this learner cannot go on; the first cause counts."""
        self.failed = self.failed or cause
        self._ended.set()

    @property
    @abstractmethod
    def hooks4call(self) -> list[LearnerHook]:
        """Hooks to register in a learner that was made, so that it gives what it has learned."""

    def _create_learner(
        self,
        task_info: dict[str, Any],
        link: LearnerLink | None = None,
        loader: IDataLoader | None = None,
    ) -> BaseLearner:
        """Make the learner of a task; its hooks are the caller's to register.

        Args:
            task_info: ``learner_cfg`` (with ``exp_name``) and ``policy``.
            link: What the learner calls, if not this object.
            loader: What gives it whole batches, if not ``get_data``.
        """
        learner_cfg = EasyDict(task_info["learner_cfg"])
        learner = create_learner(
            learner_cfg,
            dist_info=(self._rank, self._world_size),
            exp_name=learner_cfg.get("exp_name", "default_experiment"),
        )
        for name in ("get_data", "send_policy", "send_learn_info"):
            setattr(learner, name, getattr(link or self, name))
        policy_cfg = EasyDict(task_info["policy"])
        if self._world_size > 1:
            policy_cfg.multi_gpu = True
        learner.policy = create_policy(policy_cfg, enable_field=["learn"]).learn_mode
        fit_threads(learner.policy.get_attribute("model"))
        learner.setup_dataloader(loader)
        return learner


def create_comm_learner(cfg: EasyDict) -> BaseCommLearner:
    """Build the registered comm learner ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    return COMM_LEARNER_REGISTRY.build(cfg.type, cfg=cfg)

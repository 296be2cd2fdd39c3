"""The base class of parallel collectors: a loop in a thread, and a link to the learner."""

import logging
import threading
import time
from abc import ABC, abstractmethod

from easydict import EasyDict

from ding.envs import BaseEnvManager
from ding.utils import PARALLEL_COLLECTOR_REGISTRY, get_task_uid, import_module
from ding.utils.autolog import BaseTime, LoggedModel, LoggedValue
from ding.utils.default_helper import Configurable, deep_merge_dicts
from ding.utils.errors import ConfigError, EnvTimeoutError
from ding.utils.types import State
from ding.worker.collector.collector_link import LINK_FUNCTIONS, CollectorLink
from ding.worker.collector.step_watch import StepWatch
from ding.worker.collector.steps import Envs, Mode

_logger = logging.getLogger(__name__)


class TaskClosed(Exception):
    """The task was closed while the collector waited; the collector must stop."""


class TickMonitor(LoggedModel[BaseTime]):
    """Times of a collector, in seconds; ``monitor.avg["step_time"]()`` is the window's mean."""

    step_time = LoggedValue(float)
    send_time = LoggedValue(float)
    sample_num = LoggedValue(float)

    def __init__(self, time_: BaseTime, expire: int | float) -> None:
        super().__init__(time_, expire)
        for name in ("step_time", "send_time", "sample_num"):
            self.register_attribute_value("avg", name, lambda name=name: self._mean(name))

    def _mean(self, name: str) -> float:
        values = [float(value) for _, value in self.range_values[name]()]
        return sum(values) / len(values) if values else 0.0


class BaseParallelCollector(CollectorLink, Configurable, ABC):
    """Collects for a learner in another process.

    A worker builds one per task, attaches itself (`attach`) and calls `start` in a thread; `start`
    returns when the task is done or `close` was called. A subclass defines `_step`, and optionally
    `_begin` and `_finish`; or it overrides `start`. A collector without a worker is its own
    `CollectorLink`; the link functions must then be set on it.

    Args:
        cfg: The ``collector_cfg`` of a task, merged over `default_config`.
    """

    #: What the task waits for, as shown in the status.
    waits_for: str | None = None

    def __init__(self, cfg: EasyDict) -> None:
        self._cfg = EasyDict(deep_merge_dicts(self.default_config(), cfg))
        self._ended = threading.Event()
        uid = get_task_uid()
        super().__init__(uid, uid)
        self._link: CollectorLink = self
        self._policy: Mode | list[Mode] = None
        self._env_manager: Envs = None
        self._watch = StepWatch()
        self._start_time = time.monotonic()

    def attach(self, link: CollectorLink) -> None:
        """Set the worker that provides policies and takes samples."""
        self._link = link
        # Custom collectors call these functions on themselves, as DI-engine documents.
        for name in LINK_FUNCTIONS:
            setattr(self, name, getattr(link, name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._collector_uid})"

    def info(self, s: str) -> None:
        """Log a line as information."""
        _logger.info("%s", s)

    def debug(self, s: str) -> None:
        """Log a line for debugging."""
        _logger.debug("%s", s)

    def error(self, s: str) -> None:
        """Log a line as an error."""
        _logger.error("%s", s)

    def start(self) -> None:
        """Collect until the task is done or the collector is closed.

        Raises:
            EnvError: An environment failed.
            ConfigError: The task's config is wrong.
        """
        try:
            self._begin()
            while not self._ended.is_set() and self._step():
                pass
            if not self._ended.is_set():
                self._finish()
        except TaskClosed:
            pass
        finally:
            self._watch.rest()
            self._ended.set()
            if self._link is self:
                self.parts.close()  # no worker keeps them

    def close(self) -> None:
        """Ask the collector to stop after the current step. Closing twice does nothing."""
        self._ended.set()

    @property
    def closed(self) -> bool:
        """Whether the collector has ended."""
        return self._ended.is_set()

    def _begin(self) -> None:
        """Called before the first step."""

    def _step(self) -> bool:
        """Do one piece of work; returns whether there is more."""
        raise NotImplementedError(f"{type(self).__name__} defines neither _step() nor start()")

    def _finish(self) -> None:
        """Called when the work is done; not called if the collector was closed before."""

    @abstractmethod
    def get_finish_info(self) -> State:
        """The task's report to the coordinator."""

    def progress(self) -> State:
        """The progress of the task; called by another thread."""
        return {"cur_episode": 0, "cur_sample": 0, "cur_step": 0}

    def episode_info(self) -> list[list[float]]:
        """Environment, return and length of each episode, for the table of the run's episodes."""
        return []

    def overdue(self, thread_id: int | None) -> EnvTimeoutError | None:
        """The error if environments hang in the thread ``thread_id``, which runs `start`."""
        return self._watch.overdue(thread_id)

    @property
    def policy(self) -> Mode | list[Mode]:
        """The collect or eval mode that acts; a list with one mode per player in a battle."""
        return self._policy

    @policy.setter
    def policy(self, _policy: Mode | list[Mode]) -> None:
        self._policy = _policy

    @property
    def env_manager(self) -> BaseEnvManager:
        """The manager of the collector's environments."""
        manager: BaseEnvManager = self._env_manager
        return manager

    @env_manager.setter
    def env_manager(self, _env_manager: BaseEnvManager) -> None:
        self._env_manager = _env_manager

    @property
    def compressor(self) -> str:
        """Name of the compressor of the samples."""
        return str(self._cfg.get("compressor", "none"))

    def _require_link(self) -> CollectorLink:
        missing = [name for name in LINK_FUNCTIONS if not hasattr(self._link, name)]
        if missing:
            raise ConfigError(
                f"{type(self).__name__} has no {', '.join(missing)}: call attach(worker), or set "
                "them, before start()"
            )
        return self._link


def create_parallel_collector(cfg: EasyDict) -> BaseParallelCollector:
    """Build the registered collector ``cfg.type``; ``cfg.import_names`` are imported first."""
    return get_parallel_collector_cls(cfg)(cfg=cfg)


def get_parallel_collector_cls(cfg: EasyDict) -> type[BaseParallelCollector]:
    """The registered collector class ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    found: type[BaseParallelCollector] = PARALLEL_COLLECTOR_REGISTRY.get(cfg.type)  # type: ignore[assignment]
    return found

"""What connects collectors to the rest of a run, whatever the data travels by."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from easydict import EasyDict

from ding.utils import COMM_COLLECTOR_REGISTRY, get_task_uid, import_module
from ding.utils.errors import ConfigError, EnvError
from ding.worker.collector.base_parallel_collector import (
    BaseParallelCollector,
    create_parallel_collector,
)
from ding.worker.collector.collector_link import LinkDefaults
from ding.worker.collector.comm.collect_task import CollectTask


class BaseCommCollector(LinkDefaults, ABC):
    """A worker that builds collectors for tasks and is their `CollectorLink`.

    A comm type of one's own defines the three abstract methods, and gets tasks by whatever way it
    has: `begin_task` and `end_task` run them; `CollectTask.poll` tells what there is to report.

    Args:
        cfg: The worker's config: ``name`` and what the comm type reads.
    """

    def __init__(self, cfg: Any) -> None:
        self._cfg = EasyDict(cfg)
        uid = get_task_uid()
        super().__init__(uid, str(self._cfg.get("name", uid)))
        self._end_flag = True
        self._ended = threading.Event()
        self._failed: str | None = None
        self._task: CollectTask | None = None

    # ------------------------------------------------------------------ the link of collectors

    @abstractmethod
    def get_policy_update_info(self, path: str) -> Any:
        """The newest published state of a policy, as its ``load_state_dict`` takes it, with the
        training iteration as ``iter``.

        Raises:
            FileNotFoundError: None was published yet (or return ``None``).
        """

    @abstractmethod
    def send_metadata(self, metadata: Any) -> None:
        """Tell the coordinator of samples that were sent; ``metadata['data_id']`` names them."""

    @abstractmethod
    def send_stepdata(self, stepdata: Any, *args: Any) -> None:
        """Bring samples to where learners find them.

        Define it as ``send_stepdata(path, stepdata)``: it is called with their name and with them.
        """

    # ------------------------------------------------------------------ tasks

    @property
    def task(self) -> CollectTask | None:
        """The task that runs."""
        return self._task

    def begin_task(self, task_info: Mapping[str, Any]) -> CollectTask:
        """Let a new collector work on a task, in a thread; one that still runs is closed.

        Raises:
            ConfigError: A field of the task is missing.
        """
        if self._task is not None:
            self.end_task()
        task = CollectTask(task_info, self._create_collector(task_info), self._drop)
        self._task = task
        task.start()
        return task

    def end_task(self) -> None:
        """Stop the task that runs, if there is one; environments that failed are replaced."""
        task, self._task = self._task, None
        if task is None:
            return
        task.close()
        if task.hangs or isinstance(task.error, EnvError):
            self.parts.discard_envs()

    def _create_collector(self, task_info: Mapping[str, Any]) -> BaseParallelCollector:
        """Build the collector that a task names, and be its link."""
        cfg = task_info.get("collector_cfg")
        if not isinstance(cfg, Mapping) or not cfg.get("type"):
            raise ConfigError(
                f"the task's collector_cfg is {cfg!r:.200}; expected a dict with 'type', the name "
                "of a registered parallel collector, for instance 'zergling'"
            )
        collector = create_parallel_collector(EasyDict(cfg))
        collector.attach(self)
        return collector

    def _drop(self, metadata: Mapping[str, Any]) -> None:
        """Samples were sent that the coordinator will never be told of."""

    # ------------------------------------------------------------------ life

    def start(self) -> None:
        """Begin to work."""
        self._end_flag = False
        self._ended.clear()

    def close(self) -> None:
        """Stop the task and close the environments. Closing twice does nothing."""
        self._end_flag = True
        self._ended.set()
        self.end_task()
        self.parts.close()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the worker has nothing more to do; returns whether it has not."""
        return self._ended.wait(timeout)

    @property
    def failed(self) -> str | None:
        """Why the worker cannot go on, if it cannot."""
        return self._failed

    @property
    def collector_uid(self) -> str:
        """Unlike that of any other worker, or of this one in its lives before."""
        return self._collector_uid


def create_comm_collector(cfg: EasyDict) -> BaseCommCollector:
    """Build the registered comm collector ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    return COMM_COLLECTOR_REGISTRY.build(cfg.type, cfg=cfg)

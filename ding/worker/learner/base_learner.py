"""The learner: updates a policy, and calls hooks around the updates."""

import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from easydict import EasyDict

from ding.data import Columns
from ding.policy import Policy
from ding.policy.modes import learn_function
from ding.torch_utils import CountVar, auto_checkpoint, build_log_buffer
from ding.utils import LEARNER_REGISTRY, build_logger, get_rank, get_world_size
from ding.utils.data import AsyncDataLoader, IDataLoader
from ding.utils.default_helper import Configurable
from ding.utils.errors import ConfigError, DataError, require_entries
from ding.utils.log_writer import Writer
from ding.utils.registry_factory import component
from ding.utils.types import State
from ding.worker.learner.learner_hook import (
    Hook,
    LearnerHook,
    LearnMode,
    LogVars,
    Rewards,
    SaveCkptHook,
    TrainData,
    add_learner_hook,
    build_learner_hook_by_cfg,
)
from ding.worker.learner.monitor import MonitorFeed, TickMonitor, get_simple_monitor_type

__all__ = ["BaseLearner", "TickMonitor", "create_learner", "get_simple_monitor_type"]

#: An iterator of whole batches that can be closed.
Loader: TypeAlias = IDataLoader | Generator[TrainData, None, None]


@LEARNER_REGISTRY.register("base")
class BaseLearner(Configurable):
    """Trains a policy on batches that are passed to `train`, or that `start` fetches.

    Args:
        cfg: Learner config.
        policy: Learn mode; may be set later.
        tb_logger: Writer of scalars that the caller owns; by default the learner creates one.
        dist_info: Rank and world size.
        exp_name: Folder of the run; checkpoints are saved in ``<exp_name>/ckpt``.
        instance_name: Prefix of the log and its scalars.

    Attributes:
        checkpoint_facts: Further entries for checkpoints, such as the result of an evaluation.
        ckpt_name: Name of the next checkpoint; ``None`` to name it after the iteration.
        ckpt_prefix: Prefix of the names of numbered checkpoints.
        collector_envstep: Environment steps collected when the newest batch was trained on.
        last_iter: Counter of updates.
        log_buffer: Values logged by the newest update: ``scalar``, ``scalars``, ``histogram``.
        logger: ``None`` on ranks that do not log.
        on_checkpoint: Called with the path of each saved checkpoint.
        reward_model: Also saved in checkpoints; a pipeline sets it.

    Example:

        >>> from ding.policy import DQNPolicy
        >>> from ding.worker import BaseLearner
        >>> cfg = DQNPolicy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2)
        >>> learner = BaseLearner(BaseLearner.default_config(), DQNPolicy(cfg).learn_mode)
        >>> learner.train_iter  # each learner.train(samples, envstep) is one update
        0
        >>> learner.close()
    """

    ckpt_name: str | None
    ckpt_prefix: str
    collector_envstep: int
    exp_name: str
    instance_name: str
    last_iter: CountVar
    log_buffer: dict[str, LogVars]
    logger: logging.Logger
    rank: int
    tb_logger: Writer | None
    world_size: int

    config = dict(
        train_iterations=int(1e9),
        dataloader=dict(num_workers=0),
        log_policy=True,
        is_multitask_pipeline=False,
        only_monitor_rank0=True,
        hook=dict(
            load_ckpt_before_run="",
            log_show_after_iter=100,
            save_ckpt_after_iter=10000,
            save_ckpt_after_run=True,
            keep_ckpt=5,
        ),
    )

    def __init__(
        self,
        cfg: EasyDict,
        policy: learn_function | LearnMode | None = None,
        tb_logger: Writer | None = None,
        dist_info: tuple[int, int] | None = None,
        exp_name: str | None = "default_experiment",
        instance_name: str | None = "learner",
    ) -> None:
        self._cfg = cfg
        self.exp_name = exp_name  # type: ignore[assignment]
        self.instance_name = instance_name  # type: ignore[assignment]
        self._end_flag = False
        self._dataloader: Loader | None = None
        self.rank, self.world_size = dist_info or (get_rank(), get_world_size())
        self.last_iter = CountVar(0)
        self._batch_count = 0
        self.collector_envstep = 0
        self.ckpt_name, self.ckpt_prefix = None, ""
        self.checkpoint_facts: State = {}
        self.reward_model: Rewards | None = None
        self.on_checkpoint: Callable[[str], None] | None = None
        self._learner_done = False
        self._priority_info: Callable[[], LogVars] = dict
        self.log_buffer = {k: build_log_buffer() for k in ("scalar", "scalars", "histogram")}
        self._set_up_logging(tb_logger)
        self._hooks: dict[str, list[Hook]] = build_learner_hook_by_cfg(cfg.hook)
        self._policy: LearnMode | None = None
        if policy is not None:
            self.policy = policy

    def _set_up_logging(self, tb_logger: Writer | None) -> None:
        self._feed: MonitorFeed | None = None
        self._usual_numbers: frozenset[str] = frozenset()
        self._train_time = self._data_time = 0.0
        self.logger = None  # type: ignore[assignment]
        self._owns_writer = tb_logger is None
        self.tb_logger = tb_logger
        if self.rank == 0 or not self.only_monitor_rank0:
            name = self.instance_name if self.rank == 0 else f"{self.instance_name}_{self.rank}"
            path = os.path.join(self.exp_name or ".", "log", name or "learner")
            self.logger, writer = build_logger(  # type: ignore[assignment]
                path, name, need_tb=self._owns_writer
            )
            self.tb_logger = writer if self._owns_writer else tb_logger

    def register_hook(self, hook: LearnerHook) -> None:
        """Add a hook at its position."""
        add_learner_hook(self._hooks, hook)

    def hooks(self, position: str) -> list[Hook]:
        """The hooks of a position, in call order."""
        return list(self._hooks[position])

    def train(
        self, data: TrainData, envstep: int = -1, policy_kwargs: dict[str, Any] | None = None
    ) -> list[LogVars]:
        """Update the policy with a batch, once or, for some on-policy policies, many times.

        Args:
            data: Rows or columns of a replay buffer or collector.
            envstep: Environment steps collected so far, for the log; negative if unknown.
            policy_kwargs: Keyword arguments of the policy's ``forward``.

        Returns:
            The policy's log without priorities: one dict per update, possibly empty.

        Raises:
            ConfigError: No policy is set.
            DataError: The policy returned a loss that is NaN.
        """
        if self._policy is None:
            raise ConfigError(f"{self.instance_name} has no policy: set learner.policy first")
        if envstep >= 0:
            self.collector_envstep = envstep
        self._priority_info = dict  # drop the previous batch's priorities
        self.call_hook("before_iter")
        start = time.perf_counter()
        # The policy may modify rows, or convert columns to rows.
        is_columnar = isinstance(data, Columns) and data.is_columnar
        items = data.apart() if is_columnar else _identity(data)
        output = self._policy.forward(data, **(policy_kwargs or {}))
        self._train_time = time.perf_counter() - start
        logged = []
        for log_vars in output if isinstance(output, list) else [output]:
            logged.append(dict(log_vars or {}))
            priority = logged[-1].pop("priority", None)
            if priority is not None:
                self._priority_info = partial(_prioritised, priority, items)
            self._take_log(logged[-1])
            self.call_hook("after_iter")
            self.last_iter.add(1)
        return logged

    def _take_log(self, log_vars: LogVars) -> None:
        scalar = self.log_buffer["scalar"]
        for name, value in log_vars.items():
            if name[:1] == "[" and name.startswith(("[scalars]", "[histogram]")):
                kind, _, name = name[1:].partition("]")
                self.log_buffer[kind][name] = value
            else:
                scalar[name] = value
                # Not for tensors: reading a value waits for all queued GPU work.
                if "loss" in name and type(seen := scalar[name]) is float and seen != seen:
                    raise DataError(
                        f"{self.instance_name}: the policy returned {name} = NaN at iteration "
                        f"{self.last_iter.val}: look for NaN in rewards and observations, lower "
                        "learn.learning_rate or clip gradients, and continue from a checkpoint "
                        "before it"
                    )

    @auto_checkpoint
    def start(self) -> None:
        """Train ``train_iterations`` times on batches that ``get_data`` fetches (parallel mode).

        Ends early if the loader is closed; counts continue from a loaded state. After an error, a
        checkpoint is saved before the error propagates.
        """
        # Reset here, not at the end: a finished run's state must count all of its batches, so that
        # a larger limit continues the run.
        if self._learner_done:
            self._batch_count = 0
        self._end_flag = self._learner_done = False
        self.call_hook("before_run")
        while self._batch_count < self._cfg.train_iterations:
            if self._dataloader is None:
                raise ConfigError(
                    f"{self.instance_name} has nothing to fetch batches with: set learner.get_data "
                    "and call setup_dataloader() before start()"
                )
            began = time.perf_counter()
            try:
                data = next(self._dataloader)
            except StopIteration:
                break
            self._data_time = time.perf_counter() - began
            if self._end_flag:
                break
            self.train(data)
            self._batch_count += 1
        else:
            self._learner_done = True
        self.call_hook("after_run")

    def setup_dataloader(self, loader: Loader | None = None) -> None:
        """Create the loader that prefetches batches, or use ``loader``, which `close` closes.

        Raises:
            ConfigError: ``learner.get_data(batch_size)`` was not set.
        """
        if loader is not None:
            self._dataloader = loader
            return
        if not hasattr(self, "get_data"):
            raise ConfigError(f"{self.instance_name}: set learner.get_data first")
        cfg = self._cfg.dataloader
        batch_size = self.policy.get_attribute("batch_size")
        device = self.policy.get_attribute("device")
        self._dataloader = AsyncDataLoader(
            self.get_data,
            batch_size,
            device,
            cfg.get("chunk_size", batch_size),
            lambda batch: batch,
            cfg.num_workers,
        )

    def close(self) -> None:
        """Close the loader and the learner's own writer. Closing twice does nothing."""
        if self._end_flag:
            return
        self._end_flag = True
        if self._dataloader is not None:
            self._dataloader.close()
        if self._owns_writer and self.tb_logger is not None:
            self.tb_logger.flush()
            self.tb_logger.close()

    def call_hook(self, name: str) -> None:
        """Call the hooks of a position, lowest priority value first; hooks registered during the
        call run from the next call on."""
        for hook in self.hooks(name):
            hook(self)

    def info(self, s: str) -> None:
        """Write a line to the log."""
        if self.logger is not None:
            self.logger.info(s)

    def debug(self, s: str) -> None:
        """Write a line to the log at debug level."""
        if self.logger is not None:
            self.logger.debug(s)

    def save_checkpoint(self, ckpt_name: str | None = None) -> None:
        """Save now, as ``<exp_name>/ckpt/<ckpt_name>`` or under the iteration's number.

        Calls the hook ``save_ckpt_after_run``, so that a custom replacement of it is used.

        Raises:
            CheckpointWriteError: The file cannot be written; an earlier file is left intact.
        """
        named = (hook for hook in self._hooks["after_run"] if hook.name == "save_ckpt_after_run")
        hook = next(named, None)
        if hook is None:
            # At positions other than after_iter, a failed write raises an error, as the caller
            # expects.
            hook = SaveCkptHook("save_ckpt_after_run", 20, position="after_run")
        self.ckpt_name, before = ckpt_name, self.ckpt_name
        try:
            hook(self)
        finally:
            self.ckpt_name = before

    def update_monitor(self) -> None:
        """Add the newest log values to the monitor."""
        if self._feed is not None:
            times = {"train_time": self._train_time, "data_time": self._data_time}
            self._feed.add({**self.log_buffer["scalar"], **times})

    def log_monitor(self) -> None:
        """Write the monitor's averages to the log and the writer."""
        monitor = self.monitor
        if monitor is None:
            return
        assert self._feed is not None
        times = ["train_time"] if self._dataloader is None else ["train_time", "data_time"]
        names = [*self._feed.names(), *times]
        averages = {f"{name}_avg": monitor.avg[name]() for name in names}
        shown = ", ".join(f"{name}={value:.6g}" for name, value in averages.items())
        self.info(f"iteration {self.last_iter.val}: {shown}")
        writer = self.tb_logger
        if writer is None:
            return
        for axis, at in (("iter", self.last_iter.val), ("step", self.collector_envstep)):
            tag = f"{self.instance_name}_{axis}"
            for name, value in averages.items():
                writer.add_scalar(f"{tag}/{name}", value, at)
            for name, values in self.log_buffer["scalars"].items():
                writer.add_scalars(f"{tag}/{name}", values, at)
            for name, values in self.log_buffer["histogram"].items():
                writer.add_histogram(f"{tag}/{name}", values, at)

    def state_dict(self) -> State:
        """Counters and the window of the monitor, without the policy's state."""
        return {
            "last_iter": self.last_iter.val,
            "batch_count": self._batch_count,
            "collector_envstep": self.collector_envstep,
            "monitor": [] if self._feed is None else self._feed.window(),
        }

    def load_state_dict(self, state_dict: State) -> None:
        """Restore counters and averages.

        Raises:
            CheckpointError: The state is not a learner's.
        """
        require_entries("a learner", state_dict, ("last_iter", "collector_envstep"))
        self.last_iter.update(state_dict["last_iter"])
        self._batch_count = state_dict.get("batch_count", 0)
        self.collector_envstep = state_dict["collector_envstep"]
        if self._feed is not None:
            window = state_dict.get("monitor")
            self._feed.load_window(window if isinstance(window, list) else [])  # an old format

    @property
    def priority_info(self) -> LogVars:
        """New priorities of the newest batch's items, for the buffer; empty if there are none."""
        return self._priority_info()

    @priority_info.setter
    def priority_info(self, info: LogVars) -> None:
        self._priority_info = lambda: info

    @property
    def learn_info(self) -> LogVars:
        """``learner_step``, ``priority_info`` and ``learner_done``, for a commander."""
        return {
            "learner_step": self.last_iter.val,
            "priority_info": self.priority_info,
            "learner_done": self._learner_done,
        }

    @property
    def train_iter(self) -> int:
        """Number of updates so far."""
        return self.last_iter.val

    @property
    def monitor(self) -> TickMonitor:
        """Times and losses of the last iterations; ``None`` on ranks that do not monitor."""
        return None if self._feed is None else self._feed.monitor  # type: ignore[return-value]

    @property
    def own_numbers(self) -> dict[str, float]:
        """Means of recent values that only a custom policy logs, not its base class."""
        return {} if self._feed is None else self._feed.means(self._usual_numbers)

    @property
    def only_monitor_rank0(self) -> bool:
        """Whether ranks other than 0 neither log nor monitor."""
        return bool(self._cfg.get("only_monitor_rank0", True))

    @property
    def policy(self) -> LearnMode:
        """The learn mode that is trained."""
        return self._policy  # type: ignore[return-value]

    @policy.setter
    def policy(self, _policy: LearnMode) -> None:
        self._policy = _policy
        if self.rank == 0 or not self.only_monitor_rank0:
            declared = _policy.monitor_vars
            policy: object = getattr(declared, "__self__", None)
            every_number, self._usual_numbers = False, frozenset(declared())
            if isinstance(policy, Policy):
                every_number = policy.logs_every_number()
                self._usual_numbers = policy.usual_numbers()
            self._feed = MonitorFeed(list(dict.fromkeys(declared())), every_number)
            if self._cfg.get("log_policy", True):
                self.info(f"policy: {_policy.info()}")


_IDENTITY = ("replay_buffer_idx", "replay_unique_id")


def _identity(data: TrainData) -> LogVars:
    """The replay buffer's ids of a batch's items."""
    columns = data.columns_or_none() if isinstance(data, Columns) else None
    if columns is not None:
        return {name: columns[name] for name in _IDENTITY if name in columns}
    if isinstance(data, Iterable) and not isinstance(data, dict):
        rows = [row for row in data if isinstance(row, dict)]
        return {name: [row[name] for row in rows] for name in _IDENTITY if rows and name in rows[0]}
    return {}


def _prioritised(priority: Any, items: Columns | LogVars) -> LogVars:
    """Priorities with the ids of their items; ids of columnar items are looked up when read."""
    return {"priority": priority, **(_identity(items) if isinstance(items, Columns) else items)}


def create_learner(cfg: Mapping[str, Any], **kwargs: object) -> BaseLearner:
    """Build the registered learner ``cfg.type``; ``cfg.import_names`` are imported first.

    Args:
        cfg: The learner's ``type`` (default: ``base``), and its keys that differ from the defaults.
        kwargs: Further arguments of `BaseLearner`.

    Example:

        >>> from ding.worker import create_learner
        >>> type(create_learner({"type": "base"})).__name__
        'BaseLearner'
    """
    type_ = "base" if isinstance(cfg, Mapping) and "type" not in cfg else None
    cls, cfg = component(LEARNER_REGISTRY, cfg, type_)
    learner: BaseLearner = cls(cfg=cfg, **kwargs)
    return learner

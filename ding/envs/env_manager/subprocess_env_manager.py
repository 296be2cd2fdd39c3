"""Environments stepped in worker processes, several in each, with shared memory."""

import math
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from multiprocessing import connection
from multiprocessing.connection import Connection

from ding.data.shm_buffer import ShmBuffer
from ding.envs.env.base_env import BaseEnvTimestep
from ding.envs.env_manager._env_types import GroupSpec, is_abnormal
from ding.envs.env_manager._worker import serve
from ding.envs.env_manager._worker_link import WorkerLink
from ding.envs.env_manager._worker_pool import WorkerPool
from ding.envs.env_manager.base_env_manager import BaseEnvManager, BaseEnvManagerV2
from ding.envs.vector_step import EnvFn
from ding.utils import ENV_MANAGER_REGISTRY, CloudPickleWrapper
from ding.utils.errors import ConfigError
from ding.utils.processes import ChildProcess, close_inherited_ends
from ding.utils.types import Config

__all__ = [
    "AsyncSubprocessEnvManager",
    "EnvSupervisor",
    "ShmBuffer",
    "SubprocessEnvManagerV2",
    "SyncSubprocessEnvManager",
    "is_abnormal_timestep",
]


def is_abnormal_timestep(timestep: BaseEnvTimestep) -> bool:
    """Whether the environment failed and was recovered, so that the step does not count."""
    return is_abnormal(timestep.info)


@ENV_MANAGER_REGISTRY.register("async_subprocess")
class AsyncSubprocessEnvManager(BaseEnvManager):
    """Vectorised environments in worker processes; a step waits for some of them only.

    A step takes actions for the environments that wait for one and returns those that have
    answered meanwhile, which may be others: read the ids. After it at least one environment waits
    for an action, unless all are done.

    Config keys, in addition to those of `BaseEnvManager`:
        shared_memory: Whether observations that are arrays of one shape, or nested dicts of such,
            travel in shared memory; others are pickled.
        context: How processes start: ``fork``, ``spawn`` or ``forkserver``.
        envs_per_worker: Environments per process; ``None``: one, in the synchronous manager as
            many as spread them over the process's cores, as a step wakes each worker once.
        wait_num: How many environments a step waits for.
        step_wait_timeout: Seconds after which it returns with fewer, but at least one.
        connect_timeout: Seconds that making the environments may take.
        copy_on_get, reset_inplace: Accepted for old configs: ``ready_obs`` always gives copies, and
            workers always reset in place.

    If a process dies, a warning is logged and another one makes its environments again. Their
    episodes are lost (steps are abnormal), and the next ones have other seeds; so are their states,
    but for the statistics of normalising wrappers. The sixth death within 100 steps ends in
    ``EnvDiedError``. A process in which no signal ends what hangs is lost in the same way if both
    ``step_timeout`` and ``reset_timeout`` are set; the ``max_retry``-th time within 100 steps ends
    in ``EnvTimeoutError``.

    Example:

        >>> from ding.envs import AsyncSubprocessEnvManager, DingEnvWrapper
        >>> make_env = lambda: DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
        >>> envs = AsyncSubprocessEnvManager([make_env] * 2)
        >>> envs.launch()
        >>> timesteps = envs.step({env_id: 0 for env_id in envs.ready_obs})
        >>> set(timesteps) <= {0, 1}
        True
        >>> envs.close()
    """

    in_lockstep = False
    config: Config = {
        **BaseEnvManager.config,
        "shared_memory": True,
        "copy_on_get": True,
        "context": "fork",
        "wait_num": 2,
        "step_wait_timeout": 0.01,
        "connect_timeout": 60,
        "reset_inplace": False,
        "envs_per_worker": None,
    }

    @property
    def ready_env(self) -> list[int]:
        """Ids of the environments that wait for an action."""
        return self.ready_obs_id

    @staticmethod
    def worker_fn(
        p: Connection | None,
        c: Connection,
        env_fn_wrapper: CloudPickleWrapper[GroupSpec],
        obs_buffer: ShmBuffer | None,
        method_name_list: list[str],
        reset_inplace: bool = False,
    ) -> None:
        """What a worker process runs: a ``GroupSpec``'s environments, at the pipe's end `c`.

        `p` is the manager's end, if this process has a copy of it. The other arguments are those
        that overrides know.
        """
        if p is not None:
            p.close()
        close_inherited_ends()
        serve(c, env_fn_wrapper.data)

    @staticmethod
    def worker_fn_robust(
        parent: Connection | None,
        child: Connection,
        env_fn_wrapper: CloudPickleWrapper[GroupSpec],
        obs_buffer: ShmBuffer | None,
        method_name_list: list[str],
        reset_timeout: float | None = None,
        step_timeout: float | None = None,
        reset_inplace: bool = False,
    ) -> None:
        """``worker_fn`` with time limits, in seconds, on every step and reset."""
        spec = env_fn_wrapper.data
        limits = replace(spec.settings, step_timeout=step_timeout, reset_timeout=reset_timeout)
        limited = CloudPickleWrapper(replace(spec, settings=limits))
        AsyncSubprocessEnvManager.worker_fn(parent, child, limited, obs_buffer, method_name_list)

    @staticmethod
    def wait(
        rest_conn: list[Connection], wait_num: int, timeout: float | None = None
    ) -> tuple[list[Connection], list[int]]:
        """The pipes of several that hold a message, and their positions.

        Waits until they are `wait_num`, or for `timeout` seconds.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        ready: list[Connection] = []
        while len(ready) < min(wait_num, len(rest_conn)):
            left = None if timeout is None else max(0.0, end - time.monotonic())
            new = connection.wait([conn for conn in rest_conn if conn not in ready], left)
            if not new:
                break
            ready += [conn for conn in rest_conn if conn in new]
        return ready, [rest_conn.index(conn) for conn in ready]

    def _make_runner(self) -> WorkerPool:
        target, context, names = self.worker_fn, self._cfg.context, self.method_name_list

        def start(spec: GroupSpec) -> ChildProcess:
            return ChildProcess(
                target,
                lambda own, theirs: (own, theirs, CloudPickleWrapper(spec), None, names),
                context,
                name=f"env-worker-{min(spec.env_fns)}-{max(spec.env_fns)}",
                daemon=True,
            )

        cfg, waits, per_worker = self._cfg, {}, 1
        if self.in_lockstep:
            affinity = getattr(os, "sched_getaffinity", None)
            cores = len(affinity(0)) if affinity else os.cpu_count() or 1
            per_worker = math.ceil(self._env_num / min(self._env_num, cores))
        else:
            waits = {"wait_num": cfg.wait_num, "wait_timeout": cfg.step_wait_timeout}
        return WorkerPool(
            self._group_spec(),
            int(cfg.envs_per_worker or per_worker),
            partial(WorkerLink, start=start, connect_timeout=cfg.connect_timeout),
            shared_memory=bool(cfg.shared_memory),
            **waits,
        )


@ENV_MANAGER_REGISTRY.register("subprocess")
class SyncSubprocessEnvManager(AsyncSubprocessEnvManager):
    """Vectorised environments in worker processes; a step waits for all of them.

    Example:

        >>> from ding.envs import DingEnvWrapper, SyncSubprocessEnvManager
        >>> make_env = lambda: DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
        >>> envs = SyncSubprocessEnvManager([make_env] * 2)
        >>> envs.launch()
        >>> len(envs.step({0: 1, 1: 0}))
        2
        >>> envs.close()
    """

    in_lockstep = True
    config: Config = {
        **AsyncSubprocessEnvManager.config,
        "wait_num": float("inf"),
        "step_wait_timeout": None,
    }


@ENV_MANAGER_REGISTRY.register("subprocess_v2")
class SubprocessEnvManagerV2(BaseEnvManagerV2, SyncSubprocessEnvManager):  # type: ignore[misc]
    """`SyncSubprocessEnvManager` with stacked observations and lists of timesteps.

    Example:

        >>> from ding.envs import DingEnvWrapper, SubprocessEnvManagerV2
        >>> make_env = lambda: DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
        >>> envs = SubprocessEnvManagerV2([make_env] * 2)
        >>> envs.launch()
        >>> envs.ready_obs.shape
        (2, 4)
        >>> envs.close()
    """


class EnvSupervisor(SubprocessEnvManagerV2):
    """The synchronous manager of processes, with stacked observations, for scripts without configs.

    Arguments are the config keys of `SyncSubprocessEnvManager`; ``max_try`` is another name of
    ``max_retry``, and environments run in processes whatever ``type_`` is.
    """

    def __init__(
        self,
        type_: object = None,
        env_fn: Sequence[EnvFn] | None = None,
        retry_type: object = None,
        max_try: int | None = None,
        max_retry: int | None = None,
        **kwargs: object,
    ) -> None:
        if env_fn is None:
            raise ConfigError("EnvSupervisor needs env_fn: a list with a function per environment")
        kwargs["retry_type"] = getattr(retry_type, "value", retry_type)
        kwargs["max_retry"] = max_try if max_retry is None else max_retry
        super().__init__(list(env_fn), {k: v for k, v in kwargs.items() if v is not None})  # type: ignore[arg-type]

    def shutdown(self, timeout: float | None = None) -> None:
        """Close all environments."""
        self.close()

"""An env manager that takes its settings one by one."""

from collections.abc import Callable, Sequence
from typing import Any

from ding.envs.env_manager.subprocess_env_manager import SubprocessEnvManagerV2
from ding.utils.errors import ConfigError


class EnvSupervisor(SubprocessEnvManagerV2):
    """The synchronous manager of processes, with stacked observations, for scripts without configs.

    Args:
        type_: Taken for compatibility: environments run in processes, whatever it says.
        env_fn: One function per environment, which makes it.
        retry_type: What becomes of an environment that fails: ``reset`` or ``renew``.
        max_try: Attempts, the first one included.
        max_retry: The same, under its other name.
        auto_reset: Whether an environment whose episode has ended begins the next one.
        reset_timeout: Seconds that a reset may take.
        step_timeout: Seconds that a step may take.
        retry_waiting_time: Seconds between two attempts.
        episode_num: Episodes of each environment.
        shared_memory: Whether observations travel in shared memory.
        copy_on_get: Whether observations are handed out as copies.
        kwargs: Further settings of `SyncSubprocessEnvManager`.
    """

    def __init__(
        self,
        type_: Any = None,
        env_fn: Sequence[Callable] | None = None,
        retry_type: Any = None,
        max_try: int | None = None,
        max_retry: int | None = None,
        auto_reset: bool = True,
        reset_timeout: float | None = None,
        step_timeout: float | None = None,
        retry_waiting_time: float | None = None,
        episode_num: float = float("inf"),
        shared_memory: bool = True,
        copy_on_get: bool = True,
        **kwargs: Any,
    ) -> None:
        if env_fn is None:
            raise ConfigError("EnvSupervisor needs env_fn: a list with a function per environment")
        given = {
            "retry_type": getattr(retry_type, "value", retry_type),
            "max_retry": max_try if max_retry is None else max_retry,
            "auto_reset": auto_reset,
            "reset_timeout": reset_timeout,
            "step_timeout": step_timeout,
            "retry_waiting_time": retry_waiting_time,
            "episode_num": episode_num,
            "shared_memory": shared_memory,
            "copy_on_get": copy_on_get,
        }
        cfg = {name: value for name, value in given.items() if value is not None}
        super().__init__(list(env_fn), {**cfg, **kwargs})

    def shutdown(self, timeout: float | None = None) -> None:
        """Close all environments."""
        self.close()

"""Tells when environments hang, and which."""

import sys
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

from ding.envs import BaseEnv
from ding.utils.errors import EnvTimeoutError

#: Seconds that a step of all environments may take, and making them.
STEP_LIMIT = 8.0
LAUNCH_LIMIT = 60.0


class StepWatch:
    """Notes when the environments are at work; one thread notes, another looks."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._limit = STEP_LIMIT
        self._doing = "step"
        self._step_limit = STEP_LIMIT

    def allow(self, manager_cfg: Mapping[str, Any]) -> None:
        """Leave the env manager the time to notice for itself, where its config says when."""
        given = [manager_cfg.get(name) or 0.0 for name in ("step_timeout", "reset_timeout")]
        self._step_limit = max(STEP_LIMIT, sum(given) + 2.0)

    def stepping(self) -> None:
        """The environments are asked for a step now."""
        self._doing, self._limit = "step", self._step_limit
        self._since = time.monotonic()

    def launching(self) -> None:
        """The environments are being made and reset."""
        self._doing, self._limit = "launch", max(LAUNCH_LIMIT, self._step_limit)
        self._since = time.monotonic()

    def rest(self) -> None:
        """The environments have answered."""
        self._since = None

    def overdue(self, thread_id: int | None) -> EnvTimeoutError | None:
        """The error to report if the environments have not answered in time.

        Args:
            thread_id: Of the thread that waits for them.
        """
        since = self._since
        if since is None or time.monotonic() - since < self._limit:
            return None
        env_id, where = _find_env(sys._current_frames().get(thread_id or -1))
        who = "an environment" if env_id is None else f"env {env_id}"
        return EnvTimeoutError(
            f"{who}: no answer to {self._doing} for {self._limit:g} s{where}; it is replaced. Set "
            "env.manager.step_timeout and reset_timeout if it needs longer",
            env_id,
        )


def _find_env(frame: FrameType | None) -> tuple[int | None, str]:
    """Which environment a thread is in, and at which line of it."""
    env: Any = None
    where = ""
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, BaseEnv):
            env = owner
            code = frame.f_code
            where = where or f", in {code.co_name}() at {code.co_filename}:{frame.f_lineno}"
        envs = getattr(owner, "envs", None)
        if env is not None and isinstance(envs, Mapping):
            for env_id, member in list(envs.items()):
                if member is env:
                    return env_id, where
        frame = frame.f_back
    return None, where

"""Detects environments and policies that hang, and reports where."""

import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from ding.envs import BaseEnv, BaseEnvManager
from ding.envs.env_manager._worker_link import WorkerLink
from ding.utils import durations
from ding.utils.errors import EnvTimeoutError
from ding.utils.types import Settings

_DEBUGGERS = {"pdb", "bdb", "debugpy", "_pydevd_bundle", "pydevd", "IPython"}


class Whereabouts(NamedTuple):
    """The position of a thread in the code.

    Attributes:
        env: The environment of this process that is running.
        env_ids: Its id, or those of environments whose process has not answered; empty if unknown.
        in_envs: Whether the thread is in an environment or its manager, not in the policy.
        code: The environment's method, or the innermost function.
        line: The innermost line.
    """

    env: Any
    env_ids: Sequence[int]
    in_envs: bool
    code: str
    line: str

    @property
    def env_id(self) -> int | None:
        return self.env_ids[0] if self.env_ids else None

    def __str__(self) -> str:
        ids = ", ".join(map(str, self.env_ids))
        who = f"env {ids}" if len(self.env_ids) == 1 else f"envs {ids}"
        if self.env is not None:
            who = who if self.env_ids else "an environment"
            return f"{who} ({type(self.env).__name__}, in {self.code}, {self.line})"
        if self.env_ids:
            return f"{who} (in another process)"
        return f"the environments or the policy, in {self.code}, {self.line}"


class StepWatch:
    """Measures how long a step takes: one thread steps, another one checks.

    Attributes:
        since: When the current step began, by the monotonic clock.
        launches: Whether the current step launches the environments.
    """

    def __init__(self) -> None:
        self.since: float | None = None
        self.launches = False
        self._seen: tuple[float, int, float] | None = None  # step, environment, start time
        self._limit = durations.COLLECTOR_STEP_LIMIT

    def allow(self, manager_cfg: Settings) -> None:
        """Extend the limit beyond the env manager's own limits, if its config sets any."""
        given = [manager_cfg.get(name) or 0.0 for name in ("step_timeout", "reset_timeout")]
        self._limit = max(durations.COLLECTOR_STEP_LIMIT, sum(given) + 2.0)

    def stepping(self, launches: bool = False) -> None:
        """Record the start of a step, or of the launch of the environments."""
        self.launches, self.since = launches, time.monotonic()

    def rest(self) -> None:
        self.since, self.launches = None, False

    def delay(self, thread_id: int | None) -> tuple[Whereabouts, float] | None:
        """Position and duration in seconds of a long step in the thread ``thread_id``.

        If this is called several times a second, the duration is that of one environment.
        """
        since, now = self.since, time.monotonic()
        if since is None or now - since < durations.STEP_LOOK_AFTER:
            return None
        place = find_place(sys._current_frames().get(thread_id or -1))
        if place.env is None:
            return place, now - since
        if self._seen is None or self._seen[:2] != (since, id(place.env)):
            self._seen = (since, id(place.env), since if self._seen is None else now)
        return place, now - self._seen[2]

    def overdue(self, thread_id: int | None) -> EnvTimeoutError | None:
        """The error to report if an environment exceeds the limit; see `delay`."""
        delay = self.delay(thread_id)
        if delay is None:
            return None
        place, seconds = delay
        limit = self._limit
        if self.launches and (place.env is None or place.code == "__init__"):
            limit = max(durations.ENV_LAUNCH_LIMIT, limit)
        return overdue_error(place, limit) if seconds >= limit else None


def overdue_error(place: Whereabouts, limit: float) -> EnvTimeoutError:
    return EnvTimeoutError(
        f"{place}: no answer for {limit:g} s, given up; set env.manager.step_timeout and "
        "reset_timeout if more is needed",
        place.env_id,
    )


def find_place(frame: FrameType | None) -> Whereabouts:
    """The position of a thread, and the environment of this process in which it is."""
    place = Whereabouts(None, (), False, *_position(frame))
    owners: list[Any] = []
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in _DEBUGGERS:
            # A user is debugging: no limit applies.
            return Whereabouts(None, (), False, place.code, place.line)
        owner = frame.f_locals.get("self")
        owners.append(owner)
        if isinstance(owner, BaseEnv):
            code, line = _position(frame)
            place = Whereabouts(owner, (), True, code, line if place.env is None else place.line)
        elif isinstance(owner, WorkerLink):
            place = place._replace(env_ids=owner.pending or owner.ids, in_envs=True)
        elif isinstance(owner, BaseEnvManager):
            place = place._replace(in_envs=True)
        # From `__dict__`: an env manager would forward the attribute access to its environments.
        envs = getattr(owner, "__dict__", {}).get("envs")
        if isinstance(envs, Mapping):
            for env_id, member in list(envs.items()):
                if any(member is one for one in owners):
                    return place._replace(env=member, env_ids=(env_id,), in_envs=True)
        frame = frame.f_back
    return place


def _position(frame: FrameType | None) -> tuple[str, str]:
    if frame is None:
        return "a thread that has ended", "nowhere"
    return frame.f_code.co_name, f"{frame.f_code.co_filename}:{frame.f_lineno}"

"""Tells when environments or a policy hang, and where."""

import sys
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any, NamedTuple

from ding.envs import BaseEnv
from ding.utils.errors import EnvTimeoutError

#: Seconds that one environment may take for a step or a reset, and all of them where one cannot
#: tell which is at work.
STEP_LIMIT = 8.0
#: Seconds that environments may take to be made.
LAUNCH_LIMIT = 60.0
#: Seconds after which it is looked where the time goes.
_PATIENCE = 1.0


class _Place(NamedTuple):
    """Where a thread is: perhaps in an environment, perhaps found in its manager."""

    env: Any
    env_id: int | None
    code: str
    line: str

    def __str__(self) -> str:
        if self.env is None:
            return f"the environments or the policy, in {self.code}, {self.line}"
        who = "an environment" if self.env_id is None else f"env {self.env_id}"
        return f"{who} ({type(self.env).__name__}, in {self.code}, {self.line})"


class StepWatch:
    """Notes when the environments are at work; one thread notes, another looks."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._launches = False
        self._seen: tuple[float, int, float] | None = None  # call, environment, since when
        self._limit = STEP_LIMIT

    def allow(self, manager_cfg: Mapping[str, Any]) -> None:
        """Leave the env manager the time to notice for itself, where its config says when."""
        given = [manager_cfg.get(name) or 0.0 for name in ("step_timeout", "reset_timeout")]
        self._limit = max(STEP_LIMIT, sum(given) + 2.0)

    def stepping(self) -> None:
        """The environments are asked for a step now."""
        self._launches, self._since = False, time.monotonic()

    def launching(self) -> None:
        """The environments are being made and reset."""
        self._launches, self._since = True, time.monotonic()

    def rest(self) -> None:
        """The environments have answered."""
        self._since = None

    def overdue(self, thread_id: int | None) -> EnvTimeoutError | None:
        """The error to report if an environment has not answered in time.

        It is known which one, and the time is its own, if this is asked several times a second.

        Args:
            thread_id: Of the thread that waits for them.
        """
        since, now = self._since, time.monotonic()
        if since is None or now - since < _PATIENCE:
            return None
        place = _find_place(sys._current_frames().get(thread_id or -1))
        limit = self._limit
        if self._launches and (place.env is None or place.code == "__init__"):
            limit = max(LAUNCH_LIMIT, limit)
        began = since
        if place.env is not None:
            if self._seen is None or self._seen[:2] != (since, id(place.env)):
                self._seen = (since, id(place.env), since if self._seen is None else now)
            began = self._seen[2]
        if now - began < limit:
            return None
        return EnvTimeoutError(
            f"{place}: no answer for {limit:g} s, given up; set env.manager.step_timeout and "
            "reset_timeout if more is needed",
            place.env_id,
        )


def _find_place(frame: FrameType | None) -> _Place:
    """Where a thread is: in which environment, if it is in one of this process."""
    place = _Place(None, None, *_position(frame))
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, BaseEnv):
            code, line = _position(frame)
            place = _Place(owner, None, code, line if place.env is None else place.line)
        # Not asked for by name: an env manager would ask its environments.
        envs = getattr(owner, "__dict__", {}).get("envs")
        if place.env is not None and isinstance(envs, Mapping):
            for env_id, member in list(envs.items()):
                if member is place.env:
                    return place._replace(env_id=env_id)
        frame = frame.f_back
    return place


def _position(frame: FrameType | None) -> tuple[str, str]:
    if frame is None:
        return "a thread that has ended", "nowhere"
    return frame.f_code.co_name, f"{frame.f_code.co_filename}:{frame.f_lineno}"

"""Runs the environments of a manager in worker processes; replaces workers that are lost."""

import contextlib
import dataclasses
import logging
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from ding.envs.env_manager._env_types import EnvState, GroupSpec
from ding.envs.env_manager._obs_store import (
    empty_columns,
    layout_bytes,
    put_rows,
    store_for,
    take_rows,
)
from ding.envs.env_manager._runner import EnvRunner
from ding.envs.env_manager._steps import GroupStep, Rows, merged
from ding.envs.env_manager._wire import HAS_SHARED_MEMORY, SharedBlock
from ding.envs.env_manager._worker_link import WorkerLink, stop
from ding.envs.vector_step import VectorStep
from ding.utils import durations
from ding.utils.errors import DingError, EnvError
from ding.utils.processes import ChildProcess

_logger = logging.getLogger(__name__)


class WorkerRunner(EnvRunner):
    """Sends a step to the workers, and takes what they have answered meanwhile.

    Args:
        spec: Of all environments; the manager's own dicts in it are read again whenever a worker
            takes the place of another.
        per_worker: Environments in each worker.
        start_child: Starts a process that serves a spec.
        cfg: The config of a subprocess manager.
        waits_for_all: Whether a step's answer holds all that were stepped, whatever `cfg` says of
            waiting.
    """

    def __init__(
        self,
        spec: GroupSpec,
        per_worker: int,
        start_child: Callable[[GroupSpec], ChildProcess],
        cfg: Mapping[str, Any],
        waits_for_all: bool,
    ) -> None:
        super().__init__(len(spec.env_fns))
        self._spec, self._per_group, self._start_child = spec, per_worker, start_child
        spec.episode_count.update(dict.fromkeys(spec.env_fns, 0))
        self._settings, self._cfg, self._waits_for_all = spec.settings, cfg, waits_for_all
        self.groups: list[WorkerLink] = []
        # Ends the workers of a manager that nobody closed.
        self._finalizer = weakref.finalize(self, _abandon, self.groups, os.getpid())
        self._block: SharedBlock | None = None
        self._shared: Any = None  # columns in that block, if workers write into them
        renew = spec.settings.retry_type == "renew"
        self._replacements = spec.settings.max_retry - 1 if renew else 0

    # ---- life ------------------------------------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Start all workers at once."""
        for first in range(0, self.env_num, self._per_group):
            ids = self._all_list[first : first + self._per_group]
            own = {env_id: self._spec.env_fns[env_id] for env_id in ids}
            spec = dataclasses.replace(self._spec, env_fns=own)
            self.groups.append(WorkerLink(spec, self._start_child, self._cfg["connect_timeout"]))
        spaces, *_ = [link.await_start() for link in self.groups]
        self.states.update(dict.fromkeys(self.states, EnvState.INIT))
        self._space = spaces["observation_space"]
        return spaces

    def stop(self, wait: bool) -> None:
        stop(self.groups, durations.ENV_CLOSE_PATIENCE if wait else 0.0)
        self.groups.clear()
        if self._block is not None:
            self._block.close()
        self._finalizer.detach()

    @property
    def in_flight(self) -> Sequence[int]:  # type: ignore[override]
        """Environments whose step has not been received yet."""
        return [env_id for link in self.groups for ids in link.pending for env_id in ids]

    # ---- resets ----------------------------------------------------------------------------------

    def restart(self, params: Mapping[int, dict | None], recount: bool) -> None:
        """Reset environments; a worker that is lost is started anew.

        Raises:
            EnvError: The first of the failures, after all workers have answered.
        """
        for env_id, kwargs in params.items():
            if kwargs is not None:
                self._spec.reset_kwargs[env_id] = kwargs
            if recount or self.states[env_id] == EnvState.DONE:
                self._spec.episode_count[env_id] = 0
        asked: list[WorkerLink] = []
        parts: list[GroupStep] = []
        errors: list[DingError] = []
        for link, ids, _ in self._shares(list(params)):
            try:
                self._prepare(link)
            except EnvError as error:
                errors.append(error)
                continue
            link.post_restart({env_id: params[env_id] for env_id in ids}, recount)
            asked.append(link)
        self._collect(asked, parts, errors, restarts=True)
        if self.store is not None or not errors:
            self._store_first({i: obs for part in parts for i, obs in part.first.items()})
        if errors:
            raise errors[0]

    def _prepare(self, link: WorkerLink) -> None:
        """See to it that a worker is there, and free for requests."""
        with contextlib.suppress(EnvError):  # it may be lost
            link.drop_steps()
        if link.lost or not link.process.is_alive():
            self.states.update(dict.fromkeys(link.ids, EnvState.ERROR))
            link.revive()

    def _replace(self, link: WorkerLink, ids: Sequence[int], error: EnvError) -> GroupStep:
        """Make and reset environments in another worker, if the settings say so.

        Raises:
            EnvError: What befell the last one.
        """
        for _ in range(self._replacements):
            _logger.warning("%s; starting another worker", error)
            time.sleep(self._settings.retry_waiting_time)
            try:
                link.revive()
                link.post_restart(dict.fromkeys(ids), recount=False)
                return link.receive()
            except EnvError as again:
                error = again
        stop([link], 0.0)
        raise error from None

    def _make_store(self, first: Sequence[Any]) -> Any:
        if not (self._cfg["shared_memory"] and HAS_SHARED_MEMORY):
            return super()._make_store(first)
        # Workers cannot make room for wider numbers later.
        store = store_for(first, self._space)
        if store.is_columnar:
            self._block = SharedBlock(layout_bytes(store.layout, self.env_num))
            self._shared = empty_columns(store.layout, self.env_num, self._block.memory)
            for link in self.groups:
                link.attach(store.layout, self.env_num, self._block)
        return store

    # ---- steps -----------------------------------------------------------------------------------

    def step(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        for link, share, where in self._shares(ids):
            is_array = isinstance(actions, np.ndarray)
            own = actions[where] if is_array else [actions[position] for position in where]
            link.post_step(share, own, want_rows)
        parts: list[GroupStep] = []
        errors: list[DingError] = []
        if self._waits_for_all:
            self._collect([link for link in self.groups if link.pending], parts, errors)
        else:
            self._collect_some(parts, errors)
        if errors or not self._waits_for_all:
            self.note_ready()
        if errors:
            raise errors[0]
        step = merged(parts, ids)
        answered = list(step.ids)
        if self._shared is None:
            obs = self._take_in(answered, step.obs, may_differ=want_rows)
        else:
            obs = take_rows(self._shared, answered)
            self.store.put(answered, obs)
        return self._outcome(obs, step, want_rows)

    def _shares(self, ids: Sequence[int]) -> list[tuple[WorkerLink, list[int], list[int]]]:
        """Workers, those of `ids` that are their own, and where in `ids` these are."""
        places: dict[int, list[int]] = {}
        for position, env_id in enumerate(ids):
            places.setdefault(env_id // self._per_group, []).append(position)
        return [(self.groups[i], [ids[p] for p in at], at) for i, at in places.items()]

    def _collect(
        self,
        links: Sequence[WorkerLink],
        parts: list[GroupStep],
        errors: list[DingError],
        restarts: bool = False,
    ) -> None:
        # The answers of the others are to be taken in before an error is raised.
        for link in links:
            try:
                parts.append(self._answer(link, restarts))
            except DingError as error:
                errors.append(error)

    def _collect_some(self, parts: list[GroupStep], errors: list[DingError]) -> None:
        """Wait until enough environments have answered."""
        deadline = None
        if self._cfg["step_wait_timeout"] is not None:
            deadline = time.monotonic() + self._cfg["step_wait_timeout"]
        while self.in_flight and not errors:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            answered = [env_id for part in parts for env_id in part.ids]
            if left == 0.0 or len(answered) >= self._cfg["wait_num"]:
                # Somebody has to be ready for an action, or callers would have nothing to do.
                if any(self.states[env_id] == EnvState.RUN for env_id in answered):
                    break
                left = None
            self._collect(self._wait(left), parts, errors)

    def _wait(self, timeout: float | None) -> list[WorkerLink]:
        """The workers from which a step can be received, or that are too late with it."""
        busy = [link for link in self.groups if link.pending]
        ready = [link for link in busy if link.has_reply]
        if ready or not busy:
            return ready
        ends = [link.deadline for link in busy if link.deadline is not None]
        if ends:
            until_late = max(0.0, min(ends) - time.monotonic())
            timeout = until_late if timeout is None else min(timeout, until_late)
        woken = set(wait([end for link in busy for end in link.child.waitables], timeout))
        now = time.monotonic()
        return [
            link
            for link in busy
            if not woken.isdisjoint(link.child.waitables)
            or (link.deadline is not None and link.deadline <= now)
        ]

    def _answer(self, link: WorkerLink, restarts: bool) -> GroupStep:
        """Wait for the oldest answer under way of one worker: to a step, or to resets.

        Raises:
            DingError: An environment failed or its worker is lost, and that was not recovered.
        """
        ids = link.pending[0]
        if not restarts:  # the end of their worker cuts all episodes, asked to step or not
            ids = [env_id for env_id in link.ids if self.states[env_id] == EnvState.RUN]
        try:
            part = self._received(link, ids, restarts)
        except DingError:
            self.states.update(dict.fromkeys(ids, EnvState.ERROR))
            raise
        self.states.update(part.states)
        for env_id in part.ended:
            self._spec.episode_count[env_id] += 1
        return part

    def _received(self, link: WorkerLink, ids: Sequence[int], restarts: bool) -> GroupStep:
        try:
            return link.receive()
        except EnvError as error:
            if not link.lost:
                raise
            part = self._replace(link, ids, error)
            if restarts:
                return part
            infos = [{"abnormal": True, "error": str(error)} for _ in ids]
        first = [part.first[env_id] for env_id in ids]
        if self._shared is not None:
            put_rows(self._shared, ids, self.store.stacked(ids, first))
            first = []
        return GroupStep(
            ids, first, [None] * len(ids), infos, abnormal=list(ids), states=part.states
        )


def _abandon(links: list[WorkerLink], owner_pid: int) -> None:
    if os.getpid() == owner_pid:  # a forked child has a copy of the manager, but not its workers
        stop(links, 0.0)

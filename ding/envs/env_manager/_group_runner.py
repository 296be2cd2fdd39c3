"""Runs single environments in groups: one in this process, or several in a worker process each."""

import contextlib
import dataclasses
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import EnvState, GroupSpec
from ding.envs.env_manager._runner import EnvRunner
from ding.envs.env_manager._steps import GroupStep, Rows, merged, vector_step
from ding.envs.env_manager._wire import HAS_SHARED_MEMORY, SharedBlock
from ding.envs.env_manager._worker_link import WorkerLink
from ding.envs.vector_step import VectorStep
from ding.utils import durations
from ding.utils.errors import DataError, DingError, EnvError

_logger = logging.getLogger(__name__)
_INF = float("inf")


class LocalLink:
    """Calls an ``EnvGroup`` of this process, which acts when its answer is asked for.

    Attributes:
        ids: Its environments.
        pending: Of the step or resets under way, their environments.
    """

    def __init__(self, spec: GroupSpec) -> None:
        self.group = EnvGroup(spec)
        self.ids = list(spec.env_fns)
        self.pending: deque[list[int]] = deque()
        self._request: tuple[str, tuple]

    def await_start(self) -> dict[str, Any]:
        return self.group.build()

    def begin(self, ids: list[int], method: str, *args: Any) -> None:
        self.pending.append(ids)
        self._request = method, args

    def receive(self) -> GroupStep:
        self.pending.clear()
        method, args = self._request
        return getattr(self.group, method)(*args)

    def drop_steps(self) -> None:
        self.pending.clear()

    def ask(self, method: str, *args: Any) -> Any:
        return getattr(self.group, method)(*args)

    def state_dict(self) -> Mapping[int, dict[str, Any]]:
        return self.group.state_dict()

    def end(self, deadline: float) -> None:
        self.group.close()


#: How a runner calls a group: at once, or by messages.
GroupLink = LocalLink | WorkerLink


class GroupRunner(EnvRunner):
    """Has groups step their environments, and joins what they answer.

    Args:
        spec: Of all environments; the manager's own dicts in it are read again whenever a worker
            takes the place of another.
        per_group: Environments in each group.
        make_link: Starts a group of a spec.
        shared_memory: Whether observations are handed on in shared memory, if they can be.
        wait_num: How many environments a step waits for; infinity for all that were stepped.
        wait_timeout: Seconds after which it returns with fewer, but at least one.
    """

    def __init__(
        self,
        spec: GroupSpec,
        per_group: int,
        make_link: Callable[[GroupSpec], GroupLink] = LocalLink,
        *,
        shared_memory: bool = False,
        wait_num: float = _INF,
        wait_timeout: float | None = None,
    ) -> None:
        super().__init__(len(spec.env_fns), per_group)
        self._spec, self._settings, self._make_link = spec, spec.settings, make_link
        spec.episode_count.update(dict.fromkeys(spec.env_fns, 0))
        self.groups: list[GroupLink] = []
        self._shares_memory = shared_memory and HAS_SHARED_MEMORY
        self._wait_num, self._wait_timeout = wait_num, wait_timeout
        self._waits_for_all = wait_num == _INF
        self._block: SharedBlock | None = None
        self._shared: Any = None  # columns in that block, if groups write into them
        self._reward_shape: tuple[int, ...] | None = None
        renew = spec.settings.retry_type == "renew"
        self._replacements = spec.settings.max_retry - 1 if renew else 0

    # ---- life ------------------------------------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Start all groups at once."""
        for first in range(0, self.env_num, self._per_group):
            ids = self._all_list[first : first + self._per_group]
            own = {env_id: self._spec.env_fns[env_id] for env_id in ids}
            self.groups.append(self._make_link(dataclasses.replace(self._spec, env_fns=own)))
        spaces, *_ = [link.await_start() for link in self.groups]
        self.states.update(dict.fromkeys(self.states, EnvState.INIT))
        self._space = spaces["observation_space"]
        return spaces

    def stop(self, wait: bool) -> None:
        deadline = time.monotonic() + (durations.ENV_CLOSE_PATIENCE if wait else 0.0)
        for worker in self._workers() if wait else ():
            worker.request_close()
        for link in self.groups:
            link.end(deadline)
        self.groups.clear()
        if self._block is not None:
            self._block.close()

    @property
    def in_flight(self) -> Sequence[int]:  # type: ignore[override]
        """Environments whose step has not been received yet."""
        return [env_id for link in self.groups for ids in link.pending for env_id in ids]

    # ---- resets ----------------------------------------------------------------------------------

    def restart(self, params: Mapping[int, dict | None], recount: bool) -> None:
        """Reset environments; a group that is lost is revived.

        Raises:
            EnvError: The first of the failures, after all groups have answered.
        """
        for env_id, kwargs in params.items():
            if kwargs is not None:
                self._spec.reset_kwargs[env_id] = kwargs
            if recount or self.states[env_id] == EnvState.DONE:
                self._spec.episode_count[env_id] = 0
        asked: list[GroupLink] = []
        parts: list[GroupStep] = []
        errors: list[DingError] = []
        for link, ids, _ in self._shares(list(params)):
            with contextlib.suppress(EnvError):  # it may be lost
                link.drop_steps()
            try:
                if isinstance(link, WorkerLink) and link.lost:
                    self.states.update(dict.fromkeys(link.ids, EnvState.ERROR))
                    link.revive()
            except EnvError as error:
                errors.append(error)
                continue
            link.begin(ids, "restart", {env_id: params[env_id] for env_id in ids}, recount)
            asked.append(link)
        self._collect(asked, parts, errors, restarts=True)
        if self.has_store or not errors:
            self._store_first({i: obs for part in parts for i, obs in part.first.items()})
        if errors:
            raise errors[0]

    def _store_first(self, first: Mapping[int, Any]) -> None:
        """Store episodes' first observations; the first ones of all make the store."""
        if self.has_store:
            self._take_in(list(first), list(first.values()), may_differ=True)
            return
        observations = [first[env_id] for env_id in self._all_list]
        # Workers cannot make room for wider numbers later.
        space = self._space if self._shares_memory else None
        self.store = store = obs_store.store_for(observations, space)
        if self._shares_memory and store.is_columnar:
            self._block = SharedBlock(obs_store.layout_bytes(store.layout, self.env_num))
            memory = self._block.memory
            self._shared = obs_store.empty_columns(store.layout, self.env_num, memory)
            for link in self._workers():
                link.attach(store.layout, self.env_num, self._block)

    def _take_in(self, ids: list[int], observations: Sequence[Any], may_differ: bool) -> Any:
        """Store observations; those of the dict API may change their shapes.

        Returns:
            The observations as columns.
        """
        try:
            columns = self.store.stacked(ids, observations)
        except DataError:
            new = dict(zip(ids, observations))
            latest = [new.get(i, self.store.row(i)) for i in self._all_list]
            refitted = obs_store.store_for(latest)
            if not (refitted.is_columnar or may_differ):
                raise
            self.store = refitted
            columns = refitted.stacked(ids, observations)
        self.store.put(ids, columns)
        return columns

    # ---- steps -----------------------------------------------------------------------------------

    def step(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        for link, share, where in self._shares(ids):
            if where is None:
                own = actions
            elif isinstance(actions, np.ndarray):
                own = actions[where]
            else:
                own = [actions[position] for position in where]
            link.begin(share, "step", share, own, want_rows)
        parts: list[GroupStep] = []
        errors: list[DingError] = []
        if self._waits_for_all:
            self._collect(self.groups, parts, errors)
        else:
            self._collect_some(parts, errors)
        if errors:
            self.note_ready()
            raise errors[0]
        step = merged(parts, ids)
        if step.abnormal or self._reward_shape is None:
            given = (np.shape(reward) for reward in step.rewards if reward is not None)
            self._reward_shape = next(given, self._reward_shape)
            step.zero_abnormal(self._reward_shape or ())
        all_answered = step.ids == self._all_list
        answered = self._all_list if all_answered else list(step.ids)
        if self._shared is None:
            obs = self._take_in(answered, step.obs, may_differ=want_rows)
        else:
            obs = obs_store.take_rows(self._shared, answered)
            self.store.put(answered, obs)
        if step.first:
            self._store_first(step.first)
        if not self._waits_for_all or len(step.first) < len(step.ended):
            self.note_ready()
        rows = list(zip(step.rewards, step.infos)) if want_rows else ()
        env_ids = self._all_ids if all_answered else np.array(answered, np.int64)
        return vector_step(env_ids, obs, step, strict=not want_rows), rows

    def _shares(self, ids: list[int]) -> list[tuple[GroupLink, list[int], list[int] | None]]:
        """Groups, those of `ids` that are their own, and where in `ids` these are (if not all)."""
        if len(self.groups) == 1:
            return [(self.groups[0], ids, None)]
        places: dict[int, list[int]] = {}
        for position, env_id in enumerate(ids):
            places.setdefault(env_id // self._per_group, []).append(position)
        return [(self.groups[i], [ids[p] for p in at], at) for i, at in places.items()]

    def _collect(
        self,
        links: Sequence[GroupLink],
        parts: list[GroupStep],
        errors: list[DingError],
        restarts: bool = False,
    ) -> None:
        # The answers of the others are to be taken in before an error is raised.
        for link in links:
            if link.pending:
                try:
                    parts.append(self._answer(link, restarts))
                except DingError as error:
                    errors.append(error)

    def _collect_some(self, parts: list[GroupStep], errors: list[DingError]) -> None:
        """Wait until enough environments have answered."""
        deadline = None
        if self._wait_timeout is not None:
            deadline = time.monotonic() + self._wait_timeout
        while self.in_flight and not errors:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            answered = [env_id for part in parts for env_id in part.ids]
            if left == 0.0 or len(answered) >= self._wait_num:
                # One has to be ready for an action, or callers would have nothing to do.
                if any(self.states[env_id] == EnvState.RUN for env_id in answered):
                    break
                left = None
            self._collect(self._wait(left), parts, errors)

    def _workers(self) -> list[WorkerLink]:
        return [link for link in self.groups if isinstance(link, WorkerLink)]

    def _wait(self, timeout: float | None) -> list[WorkerLink]:
        """The workers from which a step can be received, or that are too late with it."""
        busy = [link for link in self._workers() if link.pending]
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

    def _answer(self, link: GroupLink, restarts: bool) -> GroupStep:
        """Wait for the oldest answer under way of one group: to a step, or to resets.

        Raises:
            DingError: An environment failed or its group is lost, and that was not recovered.
        """
        ids = link.pending[0]
        try:
            part = link.receive()
        except DingError as error:
            if not restarts:  # the end of a worker cuts all episodes, asked to step or not
                ids = [env_id for env_id in link.ids if self.states[env_id] == EnvState.RUN]
            self.states.update(dict.fromkeys(ids, EnvState.ERROR))
            if not (isinstance(link, WorkerLink) and link.lost and isinstance(error, EnvError)):
                raise
            part = self._replace(link, ids, error, restarts)
        if part.states:
            self.states.update(part.states)
            for env_id in part.ended:
                self._spec.episode_count[env_id] += 1
        return part

    def _replace(
        self, link: WorkerLink, ids: list[int], error: EnvError, restarts: bool
    ) -> GroupStep:
        """The answer of the group that takes the place of one that is lost, if settings allow it.

        Raises:
            EnvError: What ended the last one.
        """
        for _ in range(self._replacements):
            _logger.warning("%s; starting another worker", error)
            time.sleep(self._settings.retry_waiting_time)
            try:
                link.revive()
                link.begin(ids, "restart", dict.fromkeys(ids), False)
                part = link.receive()
            except EnvError as again:
                error = again
                continue
            if restarts:
                return part
            first = [part.first[env_id] for env_id in ids]
            if self._shared is not None:
                obs_store.put_rows(self._shared, ids, self.store.stacked(ids, first))
                first = []
            infos = [{"abnormal": True, "error": str(error)} for _ in ids]
            nothing = [None] * len(ids)
            return GroupStep(ids, first, nothing, infos, abnormal=list(ids), states=part.states)
        link.end(0.0)
        raise error from None

"""Runs the environments of a manager in worker processes."""

import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._action_check import each_action
from ding.envs.env_manager._env_types import EnvState, GroupSettings, GroupStep, Seed
from ding.envs.env_manager._runner import Asked, EnvRunner
from ding.envs.env_manager._steps import Rows, vector_step
from ding.envs.env_manager._wire import HAS_SHARED_MEMORY, SharedBlock
from ding.envs.env_manager._worker import EnvWorkerSpec
from ding.envs.env_manager._worker_link import WorkerLink
from ding.envs.env_manager._worker_pool import Gathered, WorkerPool
from ding.envs.vector_step import VectorStep
from ding.utils import durations
from ding.utils.errors import DingError


class PoolRunner(EnvRunner):
    """Sends a step to the workers, and takes what they have answered meanwhile.

    Args:
        env_fns: One per environment.
        per_worker: Environments in each worker.
        new_link: Starts a worker.
        settings: Of every worker's environments.
        cfg: The config of a subprocess manager.
        waits_for_all: Whether a step's answer holds all that were stepped, whatever `cfg` says of
            waiting.
        seeds: The manager's own dict: a worker that is replaced starts from what it holds then.
        replay_paths: Likewise.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable],
        per_worker: int,
        new_link: Callable[[EnvWorkerSpec], WorkerLink],
        settings: GroupSettings,
        cfg: Mapping[str, Any],
        waits_for_all: bool,
        seeds: Mapping[int, Seed],
        replay_paths: Mapping[int, str],
    ) -> None:
        super().__init__(len(env_fns))
        self._cfg, self._waits_for_all = cfg, waits_for_all
        timeout = cfg["connect_timeout"]
        self._pool = WorkerPool(
            env_fns, per_worker, new_link, settings, timeout, seeds, replay_paths
        )
        # Ends the workers of a manager that nobody closed.
        self._finalizer = weakref.finalize(self, _abandon, self._pool, os.getpid())
        self.states, self.groups = self._pool.states, self._pool.links
        self._space: Any = None
        self._is_shared = False

    def start(self) -> dict[str, Any]:
        spaces = self._pool.start()
        self._space = spaces["observation_space"]
        return spaces

    def stop(self, wait: bool) -> None:
        self._pool.close(durations.ENV_CLOSE_PATIENCE if wait else 0.0)
        self._finalizer.detach()

    def group_of(self, env_id: int) -> Asked:
        return self._pool.link_of(env_id)

    def _states_of(self, group: Any) -> Mapping[int, dict[str, Any]]:
        return self._pool.states_of(group)

    @property
    def in_flight(self) -> Sequence[int]:  # type: ignore[override]
        """Environments whose step has not been received yet."""
        return self._pool.in_flight

    def note_ready(self) -> None:
        busy = set(self._pool.in_flight)
        running = (i for i, state in self.states.items() if state == EnvState.RUN)
        self._set_ready([env_id for env_id in running if env_id not in busy])

    def restart(self, params: Mapping[int, dict | None], recount: bool) -> None:
        self._store_first(self._pool.restart(params, recount))

    def _make_store(self, first: Sequence[Any]) -> Any:
        store = super()._make_store(first)
        if store.layout is None or not (self._cfg["shared_memory"] and HAS_SHARED_MEMORY):
            return store
        # Workers cannot make room for wider numbers later.
        layout = obs_store.fit_for_space(store.layout, self._space)
        block = SharedBlock(obs_store.layout_bytes(layout, self.env_num))
        shared = obs_store.ObsColumns(layout, self.env_num, block.memory)
        for env_id in range(self.env_num):
            shared.write(env_id, store.row(env_id))
        self._pool.share(layout, block)
        self._is_shared = True
        return shared

    def step(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        pool, full = self._pool, ids == self._all_list
        if self._is_shared and full:
            self.store.slot = pool.slot = 1 - pool.slot
        if full and not want_rows and actions.dtype != object:
            pool.send_columns(actions, pool.slot)
        elif ids:
            pool.send_some(ids, each_action(actions), pool.slot, want_rows)
        gathered = Gathered()
        try:
            self._receive(gathered)
        except DingError:
            self.note_ready()
            raise
        if full:
            rewards = gathered.plain_rewards(ids)
            if rewards is not None:
                none = np.zeros(len(ids), bool)
                return VectorStep(self._all_ids, self.store.view(), rewards, none, none.copy()), ()
        self.note_ready()
        answered = gathered.ids
        if answered != set(ids):
            ids = sorted(answered)
        step = gathered.step(ids)
        obs = self._take_obs(ids, gathered, step, want_rows)
        rows = list(zip(step.rewards, step.infos)) if want_rows else ()
        return vector_step(self._id_array(ids), obs, step, strict=not want_rows), rows

    def _take_obs(
        self, ids: list[int], gathered: Gathered, step: GroupStep, want_rows: bool
    ) -> Any:
        """The observations of a step in columns, those of the next episodes being stored."""
        if self._is_shared:
            if ids != self._all_list:
                obs = self.store.gather(ids)
            elif gathered.last_obs:
                obs = obs_store.copy_columns(self.store.view())
            else:
                return self.store.view()
            for env_id, last in gathered.last_obs.items():
                obs_store.put_row(obs, ids.index(env_id), last)
            return obs
        obs = self._store_step(ids, step.obs, want_rows)
        if gathered.first_obs:
            obs = obs_store.copy_columns(obs)
            for env_id, first in gathered.first_obs.items():
                self._write_first(env_id, first)
        return obs

    def _receive(self, gathered: Gathered) -> None:
        """Wait until enough environments have answered."""
        errors: list[DingError] = []
        if self._waits_for_all:
            self._collect([link for link in self._pool.links if link.pending], gathered, errors)
        else:
            self._receive_some(gathered, errors)
        if errors:
            raise errors[0]

    def _receive_some(self, gathered: Gathered, errors: list[DingError]) -> None:
        deadline = None
        if self._cfg["step_wait_timeout"] is not None:
            deadline = time.monotonic() + self._cfg["step_wait_timeout"]
        while self._pool.in_flight and not errors:
            late = deadline is not None and time.monotonic() >= deadline
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if late or len(gathered.ids) >= self._cfg["wait_num"]:
                # Somebody has to be ready for an action, or callers would have nothing to do.
                if any(self.states[i] == EnvState.RUN for i in gathered.ids):
                    break
                left = None
            self._collect(self._pool.wait(left), gathered, errors)

    def _collect(
        self, links: Sequence[WorkerLink], gathered: Gathered, errors: list[DingError]
    ) -> None:
        # The answers of the others are to be taken in before an error is raised.
        for link in links:
            try:
                self._pool.receive(link, gathered)
            except DingError as error:
                errors.append(error)


def _abandon(pool: WorkerPool, owner_pid: int) -> None:
    if os.getpid() == owner_pid:  # a forked child has a copy of the manager, but not its workers
        pool.close(0.0)

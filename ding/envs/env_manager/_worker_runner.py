"""Runs the environments of a manager in worker processes; replaces workers that are lost."""

import logging
import os
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._action_check import each_action
from ding.envs.env_manager._env_types import EnvState, GroupSettings, Seed
from ding.envs.env_manager._runner import EnvRunner
from ding.envs.env_manager._steps import Rows, vector_step
from ding.envs.env_manager._wire import (
    HAS_SHARED_MEMORY,
    Answer,
    SharedBlock,
    StepReply,
    mere_rewards,
    merged,
)
from ding.envs.env_manager._worker import EnvWorkerSpec
from ding.envs.env_manager._worker_link import EnvWorkerLost, WorkerLink, stop
from ding.envs.vector_step import VectorStep
from ding.utils import durations
from ding.utils.errors import DingError, EnvError

_logger = logging.getLogger(__name__)


class WorkerRunner(EnvRunner):
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
        self._env_fns, self._per_worker, self._new_link = env_fns, per_worker, new_link
        self._settings, self._cfg, self._waits_for_all = settings, cfg, waits_for_all
        self._seeds, self._replay_paths = seeds, replay_paths
        self._links: list[WorkerLink] = []
        self.groups = self._links
        # Ends the workers of a manager that nobody closed.
        self._finalizer = weakref.finalize(self, _abandon, self._links, os.getpid())
        self._episode_count = dict.fromkeys(self.states, 0)
        self._reset_kwargs: dict[int, dict[str, Any]] = {}
        self._space: Any = None
        self._shared: SharedBlock | None = None  # where the store is, if workers write into it
        renew = settings.retry_type == "renew"
        self._replacements = settings.max_retry - 1 if renew else 0

    # ---- life ------------------------------------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Start all workers at once."""
        for first in range(0, self.env_num, self._per_worker):
            ids = self._all_list[first : first + self._per_worker]
            self._links.append(self._new_link(self._spec(ids, 0)))
        spaces = {}
        for link in self._links:
            spaces.update(self._started(link))
        self.states.update(dict.fromkeys(self.states, EnvState.INIT))
        self._space = spaces["observation_space"]
        return spaces

    def stop(self, wait: bool) -> None:
        stop(self._links, durations.ENV_CLOSE_PATIENCE if wait else 0.0)
        self._links.clear()
        if self._shared is not None:
            self._shared.close()
        self._finalizer.detach()

    def ask(self, method: str, env_id: int, *args: Any) -> Any:
        return self._links[env_id // self._per_worker].ask(method, env_id, *args)

    def _states_of(self, group: Any) -> Mapping[int, dict[str, Any]]:
        """Of a worker that does not answer, what its replacement would start with."""
        if group.settle(durations.ENV_SETTLE):
            return group.ask("state_dict")
        return {
            env_id: {
                "seed": self._seeds.get(env_id),
                "to_seed": False,
                "renewals": group.spec.renewals,
                "episode_count": self._episode_count[env_id],
                "env": None,
                "generators": {},
                "process": None,
            }
            for env_id in group.ids
        }

    @property
    def in_flight(self) -> Sequence[int]:  # type: ignore[override]
        """Environments whose step has not been received yet."""
        return [env_id for link in self._links for ids in link.pending for env_id in ids]

    def note_ready(self) -> None:
        busy = set(self.in_flight)
        running = (i for i, state in self.states.items() if state == EnvState.RUN)
        self._set_ready([env_id for env_id in running if env_id not in busy])

    # ---- resets ----------------------------------------------------------------------------------

    def restart(self, params: Mapping[int, dict | None], recount: bool) -> None:
        """Reset environments; a worker that is gone is started anew.

        Raises:
            EnvError: The first of the failures, after all workers have answered.
        """
        for env_id, kwargs in params.items():
            if kwargs is not None:
                self._reset_kwargs[env_id] = kwargs
            if recount or self.states[env_id] == EnvState.DONE:
                self._episode_count[env_id] = 0
        shares = self._shares(params)
        for index, ids in shares.items():
            link = self._links[index]
            try:
                link.drop_steps()
                self._post_restart(link, ids, recount)
            except EnvWorkerLost:
                self._post_restart(self._revive(link), ids, recount)
        first: dict[int, Any] = {}
        errors: list[DingError] = []
        for index, ids in shares.items():
            link = self._links[index]
            try:
                try:
                    first.update(link.reply(self._reset_limit(ids)))
                except EnvWorkerLost as lost:
                    first.update(self._replace(link, ids, lost))
                self.states.update(dict.fromkeys(ids, EnvState.RUN))
            except DingError as error:
                self.states.update(dict.fromkeys(ids, EnvState.ERROR))
                errors.append(error)
        if errors:
            raise errors[0]
        self._store_first(first)

    def _post_restart(self, link: WorkerLink, ids: Sequence[int], recount: bool) -> None:
        params = {env_id: self._reset_kwargs.get(env_id) for env_id in ids}
        link.post("restart", params, recount, self._slot)

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
        self._shared = block
        for link in self._links:
            link.attach(layout, block)
        return shared

    @property
    def _slot(self) -> int:
        """Where in shared memory observations go."""
        return 0 if self._shared is None else self.store.slot

    # ---- steps -----------------------------------------------------------------------------------

    def step(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        full = ids == self._all_list
        if self._shared is not None and full:
            self.store.slot = 1 - self.store.slot
        self._send(ids, actions, want_rows)
        try:
            answers = self._receive()
        except DingError:
            self.note_ready()
            raise
        if full:
            rewards = mere_rewards(answers, ids)
            if rewards is not None:
                none = np.zeros(len(ids), bool)
                return VectorStep(self._all_ids, self.store.view(), rewards, none, none.copy()), ()
        self.note_ready()
        reply = merged(answers)
        if reply.rewards.keys() != set(ids):
            ids = sorted(reply.rewards)
        step = reply.in_order(ids)
        obs = self._take_obs(ids, reply, want_rows)
        rows = list(zip(step.rewards, step.infos)) if want_rows else ()
        return vector_step(self._id_array(ids), obs, step, strict=not want_rows), rows

    def _send(self, ids: list[int], actions: Any, want_rows: bool) -> None:
        """Start a step. What is wrong with a worker shows when its reply is fetched."""
        slot = self._slot
        if ids == self._all_list and not want_rows and actions.dtype != object:
            for link in self._links:
                try:
                    own = actions[link.ids[0] : link.ids[-1] + 1]
                    link.send_columns(own, slot, self._step_limit(link))
                except EnvWorkerLost:
                    link.pending.append(link.ids)
            return
        by_id = dict(zip(ids, each_action(actions)))
        for index, share in self._shares(ids).items():
            link, chosen = self._links[index], [by_id[env_id] for env_id in share]
            try:
                link.send_step(share, chosen, slot, want_rows, self._step_limit(link))
            except EnvWorkerLost:
                link.pending.append(share)

    def _take_obs(self, ids: list[int], reply: StepReply, want_rows: bool) -> Any:
        """The observations of a step in columns, those of the next episodes being stored."""
        if self._shared is None:
            obs = self._store_step(ids, [reply.obs[env_id] for env_id in ids], want_rows)
            if reply.first_obs:
                obs = obs_store.copy_columns(obs)
                for env_id, first in reply.first_obs.items():
                    self._write_first(env_id, first)
            return obs
        if ids != self._all_list:
            obs = self.store.gather(ids)
        elif reply.obs:
            obs = obs_store.copy_columns(self.store.view())
        else:
            return self.store.view()
        for env_id, last in reply.obs.items():
            obs_store.put_row(obs, ids.index(env_id), last)
        return obs

    def _receive(self) -> list[Answer]:
        """Wait until enough environments have answered."""
        answers: list[Answer] = []
        errors: list[DingError] = []
        if self._waits_for_all:
            self._collect([link for link in self._links if link.pending], answers, errors)
        else:
            self._receive_some(answers, errors)
        if errors:
            raise errors[0]
        return answers

    def _receive_some(self, answers: list[Answer], errors: list[DingError]) -> None:
        deadline = None
        if self._cfg["step_wait_timeout"] is not None:
            deadline = time.monotonic() + self._cfg["step_wait_timeout"]
        while self.in_flight and not errors:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            answered = [env_id for ids, _ in answers for env_id in ids]
            if left == 0.0 or len(answered) >= self._cfg["wait_num"]:
                # Somebody has to be ready for an action, or callers would have nothing to do.
                if any(self.states[env_id] == EnvState.RUN for env_id in answered):
                    break
                left = None
            self._collect(self._wait(left), answers, errors)

    def _collect(
        self, links: Sequence[WorkerLink], answers: list[Answer], errors: list[DingError]
    ) -> None:
        # The answers of the others are to be taken in before an error is raised.
        for link in links:
            try:
                answers.append(self._answer(link))
            except DingError as error:
                errors.append(error)

    def _answer(self, link: WorkerLink) -> Answer:
        """Wait for the oldest step under way of one worker.

        Raises:
            DingError: An environment failed or its worker is lost, and that was not recovered.
        """
        ids = link.pending[0]
        try:
            reply = link.receive_step()
        except EnvWorkerLost as lost:
            ids = self._interrupted(link)
            first = self._replace(link, ids, lost)
            self.states.update(dict.fromkeys(ids, EnvState.RUN))
            info = {"abnormal": True, "error": str(lost.error)}
            reply = StepReply(dict.fromkeys(ids), {env_id: dict(info) for env_id in ids})
            reply.abnormal.update(ids)
            reply.obs.update(first)
            return ids, reply
        except DingError:
            self.states.update(dict.fromkeys(self._interrupted(link), EnvState.ERROR))
            raise
        if not isinstance(reply, bytes):
            self.states.update(reply.states)
            for env_id in reply.ended:
                self._episode_count[env_id] += 1
        return ids, reply

    def _wait(self, timeout: float | None) -> list[WorkerLink]:
        """The workers from which a step can be received, or that are too late with it."""
        busy = [link for link in self._links if link.pending]
        ready = [link for link in busy if link.has_reply]
        if ready or not busy:
            return ready
        ends = [link.deadline for link in busy if link.deadline is not None]
        if ends:
            until_late = max(0.0, min(ends) - time.monotonic())
            timeout = until_late if timeout is None else min(timeout, until_late)
        woken = set(wait([end for link in busy for end in link.waitables], timeout))
        now = time.monotonic()
        return [
            link
            for link in busy
            if not woken.isdisjoint(link.waitables)
            or (link.deadline is not None and link.deadline <= now)
        ]

    # ---- workers that are lost -------------------------------------------------------------------

    def _interrupted(self, link: WorkerLink) -> list[int]:
        """Environments whose episode the end of their worker cuts, asked to step or not."""
        return [env_id for env_id in link.ids if self.states[env_id] == EnvState.RUN]

    def _replace(self, link: WorkerLink, ids: Sequence[int], lost: EnvWorkerLost) -> dict[int, Any]:
        """Make and reset environments in another worker, if the settings say so.

        Returns:
            First observations, unless they are in shared memory.
        """
        error: DingError = lost.error
        for _ in range(self._replacements):
            _logger.warning("%s; starting another worker", error)
            time.sleep(self._settings.retry_waiting_time)
            try:
                link = self._revive(link)
                self._post_restart(link, ids, recount=False)
                return link.reply(self._reset_limit(ids))
            except EnvWorkerLost as again:
                error = again.error
            except EnvError as again:
                error = again
        stop([link], 0.0)
        self.states.update(dict.fromkeys(ids, EnvState.ERROR))
        raise error from None

    def _revive(self, link: WorkerLink) -> WorkerLink:
        """Another worker in the place of one that is lost; its environments are not reset yet."""
        stop([link], 0.0)
        new = self._new_link(self._spec(link.ids, link.spec.renewals + 1))
        self._links[self._links.index(link)] = new
        self._started(new)
        if self._shared is not None:
            new.attach(self.store.layout, self._shared)
        return new

    # ---- inside ----------------------------------------------------------------------------------

    def _spec(self, ids: Sequence[int], renewals: int) -> EnvWorkerSpec:
        return EnvWorkerSpec(
            env_fns={env_id: self._env_fns[env_id] for env_id in ids},
            env_num=self.env_num,
            settings=self._settings,
            parent_pid=os.getpid(),
            seeds={env_id: self._seeds[env_id] for env_id in ids if env_id in self._seeds},
            replay_paths=dict(self._replay_paths),
            renewals=renewals,
            episode_count={env_id: self._episode_count[env_id] for env_id in ids},
        )

    def _started(self, link: WorkerLink) -> dict[str, Any]:
        limit = self._cfg["connect_timeout"]
        try:
            return link.reply(limit, f"start within {limit} s")
        except EnvWorkerLost as lost:
            raise lost.error from None

    def _shares(self, ids: Iterable[int]) -> dict[int, list[int]]:
        """Position of the worker to those of `ids` that are its own."""
        shares: dict[int, list[int]] = {}
        for env_id in ids:
            shares.setdefault(env_id // self._per_worker, []).append(env_id)
        return shares

    def _reset_limit(self, ids: Sequence[int]) -> float | None:
        limits = self._settings
        if limits.reset_timeout is None:
            return None
        return len(ids) * limits.max_retry * (limits.reset_timeout + limits.retry_waiting_time)

    def _step_limit(self, link: WorkerLink) -> float | None:
        """All environments of a worker may use up their time, and be reset after that."""
        if self._settings.step_timeout is None:
            return None
        return len(link.ids) * self._settings.step_timeout + (self._reset_limit(link.ids) or 0.0)


def _abandon(links: list[WorkerLink], owner_pid: int) -> None:
    if os.getpid() == owner_pid:  # a forked child has a copy of the manager, but not its workers
        stop(links, 0.0)

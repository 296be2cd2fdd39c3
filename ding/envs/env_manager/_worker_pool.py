"""The workers of a subprocess manager: started, asked, and replaced when they are lost."""

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from ding.envs.env_manager._env_types import (
    EnvState,
    GroupSettings,
    GroupStep,
    Seed,
)
from ding.envs.env_manager._obs_store import Layout
from ding.envs.env_manager._wire import SharedBlock, StepReply
from ding.envs.env_manager._worker import EnvWorkerSpec
from ding.envs.env_manager._worker_link import EnvWorkerLost, WorkerLink, stop
from ding.utils import durations
from ding.utils.errors import DingError, EnvError

_logger = logging.getLogger(__name__)


class Gathered:
    """The answers of workers, by env id."""

    def __init__(self) -> None:
        self._plain: list[tuple[Sequence[int], bytes]] = []
        self.rewards: dict[int, Any] = {}
        self.infos: dict[int, dict[str, Any]] = {}
        self.ended: set[int] = set()
        self.abnormal: set[int] = set()
        self.obs: dict[int, Any] = {}
        self.last_obs: dict[int, Any] = {}
        self.first_obs: dict[int, Any] = {}
        self.states: dict[int, EnvState] = {}

    def add(self, ids: Sequence[int], reply: StepReply | bytes) -> None:
        """Take in one worker's answer about the environments `ids`."""
        if isinstance(reply, bytes):
            self._plain.append((ids, reply))
            return
        self.rewards.update(zip(ids, reply.rewards))
        infos = reply.infos if isinstance(reply.infos, Mapping) else dict(enumerate(reply.infos))
        self.infos.update({ids[p]: info for p, info in infos.items()})
        self.ended.update(ids[p] for p in reply.ended)
        self.abnormal.update(ids[p] for p in reply.abnormal)
        self.last_obs.update({ids[p]: obs for p, obs in reply.last_obs.items()})
        self.first_obs.update({ids[p]: obs for p, obs in reply.first_obs.items()})
        if reply.obs is not None:
            self.obs.update(zip(ids, reply.obs))
        self.states.update(reply.states)

    def plain_rewards(self, ids: Sequence[int]) -> np.ndarray | None:
        """The rewards of `ids`, if those answered just that, in that order; the common case."""
        if self.rewards or [i for part, _ in self._plain for i in part] != ids:
            return None
        joined = b"".join([reply[1:] for _, reply in self._plain])
        rewards = np.frombuffer(bytearray(joined), np.float32)
        return rewards if len(rewards) == len(ids) else rewards.reshape(len(ids), -1)

    @property
    def ids(self) -> set[int]:
        """Who has answered."""
        return self.rewards.keys() | {env_id for part, _ in self._plain for env_id in part}

    def add_lost(self, ids: Sequence[int], obs: Mapping[int, Any], reason: str) -> None:
        """Environments whose worker was replaced.

        Args:
            obs: Their first observations, unless those are in shared memory.
        """
        for env_id in ids:
            self.rewards[env_id] = None
            self.infos[env_id] = {"abnormal": True, "error": reason}
        self.abnormal.update(ids)
        self.obs.update(obs)

    def step(self, ids: Sequence[int]) -> GroupStep:
        """The answers in the order of `ids`; observations only if they are not shared."""
        for part, reply in self._plain:
            rewards = np.frombuffer(reply, np.float32, offset=1)
            players = len(rewards) // len(part)
            # Numbers as such, as in the answers that are pickled.
            values = rewards.reshape(-1, players) if players > 1 else rewards.tolist()
            self.rewards.update(zip(part, values))
        shape = next((np.shape(r) for r in self.rewards.values() if r is not None), ())
        for env_id, reward in self.rewards.items():
            if reward is None:
                self.rewards[env_id] = np.zeros(shape, np.float32) if shape else 0.0
        ended = [p for p, env_id in enumerate(ids) if env_id in self.ended]
        return GroupStep(
            [self.obs[env_id] for env_id in ids] if self.obs else [],
            [self.rewards[env_id] for env_id in ids],
            [self.infos.get(env_id, {}) for env_id in ids],
            ended,
            [p for p, env_id in enumerate(ids) if env_id in self.abnormal],
        )


class WorkerPool:
    """Environments 0 to n - 1, a fixed number of them in each worker.

    Args:
        env_fns: One per environment.
        per_worker: Environments in each worker.
        new_link: Starts a worker.
        settings: Of every worker's environments.
        connect_timeout: Seconds that making the environments of a worker may take.
        seeds: The manager's own dict: a worker that is replaced starts from what it holds then.
        replay_paths: Likewise.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable],
        per_worker: int,
        new_link: Callable[[EnvWorkerSpec], WorkerLink],
        settings: GroupSettings,
        connect_timeout: float,
        seeds: Mapping[int, Seed],
        replay_paths: Mapping[int, str],
    ) -> None:
        self.links: list[WorkerLink] = []
        self.states = dict.fromkeys(range(len(env_fns)), EnvState.VOID)
        self.episode_count = dict.fromkeys(range(len(env_fns)), 0)
        self.slot = 0
        self._env_fns = list(env_fns)
        self._per_worker = per_worker
        self._new_link = new_link
        self._settings = settings
        self._connect_timeout = connect_timeout
        self._seeds = seeds
        self._replay_paths = replay_paths
        self._reset_kwargs: dict[int, dict[str, Any]] = {}
        self._shared: tuple[Layout, SharedBlock] | None = None
        self._action_layout: tuple[str, tuple[int, ...], type] | None = None
        renew = settings.retry_type == "renew"
        self._replacements = settings.max_retry - 1 if renew else 0

    # ---- life ---------------------------------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Start all workers at once; the spaces of environment 0."""
        count = len(self._env_fns)
        for first in range(0, count, self._per_worker):
            ids = range(first, min(first + self._per_worker, count))
            self.links.append(self._new_link(self._spec(ids, 0)))
        spaces = {}
        for link in self.links:
            spaces.update(self._started(link))
        self.states.update(dict.fromkeys(self.states, EnvState.INIT))
        return spaces

    def close(self, patience: float) -> None:
        """End the workers within a little more than `patience` seconds."""
        stop(self.links, patience)
        self.links.clear()
        if self._shared is not None:
            self._shared[1].close()

    def share(self, layout: Layout, block: SharedBlock) -> None:
        """Have observations written into shared memory, into slot ``self.slot``."""
        self._shared = layout, block
        for link in self.links:
            link.attach(layout, block)

    def link_of(self, env_id: int) -> WorkerLink:
        return self.links[env_id // self._per_worker]

    # ---- resets -------------------------------------------------------------------------------

    def restart(self, params: Mapping[int, dict | None], recount: bool) -> dict[int, Any]:
        """Reset environments; a worker that is gone is started anew.

        Returns:
            First observations by env id, unless they are in shared memory.

        Raises:
            EnvError: The first of the failures, after all workers have answered.
        """
        for env_id, kwargs in params.items():
            if kwargs is not None:
                self._reset_kwargs[env_id] = kwargs
            if recount or self.states[env_id] == EnvState.DONE:
                self.episode_count[env_id] = 0
        shares = self._shares(list(params))
        for index, ids in shares.items():
            self._post_restart(index, ids, recount)
        first: dict[int, Any] = {}
        errors: list[DingError] = []
        for index, ids in shares.items():
            link = self.links[index]
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
        return first

    def _post_restart(self, index: int, ids: list[int], recount: bool) -> None:
        params = {env_id: self._reset_kwargs.get(env_id) for env_id in ids}
        try:
            self.links[index].drop_steps()
            self.links[index].post("restart", params, recount, self.slot)
        except EnvWorkerLost:
            link = self._revive(self.links[index])
            link.post("restart", params, recount, self.slot)

    def states_of(self, link: WorkerLink) -> dict[int, dict[str, Any]]:
        """What the next episodes of a worker's environments depend on, by env id.

        Of a worker that does not answer it is what its replacement would start with.
        """
        if link.settle(durations.ENV_SETTLE):
            return link.ask("state_dict")
        return {
            env_id: {
                "seed": self._seeds.get(env_id),
                "to_seed": False,
                "renewals": link.spec.renewals,
                "episode_count": self.episode_count[env_id],
                "env": None,
                "generators": {},
                "process": None,
            }
            for env_id in link.ids
        }

    # ---- steps --------------------------------------------------------------------------------

    def send_columns(self, actions: Any, slot: int) -> None:
        """Start a step of all environments.

        Args:
            actions: ``[n, *action_shape]``.
            slot: Where observations go.
        """
        layout = actions.dtype.str, actions.shape[1:], type(actions)
        limits = self._step_limits
        for index, link in enumerate(self.links):
            try:
                if self._action_layout != layout:
                    link.post("set_action_layout", *layout)
                share = actions[link.ids[0] : link.ids[-1] + 1]
                link.send_actions(slot, share.tobytes(), limits[index])
            except EnvWorkerLost:
                link.pending.append(link.ids)  # what is wrong shows when the reply is fetched
        self._action_layout = layout

    def send_some(
        self, ids: Sequence[int], actions: Sequence[Any], slot: int, want_rows: bool
    ) -> None:
        """Start a step of some environments, or one whose rows are wanted."""
        by_id = dict(zip(ids, actions))
        for index, share in self._shares(ids).items():
            link = self.links[index]
            chosen = [by_id[env_id] for env_id in share]
            try:
                link.send_step(share, chosen, slot, want_rows, self._step_limits[index])
            except EnvWorkerLost:
                link.pending.append(share)

    @property
    def in_flight(self) -> list[int]:
        """Environments whose step has not been received yet."""
        return [env_id for link in self.links for ids in link.pending for env_id in ids]

    def receive(self, link: WorkerLink, gathered: Gathered) -> None:
        """Wait for the oldest step under way of one worker.

        Raises:
            DingError: An environment failed or its worker is lost, and that was not recovered.
        """
        ids = link.pending[0]
        try:
            reply = link.receive_step()
        except EnvWorkerLost as lost:
            ids = self._interrupted(link)
            gathered.add_lost(ids, self._replace(link, ids, lost), str(lost.error))
            self.states.update(dict.fromkeys(ids, EnvState.RUN))
            return
        except DingError:
            self.states.update(dict.fromkeys(self._interrupted(link), EnvState.ERROR))
            raise
        gathered.add(ids, reply)
        if not isinstance(reply, bytes):
            self.states.update(reply.states)
            for position in reply.ended:
                self.episode_count[ids[position]] += 1

    def wait(self, timeout: float | None) -> list[WorkerLink]:
        """The workers from which a step can be received, or that are too late with it."""
        busy = [link for link in self.links if link.pending]
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

    # ---- workers that are lost ----------------------------------------------------------------

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
                params = {env_id: self._reset_kwargs.get(env_id) for env_id in ids}
                link.post("restart", params, False, self.slot)
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
        self.links[self.links.index(link)] = new
        self._started(new)
        if self._shared is not None:
            new.attach(*self._shared)
        self._action_layout = None
        return new

    # ---- inside -------------------------------------------------------------------------------

    def _spec(self, ids: Sequence[int], renewals: int) -> EnvWorkerSpec:
        return EnvWorkerSpec(
            env_fns={env_id: self._env_fns[env_id] for env_id in ids},
            env_num=len(self._env_fns),
            settings=self._settings,
            parent_pid=os.getpid(),
            seeds={env_id: self._seeds[env_id] for env_id in ids if env_id in self._seeds},
            replay_paths=dict(self._replay_paths),
            renewals=renewals,
            episode_count={env_id: self.episode_count[env_id] for env_id in ids},
        )

    def _started(self, link: WorkerLink) -> dict[str, Any]:
        try:
            return link.reply(self._connect_timeout, f"start within {self._connect_timeout} s")
        except EnvWorkerLost as lost:
            raise lost.error from None

    def _shares(self, ids: Sequence[int]) -> dict[int, list[int]]:
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

    @property
    def _step_limits(self) -> list[float | None]:
        """Per worker: all of its environments may use up their time, and be reset after that."""
        if self._settings.step_timeout is None:
            return [None] * len(self.links)
        return [
            len(link.ids) * self._settings.step_timeout + (self._reset_limit(link.ids) or 0.0)
            for link in self.links
        ]

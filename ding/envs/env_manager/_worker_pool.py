"""Environments in worker processes, several in each."""

import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import wait

import numpy as np

from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._env_types import EnvState, GroupSpec
from ding.envs.env_manager._runner import Answer, EnvRunner, GroupStep
from ding.envs.env_manager._worker import HAS_SHARED_MEMORY, SharedBlock
from ding.envs.env_manager._worker_link import WorkerLink
from ding.envs.env_wrappers.gym_to_gymnasium import FoundSpace
from ding.envs.vector_step import Actions, Obs
from ding.utils import durations
from ding.utils.errors import DingError, EnvDiedError, EnvError
from ding.utils.types import Config, State

_logger = logging.getLogger(__name__)


class WorkerPool(EnvRunner):
    """Has workers step their environments, and joins what they answer.

    Args:
        spec: Of all environments.
        per_worker: Environments in each.
        make_link: Starts a worker for a spec.
        shared_memory: Whether observations come in shared memory, if they can.
        wait_num: How many environments a step waits for; infinity for all that were stepped.
        wait_timeout: Seconds after which it returns with fewer, but at least one.
    """

    def __init__(
        self,
        spec: GroupSpec,
        per_worker: int,
        make_link: Callable[[GroupSpec], WorkerLink],
        shared_memory: bool,
        wait_num: float = math.inf,
        wait_timeout: float | None = None,
    ) -> None:
        self.states = dict.fromkeys(spec.env_fns, EnvState.VOID)
        self._shares_memory = shared_memory and HAS_SHARED_MEMORY
        self._spec, self._per_worker, self._make_link = spec, per_worker, make_link
        self._links: list[WorkerLink] = []
        self._wait_num = wait_num
        self._wait_timeout = math.inf if wait_timeout is None else wait_timeout
        self._block: SharedBlock | None = None
        self._layout: obs_store.Layout  # of that memory
        self._shared: Obs = None  # columns in that block
        self._space: FoundSpace = None  # of observations

    # ---- life ------------------------------------------------------------------------------------

    def start(self) -> dict[str, FoundSpace]:
        env_fns = list(self._spec.env_fns.items())
        for first in range(0, len(env_fns), self._per_worker):
            own = dict(env_fns[first : first + self._per_worker])
            self._links.append(self._make_link(dataclasses.replace(self._spec, env_fns=own)))
        # All are started before any is waited for: they make their environments at the same time.
        spaces, *_ = [link.await_start() for link in self._links]
        self.states.update(dict.fromkeys(self.states, EnvState.INIT))
        self._space = spaces.get("observation_space")
        return spaces

    def stop(self, wait: bool) -> None:
        deadline = time.monotonic() + (durations.ENV_CLOSE_PATIENCE if wait else 0.0)
        for link in self._links if wait else ():
            link.post("close")
        for link in self._links:
            link.end(deadline)
        self._links.clear()
        if self._block is not None:
            self._block.close()

    def _share_memory(self, observations: Sequence[Obs]) -> None:
        """Have the observations of steps come in shared memory, if they fit columns."""
        self._shares_memory = False  # not again
        layout, count = obs_store.ObsColumns(observations, self._space).layout, len(self.states)
        if layout == obs_store.OBJECT:
            return
        self._block = SharedBlock(obs_store.columns_bytes(layout, count))
        self._layout = layout
        self._shared = obs_store.columns_in_memory(layout, count, self._block.memory)
        for link in self._links:
            link.attach(layout, count, self._block)

    def ready(self) -> list[int]:
        running, busy = super().ready(), [link for link in self._links if link.pending]
        return [i for i in running if self._links[i // self._per_worker] not in busy]

    @property
    def in_flight(self) -> Sequence[int]:
        return [env_id for link in self._links for env_id in link.pending]

    # ---- requests --------------------------------------------------------------------------------

    def ask(self, method: str, env_id: int, *args: object) -> Answer:
        """Call a method of a group; a worker that has died is replaced: see the next step."""
        link = self._links[env_id // self._per_worker]
        try:
            return link.ask(method, env_id, *args)
        except EnvError as error:
            if not link.lost or link.is_given_up:
                raise
            asked, is_step = link.pending, link.is_step
            link.recovered = self._replace(link, asked, error)
            link.pending, link.is_step = asked, is_step
        return link.ask(method, env_id, *args)

    def ask_all(self, method: str, *args: object) -> list[Answer]:
        """Call it in all groups but those of lost workers, which the next step replaces."""
        answers = []
        for link in self._links:
            with contextlib.suppress(EnvDiedError):
                answers.append(link.ask(method, *args))
        return answers

    def env_states(self) -> Mapping[int, State]:
        return {env_id: own for link in self._links for env_id, own in link.env_states().items()}

    # ---- resets and steps ------------------------------------------------------------------------

    def restart(self, params: Mapping[int, Config | None], recount: bool) -> GroupStep:
        """Reset environments; a worker that is lost is replaced.

        Returns:
            What the others answered, also where some failed: ``error`` is the first failure.
        """
        self._spec.note_restart(params, recount)
        asked: list[WorkerLink] = []
        lost: list[DingError] = []
        for link, ids, _ in self._shares(list(params)):
            own = {env_id: params[env_id] for env_id in ids}
            has_lost = link.recovered is not None
            try:
                if link.pending:
                    # The answer is of episodes that the reset cuts.
                    with contextlib.suppress(DingError):
                        link.receive()
                if has_lost or link.lost:
                    own = {**dict.fromkeys(self._running(link)), **own}
                if link.lost:
                    link.revive()
            except EnvError as error:
                self.states.update(dict.fromkeys(own, EnvState.ERROR))
                lost.append(error)
                continue
            link.recovered = None
            link.begin(list(own), "restart", own, recount)
            asked.append(link)
        parts, errors = self._collect(asked)
        errors = [*lost, *errors]
        first = {env_id: obs for part in parts for env_id, obs in part.first.items()}
        if self._shares_memory and not errors:
            self._share_memory(list(first.values()))
        cut = [env_id for env_id in first if env_id not in params]
        return GroupStep(first=first, cut=cut, error=next(iter(errors), None))

    def step(self, ids: Sequence[int], actions: Actions, rows: bool = False) -> GroupStep:
        for link, share, at in self._shares(ids):
            own = actions[at] if isinstance(actions, np.ndarray) else [actions[p] for p in at]
            link.begin(share, "step", share, own, rows)
        parts, errors = self._collect(self._links, self._wait_num, self._wait_timeout)
        if errors:
            # The answers of the others are lost, as are those of an `EnvGroup` that fails.
            lost = {env_id for part in parts for env_id in (*part.ids, *part.first)}
            self.states.update(dict.fromkeys(lost & set(super().ready()), EnvState.ERROR))
            raise errors[0]
        step = _joined(parts, ids)
        if self._shared is not None:
            # Copied, as workers write the next observations into the same memory.
            step.obs = obs_store.take_rows(self._shared, step.ids)
        return step

    def _shares(self, ids: Sequence[int]) -> list[tuple[WorkerLink, list[int], list[int]]]:
        """Workers, those of `ids` that are theirs, and where in `ids` these are."""
        places: dict[int, list[int]] = {}
        for position, env_id in enumerate(ids):
            places.setdefault(env_id // self._per_worker, []).append(position)
        return [(self._links[i], [ids[p] for p in at], at) for i, at in places.items()]

    def _running(self, link: WorkerLink) -> list[int]:
        return [env_id for env_id in link.ids if self.states[env_id] == EnvState.RUN]

    def _collect(
        self, links: Sequence[WorkerLink], wait_num: float = math.inf, timeout: float = math.inf
    ) -> tuple[list[GroupStep], list[DingError]]:
        """What workers answer, until enough of their environments have answered."""
        parts: list[GroupStep] = []
        errors: list[DingError] = []
        end = time.monotonic() + timeout
        while (busy := [link for link in links if link.pending]) and not errors:
            answered = [env_id for part in parts for env_id in part.ids]
            if len(answered) >= wait_num or time.monotonic() >= end:
                # One has to be ready for an action, or callers would have nothing to do.
                if any(self.states[env_id] == EnvState.RUN for env_id in answered):
                    break
                end = math.inf
            # The answers of the others are to be taken in before an error is raised.
            for link in busy if wait_num == math.inf else _answered(busy, end):
                try:
                    parts.append(self._answer(link))
                except DingError as error:
                    errors.append(error)
        return parts, errors

    def _answer(self, link: WorkerLink) -> GroupStep:
        """Wait for a worker's answer to what is under way: to a step, or to resets."""
        asked, is_step = link.pending, link.is_step
        try:
            part = link.receive()
        except DingError as error:
            if not isinstance(error, EnvError) or not link.lost:
                # An `EnvGroup` that fails in a step has lost the answers of all.
                failed = [*asked, *self._running(link)] if is_step else asked
                self.states.update(dict.fromkeys(failed, EnvState.ERROR))
                raise
            part = self._replace(link, asked, error)
        for env_id in part.ended:
            self._spec.episode_count[env_id] += 1
            is_over = self._spec.has_played(env_id)
            self.states[env_id] = EnvState.DONE if is_over else EnvState.NEED_RESET
        self.states.update(dict.fromkeys(part.first, EnvState.RUN))
        if is_step and part.error is not None:
            own = [part.first.pop(env_id) for env_id in asked]
            part.cut = list(part.first)
            if self._shared is not None:
                columns = obs_store.as_columns(self._layout, asked, own)
                obs_store.put_rows(self._shared, asked, columns)
                own = []
            part.infos = [{"abnormal": True, "error": str(part.error)} for _ in asked]
            part.ids = part.abnormal = asked
            part.obs, part.rewards = own, [None] * len(asked)
        return part

    def _replace(self, link: WorkerLink, asked: list[int], error: EnvError) -> GroupStep:
        """Have another worker take the place of a lost one.

        Returns:
            Its answer to resets of the environments that were `asked` for something, or have lost
            an episode; ``error`` is what the other one was lost by.

        Raises:
            EnvError: It died, or failed in another way, too often.
        """
        ids = [*asked, *(i for i in self._running(link) if i not in asked)]
        while link.may_lose(error):
            _logger.warning("%s; starting another worker", error)
            time.sleep(self._spec.settings.retry_waiting_time)
            try:
                link.revive()
                link.begin(ids, "restart", dict.fromkeys(ids), False)
                part = link.receive()
                part.error = error
                return part
            except EnvError as again:
                error = again
        link.end(0.0)
        self.states.update(dict.fromkeys(ids, EnvState.ERROR))
        raise error


def _answered(busy: Sequence[WorkerLink], end: float) -> list[WorkerLink]:
    """Wait until `end` for workers that have answered, or are too late with it."""
    end = min(end, *(0.0 if link.has_answer else link.deadline for link in busy))
    timeout = None if end == math.inf else max(0.0, end - time.monotonic())
    woken = set(wait([one for link in busy for one in link.child.waitables], timeout))
    return [
        link
        for link in busy
        if link.has_answer
        or link.deadline <= time.monotonic()
        or not woken.isdisjoint(link.child.waitables)
    ]


def _joined(parts: Sequence[GroupStep], ids: Sequence[int]) -> GroupStep:
    """The answers of several workers: in the order of `ids`, if it is those that answered."""
    if len(parts) == 1 and parts[0].ids == ids:
        return parts[0]
    whole = GroupStep()
    for name in ("ids", "obs", "rewards", "infos", "ended", "abnormal", "cut"):
        setattr(whole, name, [one for part in parts for one in getattr(part, name)])
    for part in parts:
        whole.first.update(part.first)
    if whole.ids != ids:
        order = ids if set(ids) == set(whole.ids) else sorted(whole.ids)
        at = [whole.ids.index(env_id) for env_id in order]
        for name in ("ids", "obs", "rewards", "infos"):
            column = getattr(whole, name)
            setattr(whole, name, [column[position] for position in at] if column else column)
    return whole

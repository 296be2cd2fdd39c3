"""Environments in worker processes, several in each."""

import contextlib
import dataclasses
import logging
import time
from collections import ChainMap
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
        wait_num: float = float("inf"),
        wait_timeout: float | None = None,
    ) -> None:
        self.states = dict.fromkeys(spec.env_fns, EnvState.VOID)
        self.shares_memory = shared_memory and HAS_SHARED_MEMORY
        self.waits_for_all = wait_num == float("inf")
        self._spec, self._per_worker, self._make_link = spec, per_worker, make_link
        self._links: list[WorkerLink] = []
        self._wait_num, self._wait_timeout = wait_num, wait_timeout
        self._block: SharedBlock | None = None
        self._layout: obs_store.Layout  # of that memory
        self._shared: Obs = None  # columns in that block
        renew = spec.settings.retry_type == "renew"
        #: How often a worker that hangs is replaced, or one whose environments cannot be made.
        self._renewals = spec.settings.max_retry - 1 if renew else 0

    # ---- life ------------------------------------------------------------------------------------

    def start(self) -> dict[str, FoundSpace]:
        env_fns = list(self._spec.env_fns.items())
        for first in range(0, len(env_fns), self._per_worker):
            own = dict(env_fns[first : first + self._per_worker])
            self._links.append(self._make_link(dataclasses.replace(self._spec, env_fns=own)))
        # All are started before any is waited for: they make their environments at the same time.
        spaces, *_ = [link.await_start() for link in self._links]
        self.states.update(dict.fromkeys(self.states, EnvState.INIT))
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

    def attach(self, layout: obs_store.Layout) -> None:
        count = len(self.states)
        self._block = SharedBlock(obs_store.columns_bytes(layout, count))
        self._layout = layout
        self._shared = obs_store.columns_in_memory(layout, count, self._block.memory)
        for link in self._links:
            link.attach(layout, count, self._block)

    def ready(self) -> list[int]:
        running, busy = super().ready(), self.in_flight
        return [i for i in running if i not in busy] if busy else running

    @property
    def in_flight(self) -> Sequence[int]:
        return [env_id for link in self._links for ids in link.pending for env_id in ids]

    # ---- requests --------------------------------------------------------------------------------

    def ask(self, method: str, env_id: int, *args: object) -> Answer:
        return self._links[env_id // self._per_worker].ask(method, env_id, *args)

    def ask_all(self, method: str, *args: object) -> list[Answer]:
        """Call it in all groups but those of lost workers, which the next step replaces."""
        answers = []
        for link in self._links:
            with contextlib.suppress(EnvDiedError):
                answers.append(link.ask(method, *args))
        return answers

    def env_states(self) -> Mapping[int, State]:
        return ChainMap(*(dict(link.env_states()) for link in self._links))

    # ---- resets and steps ------------------------------------------------------------------------

    def restart(self, params: Mapping[int, Config | None], recount: bool) -> GroupStep:
        """Reset environments; a worker that is lost is replaced.

        Returns:
            What the others answered, also where some failed: ``error`` is the first failure.
        """
        self._spec.note_restart(params, recount)
        asked: list[WorkerLink] = []
        parts: list[GroupStep] = []
        errors: list[DingError] = []
        cut: list[int] = []
        for link, ids, _ in self._shares(list(params)):
            with contextlib.suppress(EnvError):  # it may be lost
                # Answers to steps from before the reset are of episodes that it cuts.
                link.drop_steps()
            try:
                if link.lost:
                    others = self._cut_with(link, ids)
                    self.states.update(dict.fromkeys(link.ids, EnvState.ERROR))
                    link.revive()
                    ids, cut = ids + others, cut + others
            except EnvError as error:
                errors.append(error)
                continue
            link.begin(ids, "restart", {env_id: params.get(env_id) for env_id in ids}, recount)
            asked.append(link)
        self._collect(asked, parts, errors, restarts=True)
        whole = _joined(parts, [])
        return GroupStep(first=whole.first, cut=[*cut, *whole.cut], error=next(iter(errors), None))

    def _cut_with(self, link: WorkerLink, asked: Sequence[int]) -> list[int]:
        """Environments that lose their episodes if the worker is lost, apart from these."""
        running = super().ready()
        return [env_id for env_id in link.ids if env_id in running and env_id not in asked]

    def step(self, ids: Sequence[int], actions: Actions, rows: bool = False) -> GroupStep:
        for link, share, at in self._shares(ids):
            own = actions[at] if isinstance(actions, np.ndarray) else [actions[p] for p in at]
            link.begin(share, "step", share, own, rows)
        parts: list[GroupStep] = []
        errors: list[DingError] = []
        if self.waits_for_all:
            self._collect(self._links, parts, errors)
        else:
            self._collect_some(parts, errors)
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

    def _collect(
        self,
        links: Sequence[WorkerLink],
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

    def _wait(self, timeout: float | None) -> list[WorkerLink]:
        """The workers that have answered a step, or are too late with it."""
        busy = [link for link in self._links if link.pending]
        ready = [link for link in busy if link.replies]
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
        """Wait for the oldest answer under way of one worker: to a step, or to resets."""
        asked = [env_id for ids in link.pending for env_id in ids]
        try:
            part = link.receive()
        except DingError as error:
            is_lost = link.lost and isinstance(error, EnvError)
            others = [] if restarts and not is_lost else self._cut_with(link, asked)
            self.states.update(dict.fromkeys([*asked, *others], EnvState.ERROR))
            if not is_lost:
                raise
            part = self._replace(link, asked, others, error, restarts)
        if part.states:
            self.states.update(part.states)
            for env_id in part.ended:
                self._spec.episode_count[env_id] += 1
        return part

    def _replace(
        self,
        link: WorkerLink,
        asked: list[int],
        others: list[int],
        error: DingError,
        restarts: bool,
    ) -> GroupStep:
        """The answer of the worker that takes the place of a lost one.

        Its environments begin new episodes, those that were `asked` for something and the `others`.

        Raises:
            EnvError: It died, or fails in another way, too often.
        """
        renewals, ids = self._renewals, [*asked, *others]
        while True:
            if isinstance(error, EnvDiedError) and link.spare:
                link.spare -= 1
            elif renewals:
                renewals -= 1
            else:
                link.end(0.0)
                raise error
            _logger.warning("%s; starting another worker", error)
            time.sleep(self._spec.settings.retry_waiting_time)
            try:
                link.revive()
                link.begin(ids, "restart", dict.fromkeys(ids), False)
                part = link.receive()
                break
            except EnvError as again:
                error = again
        part.cut = others
        if restarts:
            return part
        own = [part.first.pop(env_id) for env_id in asked]
        if self._shared is not None:
            columns = obs_store.as_columns(self._layout, asked, own)
            obs_store.put_rows(self._shared, asked, columns)
            own = []
        infos = [{"abnormal": True, "error": str(error)} for _ in asked]
        part.ids, part.obs, part.rewards, part.infos = asked, own, [None] * len(asked), infos
        part.abnormal = asked
        return part


def _joined(parts: Sequence[GroupStep], ids: Sequence[int]) -> GroupStep:
    """The answers of several workers: in the order of `ids`, if it is those that answered."""
    if len(parts) == 1 and parts[0].ids == ids:
        return parts[0]
    whole = GroupStep(
        [env_id for part in parts for env_id in part.ids],
        [obs for part in parts for obs in part.obs],
        [reward for part in parts for reward in part.rewards],
        [info for part in parts for info in part.infos],
        ended=[env_id for part in parts for env_id in part.ended],
        abnormal=[env_id for part in parts for env_id in part.abnormal],
        first={env_id: obs for part in parts for env_id, obs in part.first.items()},
        cut=[env_id for part in parts for env_id in part.cut],
    )
    if whole.ids != ids:
        order = ids if set(ids) == set(whole.ids) else sorted(whole.ids)
        at = [whole.ids.index(env_id) for env_id in order]
        for name in ("ids", "obs", "rewards", "infos"):
            column = getattr(whole, name)
            setattr(whole, name, [column[position] for position in at] if column else column)
    return whole

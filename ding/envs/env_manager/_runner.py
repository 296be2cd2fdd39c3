"""What runs a manager's environments: the base of all runners, and the one of this process."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import EnvState, GroupSpec, Seed
from ding.envs.env_manager._steps import GroupStep, Rows, vector_step
from ding.envs.vector_step import VectorStep
from ding.utils.errors import DataError


class EnvRunner:
    """Runs environments from the launch of a manager to its end.

    Attributes:
        states: By env id.
        store: Their latest observations; ``None`` before the first reset.
        ready_list: Ids of those that wait for an action.
        ready_ids: The same, int64 ``[n]``.
        groups: Those who can be asked about the environments, in their order: ``EnvGroup``, or
            the link to one in another process.
        in_flight: Environments whose step is under way; only a runner that does not wait has any.
        steps_all: Whether environments that a step has no action for are stepped, too.
    """

    groups: Sequence[Any] = ()
    in_flight: Sequence[int] = ()
    steps_all = False

    def __init__(self, env_num: int) -> None:
        self.env_num = self._per_group = env_num
        self.states = dict.fromkeys(range(env_num), EnvState.VOID)
        self.store: obs_store.ObsColumns | None = None
        self._all_list = list(range(env_num))
        self._all_ids = _constant(self._all_list)
        self._set_ready([])

    # ---- what each kind does in its own way ------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Make the environments; their spaces by name, as far as they are known."""
        raise NotImplementedError

    def stop(self, wait: bool) -> None:
        """Close them; without `wait`, those that are at work are left behind."""
        raise NotImplementedError

    def restart(self, params: Mapping[int, dict | None], recount: bool) -> None:
        """Reset environments because the caller asks for it.

        Args:
            params: Keyword arguments by env id, from now on; ``None`` leaves what is set.
            recount: Whether the episodes so far are forgotten.
        """
        raise NotImplementedError

    def step(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        """Step `ids`; ``Rows`` may be empty unless they are wanted."""
        raise NotImplementedError

    # ---- requests --------------------------------------------------------------------------------

    def ask(self, method: str, env_id: int, *args: Any) -> Any:
        """Run a method of the ``EnvGroup`` that an environment is in."""
        return self.groups[env_id // self._per_group].ask(method, env_id, *args)

    def ask_all(self, method: str, *args: Any) -> list[Any]:
        """Run it in all of `groups`."""
        return [group.ask(method, *args) for group in self.groups]

    def seed(self, seeds: Mapping[int, Seed]) -> None:
        """Seeds that the next reset of each environment takes."""
        self.ask_all("seed", seeds)

    def state_dict(self) -> dict[str, Any]:
        """What the next episodes depend on."""
        states = dict(ChainMap(*(group.state_dict() for group in self.groups)))
        return {"envs": [states[env_id] for env_id in sorted(states)]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up what `state_dict` gave; the environments are to be reset afterwards."""
        if state["envs"]:
            self.ask_all("load_state_dict", state["envs"])

    # ---- who waits for an action -----------------------------------------------------------------

    def note_ready(self) -> None:
        """Find out anew who waits for an action."""
        busy = self.in_flight
        running = [i for i, state in self.states.items() if state == EnvState.RUN]
        self._set_ready([i for i in running if i not in busy] if busy else running)

    def _set_ready(self, ids: list[int]) -> None:
        all_ready = len(ids) == self.env_num
        self.ready_list = self._all_list if all_ready else ids
        self.ready_ids = self._all_ids if all_ready else _constant(ids)

    # ---- observations ----------------------------------------------------------------------------

    def _outcome(self, obs: Any, step: GroupStep, want_rows: bool) -> tuple[VectorStep, Rows]:
        """A step in columns, whose observations `obs` are stored; the next first ones follow."""
        if step.first:
            self._store_first(step.first)
        if len(step.first) < len(step.ended):
            self.note_ready()
        rows = list(zip(step.rewards, step.infos)) if want_rows else ()
        ids = self._all_ids if step.ids == self._all_list else np.array(step.ids, np.int64)
        return vector_step(ids, obs, step, strict=not want_rows), rows

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

    def _store_first(self, first: Mapping[int, Any]) -> None:
        """Store episodes' first observations; the first ones of all make the store."""
        if self.store is None:
            self.store = self._make_store([first[env_id] for env_id in self._all_list])
        else:
            self._take_in(list(first), list(first.values()), may_differ=True)

    def _make_store(self, first: Sequence[Any]) -> Any:
        return obs_store.store_for(first)


class LocalRunner(EnvRunner):
    """Runs environments one after the other in this process."""

    def __init__(self, spec: GroupSpec) -> None:
        super().__init__(len(spec.env_fns))
        self.group = EnvGroup(spec)
        self.groups, self.states = [self.group], self.group.states

    def start(self) -> dict[str, Any]:
        return self.group.build()

    def stop(self, wait: bool) -> None:
        self.group.close()

    def restart(self, params: Mapping[int, dict | None], recount: bool) -> None:
        first: dict[int, Any] = {}
        try:
            for env_id, kwargs in params.items():
                first[env_id] = self.group.restart(env_id, kwargs, recount)
        finally:  # where one fails, those before it wait for actions
            if first and (self.store is not None or len(first) == self.env_num):
                self._store_first(first)

    def step(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        step = self.group.step(ids, actions, want_rows)
        obs = self._take_in(ids, step.obs, may_differ=want_rows)
        if step.ended:
            self.group.start_next(step)
        return self._outcome(obs, step, want_rows)


def _constant(ids: Sequence[int]) -> np.ndarray:
    array = np.array(ids, np.int64)
    array.setflags(write=False)
    return array

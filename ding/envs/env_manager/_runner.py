"""What runs a manager's environments: the base of all runners, and the one of this process."""

import copy
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import EnvState, GroupSpec, Seed
from ding.envs.env_manager._steps import GroupStep, Rows, vector_step
from ding.envs.vector_step import VectorStep
from ding.utils.errors import DataError, EnvError


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
        self.store: Any = None
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
        """A step in columns, whose observations are stored; the next episodes' first ones follow.

        Args:
            obs: Columns, which may be views of the store.
        """
        if step.first:
            obs = obs_store.copy_columns(obs)
            for env_id, first in step.first.items():
                self._write_first(env_id, first)
        if len(step.first) < len(step.ended):
            self.note_ready()
        rows = list(zip(step.rewards, step.infos)) if want_rows else ()
        ids = self._all_ids if step.ids == self._all_list else np.array(step.ids, np.int64)
        return vector_step(ids, obs, step, strict=not want_rows), rows

    def _store_step(self, step: GroupStep, may_differ: bool) -> Any:
        """Store a step's observations; those of the dict API may change their shapes."""
        ids = list(step.ids)
        try:
            return self.store.write_step(ids, step.obs)
        except DataError:
            refitted = self._refitted(dict(zip(ids, step.obs)))
            if refitted.layout is None and not may_differ:
                raise
            self.store = refitted
            return self.store.write_step(ids, step.obs)

    def _store_first(self, first: Mapping[int, Any]) -> None:
        if self.store is None:
            self.store = self._make_store([first[env_id] for env_id in range(self.env_num)])
            return
        for env_id, obs in first.items():
            self._write_first(env_id, obs)

    def _make_store(self, first: Sequence[Any]) -> Any:
        return obs_store.store_for(first)

    def _write_first(self, env_id: int, obs: Any) -> None:
        try:
            self.store.write(env_id, obs)
        except DataError:
            self.store = self._refitted({env_id: obs})

    def _refitted(self, new: Mapping[int, Any]) -> Any:
        """Another store, which takes these observations and, of other environments, the latest."""
        # What was handed out of the old one stays as it is.
        latest = [self.store.row(env_id) for env_id in range(self.env_num)]
        return obs_store.store_for([new.get(env_id, obs) for env_id, obs in enumerate(latest)])


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
        first = {}
        for env_id, kwargs in params.items():
            obs = self.group.restart(env_id, kwargs, recount)
            if self.store is not None:
                self._write_first(env_id, obs)
            else:  # copied at once: environments may share what they hand out
                first[env_id] = copy.deepcopy(obs)
        if first:
            self._store_first(first)

    def step(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        step = self.group.step(ids, actions, want_rows)
        obs = self._store_step(step, want_rows)
        if step.ended:
            self.group.start_next(step)
        return self._outcome(obs, step, want_rows)


class VectorRunner(EnvRunner):
    """Base of those whose environments are one object, which resets each of them by itself.

    Args:
        episode_num: Episodes that each environment plays before it is done for good.
    """

    steps_all = True

    def __init__(self, env_num: int, episode_num: float) -> None:
        super().__init__(env_num)
        self._episode_num = episode_num
        self._episode_count = np.zeros(env_num, np.int64)
        self._has_done = False  # some have played their episodes
        self._returns = np.zeros(env_num, np.float64)

    def ask(self, method: str, env_id: int, *args: Any) -> Any:
        """What can be asked of single environments: nothing."""
        what = args[0] if args else method
        raise EnvError(f"{what} cannot be asked of single members of a vector env", env_id)

    def state_dict(self) -> dict[str, Any]:
        return {"envs": []}

    def _begin_episodes(self, params: Mapping[int, dict | None], recount: bool) -> None:
        """Note that all environments are reset; as `restart`.

        Raises:
            EnvError: They are not to be.
        """
        if len(params) < self.env_num:
            raise EnvError(
                f"env {min(params)} cannot be reset alone: a vector env resets all of its members "
                "or none; reset() all, or use a manager of single environments"
            )
        was_done = [state == EnvState.DONE for state in self.states.values()]
        self._episode_count *= 0 if recount else np.logical_not(was_done)
        self._returns[:], self._has_done = 0, False
        self.states.update(dict.fromkeys(self.states, EnvState.RUN))

    def _end_episodes(self, ended: np.ndarray, truncated: np.ndarray) -> dict[int, dict[str, Any]]:
        """Count episodes that have ended; what their last infos say of them, by env id.

        Args:
            ended: The environments, int64 ``[n]``.
            truncated: bool ``[n]``.
        """
        env_ids, returns = ended.tolist(), self._returns[ended].tolist()
        self._returns[ended] = 0
        if self._episode_num != float("inf"):
            self._episode_count[ended] += 1
            for env_id in env_ids:
                if self._episode_count[env_id] >= self._episode_num:
                    self.states[env_id], self._has_done = EnvState.DONE, True
        return {
            env_id: {"eval_episode_return": value, "truncated": cut, "terminated": not cut}
            for env_id, value, cut in zip(env_ids, returns, truncated.tolist())
        }


def _constant(ids: Sequence[int]) -> np.ndarray:
    array = np.array(ids, np.int64)
    array.setflags(write=False)
    return array

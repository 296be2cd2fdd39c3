"""What runs the environments of a manager from its launch to its end."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs.env_manager._env_types import EnvState, Seed
from ding.envs.env_manager._obs_store import ObsColumns
from ding.envs.env_manager._steps import Rows
from ding.envs.vector_step import VectorStep


class EnvRunner:
    """Base class of the runner of single environments and of the one of vector environments.

    Attributes:
        states: By env id.
        has_store: Whether there are observations: after the first reset.
        ready_list: Ids of those that wait for an action.
        ready_ids: The same, int64 ``[n]``.
        groups: What can be asked about the environments, in their order: links to ``EnvGroup``.
        in_flight: Environments whose step is under way; only a runner that does not wait has any.
        steps_all: Whether environments that a step has no action for are stepped, too.
    """

    groups: Sequence[Any] = ()
    in_flight: Sequence[int] = ()
    steps_all = False

    def __init__(self, env_num: int, per_group: int) -> None:
        self.env_num, self._per_group = env_num, per_group
        self.states = dict.fromkeys(range(env_num), EnvState.VOID)
        self._store: ObsColumns | None = None
        self._all_list = list(range(env_num))
        self._all_ids = _constant(self._all_list)
        self._set_ready([])

    @property
    def has_store(self) -> bool:
        return self._store is not None

    @property
    def store(self) -> ObsColumns:
        """The environments' latest observations."""
        assert self._store is not None
        return self._store

    @store.setter
    def store(self, store: ObsColumns) -> None:
        self._store = store

    # ---- what each kind does in its own way ------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Make the environments; their spaces by name, as far as they are known."""
        raise NotImplementedError

    def stop(self, wait: bool) -> None:
        """Close them; without `wait`, those that are at work are left behind."""
        raise NotImplementedError

    def restart(self, params: Mapping[int, dict | None], recount: bool) -> None:
        """Reset environments; see ``EnvGroup.restart``."""
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
        """Restore what `state_dict` returned; the environments are to be reset afterwards."""
        if state["envs"]:
            self.ask_all("load_state_dict", state["envs"])

    # ---- which environments wait for an action ---------------------------------------------------

    def note_ready(self) -> None:
        """Find out which environments wait for an action now."""
        busy = self.in_flight
        running = [i for i, state in self.states.items() if state == EnvState.RUN]
        self._set_ready([i for i in running if i not in busy] if busy else running)

    def _set_ready(self, ids: list[int]) -> None:
        all_ready = len(ids) == self.env_num
        self.ready_list = self._all_list if all_ready else ids
        self.ready_ids = self._all_ids if all_ready else _constant(ids)


def _constant(ids: Sequence[int]) -> np.ndarray:
    array = np.array(ids, np.int64)
    array.setflags(write=False)
    return array

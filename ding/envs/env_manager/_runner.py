"""What an env manager calls to run its environments, and what that answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ding.envs.env_manager._env_types import EnvState
from ding.envs.env_manager._obs_store import Layout
from ding.envs.vector_step import Actions, Config, Info, Obs, Reward, Settings, State
from ding.utils.errors import DingError


@dataclass(slots=True)
class GroupStep:
    """What some environments answered to a step or to resets.

    Attributes:
        ids: Which they are, in the order of the columns that follow.
        obs: One by one, perhaps the environments' own arrays, good until their next ``step``; or
            columns, which the runner has copied.
        rewards: As the environments gave them; ``None`` of those that failed.
        infos: As the environments gave them.
        ended: Ids of those whose episode ended.
        abnormal: Ids of those that failed and have begun a new episode.
        first: By id, the first observations of episodes, and others that the step does not report.
        states: By id, those that have changed.
        error: What kept some environments from being reset.
    """

    ids: Sequence[int] = ()
    obs: Obs = ()
    rewards: Sequence[Reward] | np.ndarray = ()
    infos: list[Info] = field(default_factory=list)
    ended: Sequence[int] = ()
    abnormal: Sequence[int] = ()
    first: dict[int, Obs] = field(default_factory=dict)
    states: dict[int, EnvState] = field(default_factory=dict)
    error: DingError | None = None

    def replace(self, name: str, position: int, value: object) -> None:
        """Change one item of a column."""
        column = getattr(self, name)
        setattr(self, name, [*column[:position], value, *column[position + 1 :]])


class EnvRunner:
    """Runs environments from a manager's launch to its end.

    `EnvGroup` steps them in this process, `WorkerPool` has groups in others, and `VectorRunner`
    hands whole batches to a library.

    Attributes:
        states: By env id.
        waits_for_all: Whether all that were stepped have answered when a step returns.
        steps_all: Whether environments that a step has no action for are stepped, too.
        shares_memory: Whether observations come in memory that is laid out by the first ones.
    """

    states: dict[int, EnvState]
    waits_for_all = True
    steps_all = False
    shares_memory = False

    def start(self) -> dict[str, Any]:
        """Make the environments; their spaces by name, as far as they are known."""
        raise NotImplementedError

    def stop(self, wait: bool) -> None:
        """Close them; without `wait`, those that are at work are left behind."""
        raise NotImplementedError

    def restart(self, params: Mapping[int, Config | None], recount: bool) -> GroupStep:
        """Reset environments because the caller asks for it.

        Args:
            params: Keyword arguments of their ``reset`` from now on; ``None`` leaves what is set.
            recount: Whether the episodes so far are forgotten; always for one that was done.
        """
        raise NotImplementedError

    def step(self, ids: Sequence[int], actions: Actions, rows: bool = False) -> GroupStep:
        """Step `ids` and start the next episodes that are due.

        Args:
            ids: Those that get actions.
            actions: In the order of `ids`.
            rows: Whether rewards have to be arrays, as ``step`` of the dict API returns them.
        """
        raise NotImplementedError

    def ready(self) -> list[int]:
        """Ids of the environments that wait for an action."""
        return [env_id for env_id, state in self.states.items() if state == EnvState.RUN]

    @property
    def in_flight(self) -> Sequence[int]:
        """Environments whose step is under way."""
        return ()

    def attach(self, layout: Layout) -> None:
        """Use this layout for observations in shared memory."""

    def ask(self, method: str, env_id: int, *args: object) -> Any:
        """Call a method of the `EnvGroup` that an environment is in."""
        return getattr(self, method)(env_id, *args)

    def ask_all(self, method: str, *args: object) -> list[Any]:
        """Call it in all groups."""
        return [getattr(self, method)(*args)]

    def state_dict(self) -> State:
        """What the next episodes depend on."""
        states = self.env_states()
        return {"envs": [states[env_id] for env_id in sorted(states)]}

    def env_states(self) -> Mapping[int, State]:
        """The same by env id."""
        raise NotImplementedError

    def load_state_dict(self, state: Settings) -> None:
        """Restore what `state_dict` returned; reset the environments afterwards."""
        if state["envs"]:
            self.ask_all("load_env_states", state["envs"])

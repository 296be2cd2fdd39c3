"""Runs the members of a vector environment: gymnasium's, EnvPool's or a user's."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._env_types import EnvState, GroupSettings, Seed, close_quietly
from ding.envs.env_manager._runner import EnvRunner
from ding.envs.env_manager._steps import Rows
from ding.envs.env_manager._timeout import CallTimeoutError, timeout_wrapper
from ding.envs.vector_step import VectorStep
from ding.utils.errors import DataError, DingError, EnvError, EnvTimeoutError

_FINALS = {"final_obs", "_final_obs", "final_info", "_final_info", "final_observation"}


class Answers(NamedTuple):
    """What some members answered; all arrays may be memory that the library reuses.

    Attributes:
        ids: Which members, ``[n]``.
        obs: ``[n, *obs_shape]``, or nested dicts of such.
        reward: ``[n]``.
        terminated: ``[n]``.
        truncated: ``[n]``.
        infos: As gymnasium's vector environments give them: by name, values of all members.
    """

    ids: Any
    obs: Any
    reward: Any
    terminated: Any
    truncated: Any
    infos: Mapping[str, Any]


class VectorLibrary:
    """A vector environment whose members start their next episodes by themselves.

    Attributes:
        env_num: Number of members.
        batch_size: How many of them answer at once.
        observation_space: Of one member.
        action_space: Of one member.
        resets_at_once: Whether the observation of an episode's last step is the next one's first,
            and ``infos["final_obs"]`` has the last; otherwise the step after it only resets.
    """

    resets_at_once = False

    def __init__(self, library: Any, env_num: int, batch_size: int) -> None:
        self.library, self.env_num, self.batch_size = library, env_num, batch_size
        self.observation_space, self.action_space = library.observation_space, library.action_space

    def reset(self, options: dict[str, Any]) -> None:
        """Begin an episode in all members; `receive` gives their first observations."""
        raise NotImplementedError

    def send(self, actions: np.ndarray, ids: np.ndarray) -> None:
        """Give members (int64 ``[n]``) their actions, ``[n, *action_shape]``."""
        raise NotImplementedError

    def receive(self) -> Answers:
        """Wait for a batch of answers."""
        raise NotImplementedError

    def seed(self, seeds: Mapping[int, Seed]) -> None:
        """Seeds that the next reset takes; by default, it is seeded when it is made."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """By default, its random numbers cannot be set."""

    def image(self, env_id: int) -> Any:
        raise EnvError(f"{self} shows no pictures of single environments", env_id)

    def attribute(self, env_id: int, name: str) -> tuple[bool, Any]:
        return False, None

    def close(self) -> None:
        if hasattr(self.library, "close"):
            self.library.close()

    def __str__(self) -> str:
        return f"the vector env {self.library!r}"


class VectorRunner(EnvRunner):
    """Sends actions to a vector environment, and takes those answers that count.

    Members answer in whole batches: where the caller's actions do not fill one, others are stepped,
    of which nothing is reported. Everything that a library hands out is copied.

    Args:
        settings: Its timeouts are for all members together.
    """

    steps_all = True

    def __init__(self, library: VectorLibrary, settings: GroupSettings) -> None:
        super().__init__(library.env_num, library.env_num)
        self._library, self._settings = library, settings
        space, env_num = library.action_space, self.env_num
        self._idle_action = _idle_action(space)
        self._actions = np.zeros((env_num, *space.shape), space.dtype)
        self._episode_count = np.zeros(env_num, np.int64)
        self._returns = np.zeros(env_num, np.float64)
        flags = np.zeros((6, env_num), bool)
        self._plays, self._waits, self._unsent = flags[:3]  # _waits: for an action
        self._busy, self._begins, self._unasked = flags[3:]
        # The next answer of one that begins is a first observation, that of one that was not asked
        # fills a batch. What is not sent goes with the next batch.

    # ---- life and requests -----------------------------------------------------------------------

    def start(self) -> dict[str, Any]:
        library = self._library
        return {
            "observation_space": library.observation_space,
            "action_space": library.action_space,
        }

    def stop(self, wait: bool) -> None:
        close_quietly(self._library, "vector")

    def seed(self, seeds: Mapping[int, Seed]) -> None:
        self._library.seed(seeds)

    def state_dict(self) -> dict[str, Any]:
        return {"envs": [], **self._library.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._library.load_state_dict(state)

    def ask(self, method: str, env_id: int, *args: Any) -> Any:
        """What can be asked of single members."""
        if method == "random_action":
            return self._library.action_space.sample()
        if method == "image":
            return self._library.image(env_id)
        if method == "attribute":
            return self._library.attribute(env_id, args[0])
        what = args[0] if args else method
        raise EnvError(f"{what} cannot be asked of single members of a vector env", env_id)

    @property
    def in_flight(self) -> Sequence[int]:  # type: ignore[override]
        """Members whose step or reset is under way."""
        return self._busy.nonzero()[0].tolist()

    def note_ready(self) -> None:
        self._set_ready(self._waits.nonzero()[0].tolist())

    # ---- resets and steps ------------------------------------------------------------------------

    def restart(self, params: Mapping[int, dict | None], recount: bool) -> None:
        if len(params) < self.env_num:
            raise EnvError(
                f"env {min(params)} cannot be reset alone: a vector env resets all of its members "
                "or none; reset() all, or use a manager of single environments"
            )
        self._episode_count *= 0 if recount else self._plays
        while self._busy.any():
            self._receive()
        options = next((param for param in params.values() if param), None)
        self._guarded("reset", self._library.reset, dict(options or {}))
        self._returns[:] = 0
        self._waits[:], self._unasked[:] = False, False
        self._plays[:], self._busy[:], self._begins[:] = True, True, True
        self.states.update(dict.fromkeys(self.states, EnvState.RUN))
        # Those that do not fill a batch begin with a later one: nothing is stepped to fill it.
        for _ in range(self.env_num // self._library.batch_size):
            self._answers()

    def step(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        index = self.ready_ids if ids == self.ready_list else np.array(ids, np.int64)
        self._send(index, actions)
        step, positions, infos = self._answers(index)
        # Where only first observations came, callers have something to act on: stepping on here
        # would take others' first steps for them.
        while not len(step.env_ids) and not self._waits.any():
            step, positions, infos = self._answers()
        while self._plays.any() and self._begins[self._plays].all():
            self._answers()  # to mere resets, which ask nothing of the caller
        self.note_ready()
        if not want_rows:
            return step, ()
        rows = [
            (step.reward[row : row + 1].copy(), {**_member(infos, at), **step.infos.get(i, {})})
            for row, (i, at) in enumerate(zip(step.env_ids.tolist(), positions.tolist()))
        ]
        return step, rows

    def _send(self, ids: np.ndarray, actions: Any = None) -> None:
        """Have actions, or idle ones, sent with the next batch: full batches are sent at once."""
        self._waits[ids], self._busy[ids], self._unsent[ids] = False, True, True
        shape = self._actions[ids].shape
        self._actions[ids] = self._idle_action if actions is None else np.reshape(actions, shape)

    def _receive(self) -> Answers:
        """The next batch of answers; if too few are under way, others are stepped to fill it."""
        lacking = self._library.batch_size - np.count_nonzero(self._busy)
        if lacking > 0:
            others = (~self._busy).nonzero()[0]
            # First those that have played their episodes.
            others = others[np.argsort(self._waits[others], kind="stable")][:lacking]
            self._unasked[others] = True
            self._send(others)
        unsent = self._unsent.nonzero()[0]
        if len(unsent):
            self._guarded("step", self._library.send, self._actions[unsent], unsent)
            self._unsent[:] = False
        answers = self._guarded("step", self._library.receive)
        ids = np.array(answers.ids, np.int64)
        self._busy[ids] = False
        flags = np.array(answers.terminated, bool), np.array(answers.truncated, bool)
        reward = np.array(answers.reward, np.float32)
        return Answers(ids, answers.obs, reward, *flags, answers.infos)

    def _answers(
        self, asked: np.ndarray | None = None
    ) -> tuple[VectorStep, np.ndarray, Mapping[str, Any]]:
        """What some answer to actions; those whose episode has ended begin the next one.

        Args:
            asked: In their order, if all of them answer at once.

        Returns:
            The step; where in the batch its environments are; and the batch's infos.
        """
        ids, obs, reward, terminated, truncated, infos = self._receive()
        if not self.has_store:
            layout = obs_store.layout_of(obs_store.column_row(obs, 0))
            self.store = obs_store.ObsColumns(layout, self.env_num)
        obs = self.store.copied(obs)
        self.store.put(ids.tolist(), obs)
        began, unasked = self._begins[ids], self._unasked[ids]
        self._refuse_nan(ids[began], obs_store.take_rows(obs, began.nonzero()[0]))
        ended = (terminated | truncated) & ~began
        positions = (~(began | unasked)).nonzero()[0]
        if asked is not None and len(ids) == self.env_num:
            places = np.empty(self.env_num, np.int64)
            places[ids] = np.arange(self.env_num)
            positions = places[asked]
        own, done = ids[positions], ended[positions]
        self._returns[ids[unasked]] = 0
        self._returns[own] += reward[positions]
        begins = ended  # the next step only resets them
        if self._library.resets_at_once and ended.any():
            obs, begins = self._with_finals(obs, ended, infos), np.zeros_like(ended)
        if not np.array_equal(positions, self._all_ids[: len(ids)]):
            obs, reward = obs_store.take_rows(obs, positions), reward[positions]
        step = VectorStep(own, obs, reward, done, done & ~terminated[positions])
        if done.any():
            step.infos = self._end_episodes(step, positions, infos)
        self._begins[ids], self._unasked[ids] = begins, False
        plays = self._plays[ids]
        self._waits[ids] = plays & ~begins
        if begins.any():
            self._send(ids[plays & begins])
        return step, positions, infos

    def _with_finals(self, obs: Any, ended: np.ndarray, infos: Mapping[str, Any]) -> Any:
        """`obs`, whose rows are those of the next episodes already, with the last ones in place."""
        finals = infos.get("final_obs", infos.get("final_observation"))
        last, rows = obs_store.copy_columns(obs), ended.nonzero()[0].tolist()
        own = [obs_store.column_row(finals, row) for row in rows]
        obs_store.put_rows(last, rows, self.store.stacked(rows, own))
        return last

    def _end_episodes(
        self, step: VectorStep, positions: np.ndarray, infos: Mapping[str, Any]
    ) -> dict[int, dict[str, Any]]:
        """Count episodes that have ended; the infos of their last steps, by env id."""
        finals = infos.get("final_info", infos)
        result = {}
        for row in step.done.nonzero()[0].tolist():
            env_id, cut = int(step.env_ids[row]), bool(step.truncated[row])
            own = _member(finals, int(positions[row]))
            own.setdefault("eval_episode_return", float(self._returns[env_id]))
            result[env_id] = {**own, "truncated": cut, "terminated": not cut}
            self._returns[env_id] = 0
            self._episode_count[env_id] += 1
            if self._episode_count[env_id] >= self._settings.episode_num:
                self.states[env_id], self._plays[env_id] = EnvState.DONE, False
        return result

    def _refuse_nan(self, ids: np.ndarray, first: Any) -> None:
        position = obs_store.nan_position(first) if len(ids) else None
        if position is not None:
            raise DataError(f"env {ids[position]} gave an observation with NaN at its reset")

    def _guarded(self, doing: str, call: Any, *args: Any) -> Any:
        limit = getattr(self._settings, f"{doing}_timeout")
        try:
            return timeout_wrapper(call, limit)(*args)
        except DingError:
            raise
        except CallTimeoutError as error:
            raise EnvTimeoutError(
                f"{self._library} did not finish {doing}() within {doing}_timeout={limit:g} s"
            ) from error
        except Exception as error:
            raise EnvError(f"{self._library} failed: {type(error).__name__}: {error}") from error


def _idle_action(space: Any) -> Any:
    """An action for those that are stepped to fill a batch, or only reset."""
    if isinstance(space, spaces.Box):
        return np.clip(0, space.low, space.high)
    return getattr(space, "start", 0)


def _member(infos: Any, position: int) -> dict[str, Any]:
    """One member's info of a vector's infos: ``name`` counts where ``_name`` says so."""
    if not isinstance(infos, Mapping):  # an array of infos
        return dict(infos[position] or {})
    info = {}
    for name, values in infos.items():
        if name.startswith("_") or name in _FINALS:
            continue
        if f"_{name}" in infos and not infos[f"_{name}"][position]:
            continue
        is_tree = isinstance(values, Mapping)
        value = _member(values, position) if is_tree else values[position]
        info[name] = value.copy() if isinstance(value, np.ndarray) else value
    return info

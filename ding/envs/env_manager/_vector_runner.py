"""Runs the members of a vector environment: gymnasium's, EnvPool's or a user's."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from gymnasium import spaces

from ding.data.tree import tree_map
from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._env_types import EnvState, GroupSettings, Seed, close_quietly
from ding.envs.env_manager._runner import Answer, EnvRunner, GroupStep
from ding.envs.env_manager._timeout import CallTimeoutError, timeout_wrapper
from ding.envs.env_wrappers.gym_to_gymnasium import FoundSpace
from ding.envs.vector_step import Actions, AnyEnv, Info, Obs
from ding.utils.errors import DingError, EnvDataError, EnvError, EnvTimeoutError
from ding.utils.types import Config, Settings, State, Tree

_FINALS = {"final_obs", "_final_obs", "final_info", "_final_info", "final_observation"}


class Answers(NamedTuple):
    """What members `ids` answered, ``[n]`` each; all arrays may be memory that the library reuses.

    ``infos`` are as gymnasium's vector environments give them: by name, values of all members.
    """

    ids: np.ndarray
    obs: Obs
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    infos: Info


Result = TypeVar("Result")


class VectorLibrary:
    """A vector environment whose members start their next episodes by themselves.

    Attributes:
        batch_size: How many of the members answer at once.
        observation_space, action_space: Of one member.
        resets_at_once: Whether the observation of an episode's last step is the next one's first,
            and ``infos["final_obs"]`` has the last; otherwise the step after it only resets.
    """

    resets_at_once = False

    def __init__(self, library: AnyEnv, env_num: int, batch_size: int) -> None:
        self.library, self.env_num, self.batch_size = library, env_num, batch_size
        self.observation_space, self.action_space = library.observation_space, library.action_space

    def reset(self, options: Config) -> None:
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

    def state_dict(self) -> State:
        return {}

    def load_state_dict(self, state: Settings) -> None:
        """By default, its random numbers cannot be set."""

    def image(self, env_id: int) -> np.ndarray:
        raise EnvError(f"{self} shows no pictures of single environments", env_id)

    def attribute(self, env_id: int, name: str) -> tuple[bool, Answer]:
        return False, None

    def close(self) -> None:
        if hasattr(self.library, "close"):
            self.library.close()

    def __str__(self) -> str:
        return f"the vector env {self.library!r}"


class VectorRunner(EnvRunner):
    """Sends actions to a vector environment, and takes those answers that count.

    Members answer in whole batches: where the caller's actions do not fill one, others are stepped,
    of which nothing is reported. Everything that a library returns is copied. Timeouts are for all
    members together.
    """

    waits_for_all = False
    steps_all = True

    def __init__(self, library: VectorLibrary, settings: GroupSettings) -> None:
        env_num, space = library.env_num, library.action_space
        self.states = dict.fromkeys(range(env_num), EnvState.VOID)
        self._library, self._settings = library, settings
        #: For those that are stepped to fill a batch, or only reset.
        self._idle_action = getattr(space, "start", 0)
        if isinstance(space, spaces.Box):
            self._idle_action = np.clip(0, space.low, space.high)
        self._actions = np.zeros((env_num, *space.shape), space.dtype)
        self._episode_count = np.zeros(env_num, np.int64)
        self._returns = np.zeros(env_num, np.float64)
        # The next answer of one that begins is a first observation, that of one that was not asked
        # fills a batch. What is not sent goes with the next batch.
        flags = np.zeros((5, env_num), bool)
        self._plays, self._busy, self._unsent, self._begins, self._unasked = flags

    # ---- life and requests -----------------------------------------------------------------------

    def start(self) -> dict[str, FoundSpace]:
        names = ("observation_space", "action_space")
        return {name: getattr(self._library, name) for name in names}

    def stop(self, wait: bool) -> None:
        close_quietly(self._library, "vector")

    def state_dict(self) -> State:
        return {"envs": [], **self._library.state_dict()}

    def load_state_dict(self, state: Settings) -> None:
        self._library.load_state_dict(state)

    def ask_all(self, method: str, *args: Answer) -> list[Answer]:
        """Of what groups are asked, a library takes seeds alone."""
        if method == "seed":
            self._library.seed(*args)
        return []

    def ask(self, method: str, env_id: int, *args: Answer) -> Answer:
        if method == "random_action":
            return self._library.action_space.sample()
        if method == "image":
            return self._library.image(env_id)
        if method == "attribute":
            return self._library.attribute(env_id, args[0])
        what = args[0] if args else method
        raise EnvError(f"{what} cannot be asked of single members of a vector env", env_id)

    @property
    def in_flight(self) -> Sequence[int]:
        return self._busy.nonzero()[0].tolist()

    def ready(self) -> list[int]:
        return (self._plays & ~self._busy).nonzero()[0].tolist()

    # ---- resets and steps ------------------------------------------------------------------------

    def restart(self, params: Mapping[int, Config | None], recount: bool) -> GroupStep:
        env_num = len(self.states)
        if len(params) < env_num:
            raise EnvError(
                f"env {min(params)} cannot be reset alone: a vector env resets all of its members "
                "or none; reset() all, or use a manager of single environments"
            )
        self._episode_count *= 0 if recount else self._plays
        while self._busy.any():
            self._receive()
        options = next((param for param in params.values() if param), None)
        self._guarded("reset", self._library.reset, dict(options or {}))
        self._returns[:], self._unasked[:] = 0, False
        self._plays[:], self._busy[:], self._begins[:] = True, True, True
        self.states.update(dict.fromkeys(self.states, EnvState.RUN))
        step = GroupStep()
        # Those that do not fill a batch begin with a later one: nothing is stepped to fill it.
        for _ in range(env_num // self._library.batch_size):
            self._answers(step.first)
        return step

    def step(self, ids: Sequence[int], actions: Actions, rows: bool = False) -> GroupStep:
        first: dict[int, Obs] = {}
        self._send(np.array(ids, np.int64), actions)
        step = self._answers(first, ids, rows)
        # Where only first observations came, callers have something to act on: stepping on here
        # would take others' first steps for them.
        while not step.ids and not self.ready():
            step = self._answers(first, (), rows)
        while self._plays.any() and self._begins[self._plays].all():
            self._answers(first)  # to mere resets, which ask nothing of the caller
        step.first = first
        return step

    def _send(self, ids: np.ndarray, actions: Actions | None = None) -> None:
        """Have actions, or idle ones, sent with the next batch."""
        self._busy[ids], self._unsent[ids] = True, True
        shape = self._actions[ids].shape
        self._actions[ids] = self._idle_action if actions is None else np.reshape(actions, shape)

    def _receive(self) -> Answers:
        """The next batch of answers; if too few are under way, others are stepped to fill it."""
        lacking = self._library.batch_size - np.count_nonzero(self._busy)
        if lacking > 0:
            others = (~self._busy).nonzero()[0]
            # First those that have played their episodes.
            others = others[np.argsort(self._plays[others], kind="stable")][:lacking]
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
        self, first: dict[int, Obs], asked: Sequence[int] = (), rows: bool = False
    ) -> GroupStep:
        """What some answer to actions; those whose episode has ended begin the next one.

        Args:
            first: Takes the observations of those that begin, or that were not asked.
            asked: The answers' order, if all members answer at once.
            rows: As for `step`.
        """
        ids, obs, reward, terminated, truncated, infos = self._receive()
        began, unasked = self._begins[ids], self._unasked[ids]
        ended = (terminated | truncated) & ~began
        begins, unreported = ended, began | unasked  # the next step only resets them
        if self._library.resets_at_once and ended.any():
            begins, unreported = np.zeros_like(ended), unreported | ended
        for position in unreported.nonzero()[0].tolist():
            env_id = int(ids[position])
            first[env_id] = obs_store.column_row(obs, position)
            if began[position] and obs_store.holds_nan(first[env_id]):
                message = f"env {env_id} gave an observation with NaN at its reset"
                raise EnvDataError(message, env_id)
        positions = (~(began | unasked)).nonzero()[0]
        if asked and len(ids) == len(self.states):
            positions = np.argsort(ids)[list(asked)]
        own = ids[positions]
        self._returns[ids[unasked]] = 0
        self._returns[own] += reward[positions]
        rewards = list(reward[positions, None]) if rows else reward[positions]
        step = GroupStep(own.tolist(), obs_store.take_rows(obs, positions), rewards)
        step.infos = [_member(infos, at) if rows else {} for at in positions.tolist()]
        if ended[positions].any():
            self._end_episodes(step, positions, ended, terminated, infos)
        self._begins[ids], self._unasked[ids] = begins, False
        if begins.any():
            self._send(ids[self._plays[ids] & begins])
        return step

    def _end_episodes(
        self,
        step: GroupStep,
        positions: np.ndarray,
        ended: np.ndarray,
        terminated: np.ndarray,
        infos: Info,
    ) -> None:
        """Count the episodes that ended with `step`; their last infos and observations."""
        finals = infos.get("final_obs", infos.get("final_observation"))
        for row, at in enumerate(positions.tolist()):
            if not ended[at]:
                continue
            env_id, end = step.ids[row], bool(terminated[at])
            if self._library.resets_at_once:  # its row is that of the next episode already
                last = obs_store.column_row(finals, at)
                obs_store.put_rows(step.obs, [row], tree_map(lambda leaf: [leaf], last))
            info = _member(infos.get("final_info", infos), at)
            info.setdefault("eval_episode_return", float(self._returns[env_id]))
            step.infos[row] = {**info, "truncated": not end, "terminated": end}
            step.ended = [*step.ended, env_id]
            self._returns[env_id] = 0
            self._episode_count[env_id] += 1
            if self._episode_count[env_id] >= self._settings.episode_num:
                self.states[env_id], self._plays[env_id] = EnvState.DONE, False

    def _guarded(self, doing: str, call: Callable[..., Result], *args: object) -> Result:
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


def _member(infos: Tree, position: int) -> Info:
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

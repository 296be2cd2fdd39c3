"""Runs the members of a vector environment: gymnasium's, EnvPool's or a user's."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._env_types import EnvState, GroupSettings, Seed, close_quietly
from ding.envs.env_manager._runner import Answer, EnvRunner, GroupStep
from ding.envs.env_wrappers.gym_to_gymnasium import FoundSpace
from ding.envs.vector_step import Actions, Info, Obs
from ding.utils.errors import DingError, EnvDataError, EnvError
from ding.utils.types import Config, Settings, State, Tree

Result = TypeVar("Result")


class VectorRunner(EnvRunner):
    """Steps all members of a vector environment at once, those without an action idly.

    A member's next episode begins by itself in the step after an episode's end, whose action and
    reward mean nothing (gymnasium's ``NEXT_STEP``). Nothing is reported of members that were
    stepped without an action, or that only began their next episode. Everything that the library
    returns is copied, as it may reuse its memory.
    """

    steps_all = True

    def __init__(self, venv: VectorEnv, settings: GroupSettings, seeds: Mapping[int, Seed]) -> None:
        env_num, space = venv.num_envs, venv.single_action_space
        self.states = dict.fromkeys(range(env_num), EnvState.VOID)
        self._venv, self._settings = venv, settings
        idle = getattr(space, "start", 0)
        if isinstance(space, spaces.Box):
            idle = np.clip(0, space.low, space.high)
        # Members without an action are stepped as well, and 0 may lie outside of the space.
        self._idle_actions = np.zeros((env_num, *(space.shape or ())), space.dtype) + idle
        self._episode_count = np.zeros(env_num, np.int64)
        self._returns = np.zeros(env_num, np.float64)
        #: Whose next step only resets them.
        self._begins = np.zeros(env_num, bool)
        self._seed: int | None = None  # of the next reset
        self._take_seed(seeds)

    # ---- life and requests -----------------------------------------------------------------------

    def start(self) -> dict[str, FoundSpace]:
        names = ("observation_space", "action_space")
        return {name: getattr(self._venv, f"single_{name}") for name in names}

    def stop(self, wait: bool) -> None:
        close_quietly(self._venv, "vector")

    def state_dict(self) -> State:
        return {"envs": [], "native": self._venv.np_random.bit_generator.state}

    def load_state_dict(self, state: Settings) -> None:
        if "native" in state:
            # The restored generator takes the place of a seed.
            self._seed = None
            self._venv.np_random.bit_generator.state = state["native"]

    def _take_seed(self, seeds: Mapping[int, Seed]) -> None:
        if 0 in seeds:
            self._seed = seeds[0][0]
            self._venv.single_action_space.seed(self._seed)

    def ask_all(self, method: str, *args: Answer) -> list[Answer]:
        """Of what groups are asked, a vector environment takes seeds alone."""
        if method == "seed":
            self._take_seed(*args)
        return []

    def ask(self, method: str, env_id: int, *args: Answer) -> Answer:
        if method == "random_action":
            return self._venv.single_action_space.sample()
        if method == "attribute":
            values: Tree = getattr(self._venv.unwrapped, args[0], None)
            return (True, values[env_id]) if np.ndim(values) else (False, None)
        what = args[0] if args else method
        raise EnvError(f"{what} cannot be asked of single members of a vector env", env_id)

    def ready(self) -> list[int]:
        return [env_id for env_id in super().ready() if not self._begins[env_id]]

    @property
    def in_flight(self) -> Sequence[int]:
        """Members that the next step only resets."""
        return [env_id for env_id in super().ready() if self._begins[env_id]]

    # ---- resets and steps ------------------------------------------------------------------------

    def restart(self, params: Mapping[int, Config | None], recount: bool) -> GroupStep:
        if len(params) < len(self.states):
            raise EnvError(
                f"env {min(params)} cannot be reset alone: a vector env resets all of its members "
                "or none; reset() all, or use a manager of single environments"
            )
        for env_id, state in self.states.items():
            if recount or state == EnvState.DONE:
                self._episode_count[env_id] = 0
        options = next((dict(param) for param in params.values() if param), {})
        obs, _ = self._guarded(self._venv.reset, seed=self._seed, options=options)
        # Once: later resets continue the library's own generators.
        self._seed = None
        self._returns[:], self._begins[:] = 0, False
        self.states.update(dict.fromkeys(self.states, EnvState.RUN))
        return GroupStep(
            first={env_id: _member_obs(obs, env_id, is_first=True) for env_id in self.states}
        )

    def step(self, ids: Sequence[int], actions: Actions, rows: bool = False) -> GroupStep:
        asked, given = list(ids), self._idle_actions.copy()
        given[asked] = np.reshape(actions, given[asked].shape)
        step = self._step_members(given, asked, rows)
        # Where all of them would only be reset, the caller has nothing to act on.
        while (playing := super().ready()) and self._begins[playing].all():
            step.first.update(self._step_members(self._idle_actions.copy(), []).first)
        return step

    def _step_members(self, actions: np.ndarray, asked: list[int], rows: bool = False) -> GroupStep:
        """Step all members, and report those that were `asked` to, in their order."""
        obs, reward, *flags, infos = self._guarded(self._venv.step, actions)
        reward = np.array(reward, np.float32)
        terminated, truncated = (np.array(flag, bool) for flag in flags)
        began, self._begins = self._begins, (terminated | truncated) & ~self._begins
        is_unasked, own = np.ones_like(began), reward[asked]
        is_unasked[asked] = False
        # Their rewards belong to no episode that is reported.
        self._returns[is_unasked] = 0
        self._returns[asked] += own
        step = GroupStep(
            asked, obs_store.take_rows(obs, asked), list(own[:, None]) if rows else own
        )
        for env_id in is_unasked.nonzero()[0].tolist():
            step.first[env_id] = _member_obs(obs, env_id, is_first=began[env_id])
        step.infos = [_member(infos, env_id) if rows else {} for env_id in asked]
        for row in self._begins[asked].nonzero()[0].tolist():
            env_id = asked[row]
            info = step.infos[row] = _member(infos, env_id)
            info.setdefault("eval_episode_return", float(self._returns[env_id]))
            info["terminated"] = bool(terminated[env_id])
            info["truncated"] = not terminated[env_id]
            step.ended.append(env_id)
            self._returns[env_id] = 0
            self._episode_count[env_id] += 1
            if self._episode_count[env_id] >= self._settings.episode_num:
                self.states[env_id] = EnvState.DONE
        return step

    def _guarded(self, call: Callable[..., Result], *args: object, **kwargs: object) -> Result:
        try:
            return call(*args, **kwargs)
        except DingError:
            raise
        except Exception as error:
            raise EnvError(
                f"the vector env {self._venv!r} failed: {type(error).__name__}: {error}"
            ) from error


def _member_obs(obs: Obs, env_id: int, is_first: bool) -> Obs:
    """A copy of a member's observation; the first one of an episode is checked."""
    (own,) = obs_store.each_row(obs_store.take_rows(obs, [env_id]))
    if is_first and obs_store.holds_nan(own):
        raise EnvDataError(f"env {env_id} gave an observation with NaN at its reset", env_id)
    return own


def _member(infos: Mapping[str, Tree], position: int) -> Info:
    """One member's info of a vector's infos: ``name`` counts where ``_name`` says so, and a single
    value is of all members."""
    info = {}
    for name, values in infos.items():
        if name.startswith("_") or (f"_{name}" in infos and not infos[f"_{name}"][position]):
            continue
        value = values
        if isinstance(values, Mapping):
            value = _member(values, position)
        elif isinstance(values, list | tuple) or getattr(values, "ndim", None):
            value = values[position]
        info[name] = value.copy() if isinstance(value, np.ndarray) else value
    return info

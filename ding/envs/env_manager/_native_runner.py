"""Runs environments that one vector environment steps together."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.vector import VectorEnv

from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._env_types import (
    PER_EPISODE,
    EnvState,
    GroupSettings,
    Seed,
    close_quietly,
)
from ding.envs.env_manager._runner import VectorRunner
from ding.envs.env_manager._steps import Rows
from ding.envs.env_manager._timeout import CallTimeoutError, timeout_wrapper
from ding.envs.seeds import episode_seed
from ding.envs.vector_step import VectorStep
from ding.utils.errors import DataError, DingError, EnvError, EnvTimeoutError

# How a vector environment starts the next episode of a member; the names of gymnasium's modes.
NEXT_STEP = "NEXT_STEP"  # by itself, in the step after, whose action and reward mean nothing
SAME_STEP = "SAME_STEP"  # by itself, at once; the last observation is in the infos

_FINALS = {"final_obs", "_final_obs", "final_info", "_final_info", "final_observation"}
_CARTPOLE = f"{CartPoleVectorEnv.__module__}:{CartPoleVectorEnv.__name__}"


class PromptCartPole(CartPoleVectorEnv):
    """gymnasium's vector CartPole, but members whose episode ended are reset in the same step.

    So no member ever sits out a step, which would leave callers with a ragged batch most of the
    time. ``infos['final_obs']`` holds all members' observations before the resets. The dynamics are
    the parent's to the last bit, but nothing is masked for members that are to be reset.
    """

    metadata: dict[str, Any] = {**CartPoleVectorEnv.metadata, "autoreset_mode": SAME_STEP}

    state: Any
    #: Fixed seeds of the members, each of which numbers its episodes; ``None`` to draw freely.
    member_seeds: list[int] | None = None

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        obs, infos = super().reset(seed=seed, options=options)
        self._limits = np.array([[self.x_threshold], [self.theta_threshold_radians]])
        self._change = np.empty_like(self.state)  # x, x_dot, theta, theta_dot; per second
        if self.member_seeds is None:
            return obs, infos
        self._episodes = np.zeros(self.num_envs, np.int64)
        self.state = self._starts(range(self.num_envs))
        return self.state.T.astype(np.float32), infos

    def _starts(self, members: Sequence[int]) -> np.ndarray:
        """First states ``[4, n]``; with seeds, those of the single environment under them."""
        if self.member_seeds is None:
            return self.np_random.uniform(self.low, self.high, (4, len(members)))
        starts = []
        for member in members:
            seed = episode_seed(self.member_seeds[member], int(self._episodes[member]))
            starts.append(np.random.default_rng(seed).uniform(self.low, self.high, 4))
        return np.stack(starts, axis=1)

    def step(self, action: np.ndarray) -> tuple[Any, ...]:
        """Actions are 0 or 1; managers have seen to that."""
        self._move(action)
        self.steps += 1
        terminated = np.logical_or.reduce(np.abs(self.state[::2]) > self._limits)
        truncated = self.steps >= self.max_episode_steps
        done = terminated | truncated
        reward = np.ones(self.num_envs, np.float32)
        if self._sutton_barto_reward:
            reward = -terminated.astype(np.float32)
        obs = self.state.T.astype(np.float32)
        ended = done.nonzero()[0]
        if not len(ended):
            return obs, reward, terminated, truncated, {}
        if self.member_seeds is not None:
            self._episodes[ended] += 1
        infos = {"final_obs": obs, "_final_obs": done}
        first = self._starts(ended.tolist())
        self.state[:, ended] = first
        self.steps[ended] = 0
        obs = obs.copy()
        obs[ended] = first.T
        return obs, reward, terminated, truncated, infos

    def _move(self, action: np.ndarray) -> None:
        """One Euler step, as in Barto, Sutton, Anderson (1983), with frictionless joints."""
        _, speed, angle, spin = self.state
        cos, sin = np.cos(angle), np.sin(angle)
        force = np.where(action, self.force_mag, -self.force_mag)
        temp = (force + self.polemass_length * np.square(spin) * sin) / self.total_mass
        inertia = self.length * (4.0 / 3.0 - self.masspole * np.square(cos) / self.total_mass)
        spin_up = (self.gravity * sin - cos * temp) / inertia
        change = self._change
        change[0], change[2], change[3] = speed, spin, spin_up
        change[1] = temp - self.polemass_length * spin_up * cos / self.total_mass
        change *= self.tau
        self.state += change


def native_vector_env(env_id: str, env_num: int, kwargs: dict[str, Any]) -> VectorEnv | None:
    """gymnasium's own vector version of an environment, if it has one that resets its members.

    Raises:
        EnvError: It has one, but that cannot be made.
    """
    spec = gymnasium.registry.get(env_id)
    if spec is None or spec.vector_entry_point is None:
        return None
    try:
        if spec.vector_entry_point == _CARTPOLE:
            limit = {"max_episode_steps": spec.max_episode_steps}
            venv: VectorEnv = PromptCartPole(env_num, **{**limit, **spec.kwargs, **kwargs})
        else:
            venv = gymnasium.make_vec(env_id, env_num, "vector_entry_point", **kwargs)
    except Exception as error:
        raise EnvError(f"cannot make the vector env {env_id!r}: {error}") from error
    if autoreset_mode(venv) not in (NEXT_STEP, SAME_STEP):
        venv.close()
        return None
    return venv


def autoreset_mode(venv: VectorEnv) -> str:
    """How members are reset; what does not say follows gymnasium's first convention."""
    mode = (venv.metadata or {}).get("autoreset_mode")
    return mode if isinstance(mode, str) else getattr(mode, "name", NEXT_STEP)


def numbers_starts(seeds: Mapping[int, Seed]) -> bool:
    """Whether each episode is seeded by its number."""
    return any(dynamic == PER_EPISODE for _, dynamic in seeds.values())


class NativeRunner(VectorRunner):
    """Passes whole batches to a vector environment, which resets its members itself.

    Every step is taken with all of them; of those that were given no action nothing is told.

    Args:
        settings: Its timeouts are for all members together.
        seeds: That of environment 0 is taken.
    """

    def __init__(self, venv: VectorEnv, settings: GroupSettings, seeds: Mapping[int, Seed]) -> None:
        super().__init__(venv.num_envs, settings.episode_num)
        self.venv = venv
        self._settings = settings
        self._mode = autoreset_mode(venv)
        self._step_venv = timeout_wrapper(venv.step, settings.step_timeout)
        self._reset_venv = timeout_wrapper(venv.reset, settings.reset_timeout)
        self._action_shape, self._action_dtype = venv.action_space.shape, venv.action_space.dtype
        self._idle_actions: Any = None
        self._sits_out = np.zeros(self.env_num, bool)  # reset by the vector env's next step
        self._seeds: dict[int, Seed] = {}
        self.seed(seeds)

    def start(self) -> dict[str, Any]:
        return {
            "observation_space": self.venv.single_observation_space,
            "action_space": self.venv.single_action_space,
        }

    def stop(self, wait: bool) -> None:
        close_quietly(self.venv, "vector")

    def seed(self, seeds: Mapping[int, Seed]) -> None:
        self._seeds.update(seeds)
        self._seed_is_due = 0 in self._seeds
        if self._seed_is_due:
            self.venv.single_action_space.seed(self._seeds[0][0])
        if numbers_starts(self._seeds):
            member_seeds = [self._seeds[i][0] for i in range(self.env_num)]
            self.venv.member_seeds = member_seeds  # type: ignore[attr-defined]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "native": self.venv.np_random.bit_generator.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if "native" in state:
            self._seed_is_due = False
            self.venv.np_random.bit_generator.state = state["native"]

    # ---- episodes --------------------------------------------------------------------------------

    def restart(self, params: Mapping[int, dict | None], recount: bool) -> None:
        self._begin_episodes(params, recount)
        is_due = self._seed_is_due or (recount and numbers_starts(self._seeds))
        seed = self._seeds[0][0] if is_due else None
        self._seed_is_due = False
        options = next((param for param in params.values() if param), None)
        obs, _ = self._guarded("reset", self._reset_venv, seed=seed, options=dict(options or {}))
        position = obs_store.nan_position(obs)
        if position is not None:
            raise DataError(f"env {position} gave an observation with NaN at its reset")
        self._sits_out[:] = False
        self._store_first({i: obs_store.column_row(obs, i) for i in range(self.env_num)})

    def step(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        is_usual = ids is self.ready_list or ids == self.ready_list
        index = self.ready_ids if is_usual else np.array(ids, np.int64)
        step, infos = self._step_members(index, actions)
        rows: list[tuple[Any, dict[str, Any]]] = []
        if want_rows:
            rows = [(step.reward[i : i + 1].copy(), _member(infos, i)) for i in ids]
        ended = step.done.nonzero()[0]
        if len(ended):
            step.infos = self._infos_of_ended(ended, step.truncated, infos)
            rows = [(r, {**info, **step.infos.get(i, {})}) for i, (r, info) in zip(ids, rows)]
        if len(ids) < self.env_num or (len(ended) and (self._mode == NEXT_STEP or self._has_done)):
            self.note_ready()
            if not self.ready_list and self._sits_out.any():
                # All sit out: their step asks nothing of the caller.
                self._step_members(self.ready_ids, np.zeros(0))
                self.note_ready()
        if index is not self._all_ids:
            for name in ("obs", "reward", "done", "truncated"):
                setattr(step, name, obs_store.take_rows(getattr(step, name), index))
            step.env_ids = index
        return step, rows

    def note_ready(self) -> None:
        waits = ~self._sits_out
        if self._has_done:
            waits &= [state == EnvState.RUN for state in self.states.values()]
        self._set_ready(waits.nonzero()[0].tolist())

    # ---- inside ----------------------------------------------------------------------------------

    def _step_members(
        self, index: np.ndarray, actions: Any
    ) -> tuple[VectorStep, Mapping[str, Any]]:
        """Step all members; of those not in `index` nothing is reported but the observations."""
        actions = np.asarray(actions)
        if index is not self._all_ids:
            if self._idle_actions is None:
                self._idle_actions = np.asarray(self.venv.action_space.sample())
            some, actions = actions, self._idle_actions.copy()
            actions[index] = some.reshape(len(index), *actions.shape[1:])
        elif actions.shape != self._action_shape or actions.dtype != self._action_dtype:
            actions = actions.reshape(self._action_shape).astype(self._action_dtype, copy=False)
        obs, reward, terminated, truncated, infos = self._guarded("step", self._step_venv, actions)
        reward = np.asarray(reward, np.float32)
        self._returns += reward
        done = np.logical_or(terminated, truncated)
        if index is not self._all_ids:
            idle = np.ones(self.env_num, bool)
            idle[index] = False
            self._returns[idle] = 0
            self._sits_out[idle] = False
            done &= ~idle  # of those that have played their episodes, but are stepped anyway
        stored = last = self.store.write_columns(obs)
        if np.count_nonzero(done):
            truncated = done & ~np.asarray(terminated)
            if self._mode == SAME_STEP:
                last = self._last_obs(stored, done, infos)
        else:
            truncated = done
        return VectorStep(self._all_ids, last, reward, done, truncated), infos

    def _last_obs(self, obs: Any, done: np.ndarray, infos: Mapping[str, Any]) -> Any:
        finals = infos.get("final_obs", infos.get("final_observation"))
        if type(finals) is np.ndarray and finals.dtype != object:
            return finals  # of all members
        last = obs_store.copy_columns(obs)
        for env_id in done.nonzero()[0].tolist():
            obs_store.put_row(last, env_id, obs_store.column_row(finals, env_id))
        return last

    def _infos_of_ended(
        self, ended: np.ndarray, truncated: np.ndarray, infos: Mapping[str, Any]
    ) -> dict[int, dict[str, Any]]:
        result = self._end_episodes(ended, truncated[ended])
        if self._mode == NEXT_STEP:
            self._sits_out[ended] = True
        finals = infos.get("final_info", infos)
        if isinstance(finals, Mapping) and finals.keys() <= _FINALS:
            return result  # nothing else is told
        for env_id, known in result.items():
            own = _member(finals, env_id)
            value = own.get("eval_episode_return", known["eval_episode_return"])
            result[env_id] = {**own, **known, "eval_episode_return": value}
        return result

    def _guarded(self, doing: str, call: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except DingError:
            raise
        except CallTimeoutError as error:
            limit = getattr(self._settings, f"{doing}_timeout")
            raise EnvTimeoutError(
                f"the vector env {self.venv!r} did not finish {doing}() within "
                f"{doing}_timeout={limit:g} s"
            ) from error
        except Exception as error:
            raise EnvError(
                f"the vector env {self.venv!r} failed: {type(error).__name__}: {error}"
            ) from error

    # ---- requests --------------------------------------------------------------------------------

    def ask(self, method: str, env_id: int, *args: Any) -> Any:
        """What can be asked of single members."""
        if method == "random_action":
            return self.venv.single_action_space.sample()
        if method == "image":
            return self.venv.render()[env_id]  # type: ignore[index]
        if method == "attribute":
            values: Any = getattr(self.venv.unwrapped, args[0], None)
            return (True, values[env_id]) if np.ndim(values) else (False, None)
        return super().ask(method, env_id, *args)


def _member(infos: Any, env_id: int) -> dict[str, Any]:
    """One member's info of a vector's infos: ``name`` counts where ``_name`` says so."""
    if not isinstance(infos, Mapping):  # an array of infos
        return dict(infos[env_id] or {})
    info = {}
    for name, values in infos.items():
        if name.startswith("_") or name in _FINALS:
            continue
        if f"_{name}" in infos and not infos[f"_{name}"][env_id]:
            continue
        info[name] = _member(values, env_id) if isinstance(values, Mapping) else values[env_id]
    return info

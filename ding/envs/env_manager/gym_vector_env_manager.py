"""gymnasium's vector environments as an env manager."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from easydict import EasyDict
from gymnasium.vector import VectorEnv

from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._env_types import (
    PER_EPISODE,
    EnvState,
    Seed,
    close_quietly,
)
from ding.envs.env_manager._requests import Asked
from ding.envs.env_manager._steps import Rows
from ding.envs.env_manager._timeout import CallTimeoutError, timeout_wrapper
from ding.envs.env_manager._vector_env import (
    DISABLED,
    MASK,
    NEXT_STEP,
    SAME_STEP,
    PromptCartPole,
    autoreset_mode,
    native_vector_env,
    vector_env_of,
)
from ding.envs.env_manager.base_env_manager import BaseEnvManager
from ding.envs.running_statistics import Statistics, merged
from ding.envs.vector_step import VectorStep
from ding.utils import ENV_MANAGER_REGISTRY, durations
from ding.utils.errors import DataError, DingError, EnvError, EnvTimeoutError

__all__ = ["GymVectorEnvManager"]


_FINALS = {"final_obs", "_final_obs", "final_info", "_final_info", "final_observation"}


@ENV_MANAGER_REGISTRY.register("gym_vector")
class GymVectorEnvManager(BaseEnvManager, columns_fit_rows=True):
    """Passes whole batches to a vector environment.

    That is gymnasium's own vector version, if the environment is named by its id and has one,
    otherwise one over single environments. Every step is taken with all environments: what those
    do that were given no action is not told, so reset them before they are used again. With native
    ones that reset themselves in the step after an episode's end (CartPole), an environment whose
    episode ended sits out one step: that step only resets it.

    Config keys, besides ``episode_num``, ``step_timeout`` and ``reset_timeout`` (of a native
    version, seconds that all of its members may take together):
        env_id: Makes the environments natively; ``None`` to see whether `env_fn` names an id.
        kwargs: For the native environment.
        native: Whether native versions are used at all.
        shared_memory: Steps single environments in a process each, with shared memory.
    """

    config: dict[str, Any] = {
        "shared_memory": False,
        "episode_num": float("inf"),
        "env_id": None,
        "kwargs": {},
        "native": True,
    }
    steps_all = True
    _venv: Any  # a VectorEnv from launch to close

    def __init__(self, env_fn: list[Callable], cfg: EasyDict = EasyDict({})) -> None:
        super().__init__(env_fn, cfg)

    # ---- what differs from the base manager ---------------------------------------------------

    def _start(self) -> None:
        self._use(self._make_vector_env(self._cfg.native))

    def _use(self, venv: VectorEnv) -> None:
        self._venv = venv
        self._mode = autoreset_mode(self._venv)
        self._is_native = not hasattr(self._venv, "env_fns")
        self._spaces["observation_space"] = self._venv.single_observation_space
        self._spaces["action_space"] = self._venv.single_action_space
        self._take_seeds()

    def _take_seeds(self) -> None:
        self._to_seed = dict(self._seeds)
        if 0 in self._seeds:
            self._venv.single_action_space.seed(self._seeds[0][0])
        if any(dynamic == PER_EPISODE for _, dynamic in self._seeds.values()):
            self._number_starts()

    def _number_starts(self) -> None:
        """Have the members seed each episode, which native environments but one cannot."""
        seeds = [self._seeds[env_id][0] for env_id in range(self._env_num)]
        if isinstance(self._venv, PromptCartPole):
            self._venv.member_seeds = seeds
        elif self._is_native:
            close_quietly(self._venv, "vector")
            self._use(self._make_vector_env(native=False))
        else:
            self._venv.set_attr("seeds_episodes", True)

    def _make_vector_env(self, native: bool) -> VectorEnv:
        cfg = self._cfg
        named = (cfg.env_id, dict(cfg.kwargs)) if cfg.env_id else None
        if native:
            if named is None and hasattr(self.env_ref, "vector_spec"):
                named = self.env_ref.vector_spec()
            venv = native_vector_env(named[0], self._env_num, named[1]) if named else None
            if venv is not None:
                return venv
        return vector_env_of(self._env_fn, self._settings, cfg.shared_memory, cfg.shared_memory)

    def _stop(self, wait: bool) -> None:
        if self._venv is not None:
            close_quietly(self._venv, "vector")

    def _forget_envs(self) -> None:
        super()._forget_envs()
        self._venv = None
        self._episode_count = np.zeros(self._env_num, np.int64)
        self._returns = np.zeros(self._env_num, np.float64)
        self._sits_out = np.zeros(self._env_num, bool)  # reset by the vector env's next step
        self._has_done = False
        self._idle_actions: Any = None

    def _restart(self, params: Mapping[int, dict | None], recount: bool) -> dict[int, Any]:
        ids = sorted(params)
        options = next((param for param in params.values() if param), None)
        if len(ids) < self._env_num and self._mode != DISABLED:
            raise EnvError(
                f"env {ids[0]} cannot be reset alone: this vector env resets its members itself; "
                "reset() all, or set env.manager.native=False (needs gymnasium 1.1 or newer)"
            )
        if recount:
            self._to_seed.update(s for s in self._seeds.items() if s[1][1] == PER_EPISODE)
        obs = self._reset_members(ids, options)
        done = [self._env_states[env_id] == EnvState.DONE for env_id in ids]
        self._episode_count[ids] *= 0 if recount else np.logical_not(done)
        self._env_states.update(dict.fromkeys(ids, EnvState.RUN))
        self._has_done = EnvState.DONE in self._env_states.values()
        if self._store is None:
            return {env_id: _row(obs, env_id) for env_id in ids}
        for env_id in ids:
            self._store.write(env_id, _row(obs, env_id))
        return {}

    def _reset_members(self, ids: Sequence[int], options: dict | None = None) -> Any:
        """Reset some members, all unless the mode is DISABLED; the observations of all."""
        options = dict(options or {})
        if len(ids) < self._env_num:
            options[MASK] = np.isin(np.arange(self._env_num), ids)
        obs, _ = self._guarded("reset", seed=self._next_seeds(ids), options=options)
        if obs_store.nan_position(obs) is not None:
            position = obs_store.nan_position(obs)
            raise DataError(f"env {position} gave an observation with NaN at its reset")
        self._returns[ids] = 0
        self._sits_out[ids] = False
        return obs

    def _next_seeds(self, ids: Sequence[int]) -> Any:
        if self._is_native:
            seed = self._to_seed.get(0)
            self._to_seed.clear()
            return None if seed is None else seed[0]
        seeds = [self._to_seed.get(i) if i in ids else None for i in range(self._env_num)]
        for env_id in ids:
            # Without dynamic seeds every episode starts from the same one.
            if env_id in self._to_seed and self._to_seed[env_id][1] is not False:
                del self._to_seed[env_id]
        return [None if seed is None else seed[0] for seed in seeds]

    def _step_envs(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        self._step_count += 1
        ready = self._ready_ids
        in_order = ids is self._ready_list or ids == self._ready_list
        index = ready if in_order else np.array(ids, np.int64)
        obs, reward, done, truncated, infos = self._step_members(index, actions)
        any_done = np.count_nonzero(done) > 0  # several times quicker than any()
        columns = (self._last_obs(obs, done, infos) if any_done else obs, reward, done, truncated)
        if index is not self._all_ids:
            columns = tuple(obs_store.take_rows(part, index) for part in columns)
        step = VectorStep(index, *columns)
        rows = self._rows(ids, reward, infos) if want_rows else ()
        was_partial = len(ids) < self._env_num
        if any_done:
            step.infos = self._end_episodes(done.nonzero()[0], truncated, infos)
        if (any_done and (self._mode == NEXT_STEP or self._has_done)) or was_partial:
            self._note_ready()
            if not self._ready_list and not self.done:
                # All sit out: their step asks nothing of the caller.
                self._step_members(self._ready_ids, np.zeros(0))
                self._note_ready()
        if want_rows:
            rows = [(r, {**info, **step.infos.get(i, {})}) for i, (r, info) in zip(ids, rows)]
        return step, rows

    def _step_members(self, index: np.ndarray, actions: Any) -> tuple[Any, ...]:
        """Step all members; of those not in `index` nothing is reported but the observations."""
        actions = np.asarray(actions)
        if index is not self._all_ids:
            some, actions = actions, self._idle().copy()
            actions[index] = some.reshape(len(index), *actions.shape[1:])
        space = self._venv.action_space
        if actions.shape != space.shape or actions.dtype != space.dtype:
            actions = actions.reshape(space.shape).astype(space.dtype, copy=False)
        obs, reward, terminated, truncated, infos = self._guarded("step", actions)
        reward = np.asarray(reward, np.float32)
        done = np.logical_or(terminated, truncated)
        truncated = done & ~np.asarray(terminated)
        obs = self._store.write_columns(obs)
        self._returns += reward
        if len(index) < self._env_num:
            idle = np.ones(self._env_num, bool)
            idle[index] = False
            self._returns[idle] = 0
            self._sits_out[idle] = False
            useless = idle & done
            if useless.any():  # of those that have played their episodes, but are stepped anyway
                if self._mode == DISABLED:
                    self._reset_members(np.flatnonzero(useless).tolist())
                done = done & ~useless
        return obs, reward, done, truncated, infos

    def _last_obs(self, obs: Any, done: np.ndarray, infos: Mapping[str, Any]) -> Any:
        if self._mode == NEXT_STEP:
            return obs
        finals = infos.get("final_obs", infos.get("final_observation"))
        if self._mode == SAME_STEP and type(finals) is np.ndarray and finals.dtype != object:
            return finals  # of all members
        last = obs_store.copy_columns(obs)
        if self._mode == SAME_STEP:
            for env_id in np.flatnonzero(done).tolist():
                obs_store.put_row(last, env_id, _row(finals, env_id))
        return last

    def _end_episodes(
        self, ended: np.ndarray, truncated: np.ndarray, infos: Mapping[str, Any]
    ) -> dict[int, dict[str, Any]]:
        """Count and start the next ones; what is known of those that ended, by env id."""
        finals = infos.get("final_info", infos)
        if isinstance(finals, Mapping) and finals.keys() <= _FINALS:
            finals = None
        result = {}
        ids = ended.tolist()
        for env_id, value, cut in zip(
            ids, self._returns[ended].tolist(), truncated[ended].tolist()
        ):
            info = _member(finals, env_id) if finals is not None else {}
            info.setdefault("eval_episode_return", value)
            info["truncated"], info["terminated"] = cut, not cut
            result[env_id] = info
        self._returns[ended] = 0
        self._episode_count[ended] += 1
        if self._cfg.episode_num != float("inf"):
            for env_id in ended[self._episode_count[ended] >= self._cfg.episode_num].tolist():
                self._env_states[env_id] = EnvState.DONE
                self._has_done = True
        if self._mode == NEXT_STEP:
            self._sits_out[ended] = True
        elif self._mode == DISABLED:
            obs = self._reset_members(ids)
            for env_id in ids:
                self._store.write(env_id, _row(obs, env_id))
        return result

    def _note_ready(self) -> None:
        waits = ~self._sits_out
        if self._has_done:
            waits &= [state == EnvState.RUN for state in self._env_states.values()]
        self._set_ready(np.flatnonzero(waits).tolist())

    def _rows(self, ids: list[int], reward: np.ndarray, infos: Mapping[str, Any]) -> Rows:
        return [(reward[i : i + 1].copy(), _member(infos, i)) for i in ids]

    def _idle(self) -> np.ndarray:
        if self._idle_actions is None:
            self._idle_actions = np.asarray(self._venv.action_space.sample())
        return self._idle_actions

    def _guarded(self, doing: str, *args: Any, **kwargs: Any) -> Any:
        """Call ``step`` or ``reset`` of the vector environment."""
        limit = self._limit(doing)
        try:
            return timeout_wrapper(getattr(self._venv, doing), limit)(*args, **kwargs)
        except DingError:
            raise
        except CallTimeoutError as error:
            raise EnvTimeoutError(
                f"the vector env {self._venv!r} did not finish {doing}() within {limit:g} s "
                f"({doing}_timeout={getattr(self._settings, f'{doing}_timeout')})"
            ) from error
        except Exception as error:
            raise EnvError(
                f"the vector env {self._venv!r} failed: {type(error).__name__}: {error}"
            ) from error

    def _limit(self, doing: str) -> float | None:
        """Seconds for all members; those that are single environments watch their own time."""
        limit = getattr(self._settings, f"{doing}_timeout")
        if limit is None or self._is_native:
            return limit
        return (
            limit * (1 if self._cfg.shared_memory else self._env_num) + durations.ENV_REPORT_GRACE
        )

    # ---- requests -----------------------------------------------------------------------------

    def _groups(self) -> Sequence[Asked]:
        return []

    def _group_of(self, env_id: int) -> Asked:
        self._require_launched()
        return _Members(self._venv, self._is_native)

    @property
    def normalises(self) -> bool:
        """Whether environments normalise by statistics of what they have seen."""
        return not (self._closed or self._is_native) and any(self._venv.call("normalises"))

    def take_statistics(self) -> Statistics | None:
        """What normalising environments have seen since the last call; ``None`` without any."""
        if self._normalises is None:
            self._normalises = self.normalises
        if not self._normalises:
            return None
        return merged(part for part in self._venv.call("take_statistics") if part)

    def load_statistics(self, state: Statistics, frozen: bool = False) -> None:
        """Normalise by the statistics of a run, in all environments."""
        if not (self._closed or self._is_native):
            self._venv.call("load_statistics", state, frozen)

    def seed(
        self, seed: dict[int, int] | list[int] | int, dynamic_seed: bool | None = None
    ) -> None:
        """Set the seeds that the next reset takes.

        Args:
            seed: As for the other managers; native environments take the one of environment 0.
            dynamic_seed: ``False``: every episode starts from the same seed, but not with native
                environments.
        """
        super().seed(seed, dynamic_seed)

    def _set_seeds(self, seeds: Mapping[int, Seed]) -> None:
        super()._set_seeds(seeds)
        if not self._closed:
            self._take_seeds()

    def state_dict(self) -> dict[str, Any]:
        """Seeds and random numbers; not episodes in flight."""
        state = super().state_dict()
        if not self._closed:
            if self._is_native:
                state["native"] = self._venv.np_random.bit_generator.state
            else:
                state["envs"] = list(self._venv.get_attr("resume_state"))
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a state: at the next launch, or at once with new episodes."""
        envs = state_dict["envs"] or ([state_dict["native"]] if "native" in state_dict else [])
        super().load_state_dict({**state_dict, "envs": envs})

    def _load_env_states(self, states: Sequence[Any]) -> None:
        self._to_seed.clear()
        if self._is_native:
            self._venv.np_random.bit_generator.state = states[0]
        else:
            self._venv.set_attr("resume_state", list(states))


class _Members:
    """What ``EnvGroup.ask`` does, of a vector environment's members."""

    def __init__(self, venv: Any, is_native: bool) -> None:
        self._venv = venv
        self._is_native = is_native

    def ask(self, method: str, env_id: int, *args: Any) -> Any:
        return getattr(self, method)(env_id, *args)

    def random_action(self, env_id: int) -> Any:
        return self._venv.single_action_space.sample()

    def image(self, env_id: int, render_mode: str) -> Any:
        return self._venv.render()[env_id]

    def attribute(self, env_id: int, name: str) -> tuple[bool, Any]:
        try:
            return True, self._venv.get_attr(name)[env_id]
        except Exception:  # Async ones raise what the worker raised, native ones anything
            return False, None

    def call(self, env_id: int, name: str, args: tuple = ()) -> Any:
        raise EnvError(f"{name}() cannot be called on single members of a vector env", env_id)


def _row(columns: Any, position: int) -> Any:
    if isinstance(columns, Mapping):
        return {key: _row(part, position) for key, part in columns.items()}
    return columns[position]


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

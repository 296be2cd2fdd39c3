"""Makes gymnasium vector environments: native ones, or some of single environments."""

import inspect
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from ding.envs.env.base_env import BaseEnv, is_truncated
from ding.envs.env_manager._env_types import (
    GroupSettings,
    env_error,
    positional_count,
    timeout_error,
)
from ding.envs.env_manager._generators import generator_states, load_generator_states
from ding.envs.env_manager._settings import fn_name
from ding.envs.env_manager._timeout import CallTimeoutError, timeout_wrapper
from ding.envs.env_wrappers import as_gymnasium_space, raw_rewards
from ding.envs.running_statistics import NormaliserGroup, Statistics
from ding.envs.seeds import episode_seed
from ding.envs.vector_step import number_as_action
from ding.utils.errors import EnvError

# How a vector environment starts the next episode of a member; the names of gymnasium's modes.
NEXT_STEP = "NEXT_STEP"  # by itself, in the step after, whose action and reward mean nothing
SAME_STEP = "SAME_STEP"  # by itself, at once; the last observation is in the infos
DISABLED = "DISABLED"  # when asked to

MASK = "reset_mask"

_CARTPOLE = f"{CartPoleVectorEnv.__module__}:{CartPoleVectorEnv.__name__}"


class PromptCartPole(CartPoleVectorEnv):
    """gymnasium's vector CartPole, but members whose episode ended are reset in the same step.

    So no member ever sits out a step, which would leave callers with a ragged batch most of the
    time. ``infos['final_obs']`` holds all members' observations before the resets.
    """

    metadata: dict[str, Any] = {**CartPoleVectorEnv.metadata, "autoreset_mode": SAME_STEP}

    state: Any
    #: Fixed seeds of the members, each of which numbers its episodes; ``None`` to draw freely.
    member_seeds: list[int] | None = None

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        obs, infos = super().reset(seed=seed, options=options)
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
        obs, reward, terminated, truncated, infos = super().step(action)
        ended = self.prev_done
        count = np.count_nonzero(ended)
        if count:
            infos = {"final_obs": obs, "_final_obs": ended}
            if self.member_seeds is not None:
                self._episodes[ended] += 1
            self.state[:, ended] = self._starts(np.flatnonzero(ended).tolist())
            self.steps[ended] = 0
            self.prev_done = np.zeros(self.num_envs, bool)
            obs = self.state.T.astype(np.float32)
        return obs, reward, terminated, truncated, infos


def native_vector_env(env_id: str, env_num: int, kwargs: dict[str, Any]) -> VectorEnv | None:
    """gymnasium's own vector version of an environment, if it has one.

    Raises:
        EnvError: It has one, but that cannot be made.
    """
    spec = gymnasium.registry.get(env_id)
    if spec is None or spec.vector_entry_point is None:
        return None
    try:
        if spec.vector_entry_point == _CARTPOLE:
            limit = {"max_episode_steps": spec.max_episode_steps}
            return PromptCartPole(env_num, **{**limit, **spec.kwargs, **kwargs})
        return gymnasium.make_vec(env_id, env_num, "vector_entry_point", **kwargs)
    except Exception as error:
        raise EnvError(f"cannot make the vector env {env_id!r}: {error}") from error


def vector_env_of(
    env_fns: Sequence[Callable], settings: GroupSettings, processes: bool, shared_memory: bool
) -> VectorEnv:
    """A vector environment over single ones.

    Args:
        env_fns: Make gymnasium environments or ``BaseEnv``.
        settings: How long their steps and resets may take.
        processes: Whether each has a process of its own.
        shared_memory: Whether those share memory for the observations.
    """
    members = [_MemberFn(fn, env_id, settings) for env_id, fn in enumerate(env_fns)]
    kind = AsyncVectorEnv if processes else SyncVectorEnv
    kwargs: dict[str, Any] = {"shared_memory": shared_memory} if processes else {}
    # gymnasium 1.0 knows only one mode.
    if "autoreset_mode" in inspect.signature(kind).parameters:
        kwargs["autoreset_mode"] = gymnasium.vector.AutoresetMode.DISABLED
    return kind(members, **kwargs)


def autoreset_mode(venv: VectorEnv) -> str:
    """One of the three modes above; what does not say follows gymnasium's first convention."""
    mode = (venv.metadata or {}).get("autoreset_mode")
    return mode if isinstance(mode, str) else getattr(mode, "name", NEXT_STEP)


class _MemberFn:
    def __init__(self, fn: Callable, env_id: int, settings: GroupSettings) -> None:
        self.fn, self.env_id, self.settings = fn, env_id, settings
        self._parent_pid = os.getpid()

    def __call__(self) -> gymnasium.Env:
        if os.getpid() != self._parent_pid:
            # Forked processes would all draw the same numbers.
            inherited = np.random.randint(2**32, size=4, dtype=np.uint64).tolist()
            numbers = np.random.SeedSequence(inherited, spawn_key=(self.env_id,))
            random.seed(int(numbers.generate_state(1)[0]))
            np.random.seed(numbers.generate_state(4))
        try:
            return VectorMember(self.fn(), self.env_id, self.settings)
        except Exception as error:
            raise env_error(self.env_id, fn_name(self.fn), "could not be made", error) from error


class VectorMember(gymnasium.Env):
    """A ``BaseEnv`` or a gymnasium environment in a vector; its errors name it."""

    def __init__(self, env: Any, env_id: int, settings: GroupSettings) -> None:
        self.env, self.env_id, self.settings = env, env_id, settings
        self._step_env = timeout_wrapper(env.step, settings.step_timeout)
        self._reset_env = timeout_wrapper(env.reset, settings.reset_timeout)
        self.observation_space = as_gymnasium_space(env.observation_space)
        self.action_space = as_gymnasium_space(env.action_space)
        self.metadata = getattr(env, "metadata", {})
        self.render_mode = getattr(env, "render_mode", None)
        self._is_base_env = isinstance(env, BaseEnv)
        #: Whether episodes are numbered, each with a seed of its own that follows from the last.
        self.seeds_episodes = False
        self._last_seed = 0
        self._episode = 0
        self._raw = None if self._is_base_env else raw_rewards(env)
        self._normalisers = NormaliserGroup()
        self._normalisers.adopt(0, env)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        if seed is not None:
            self._last_seed, self._episode = seed, 0
        elif self.seeds_episodes:
            self._episode += 1
            seed = episode_seed(self._last_seed, self._episode)
        try:
            if not self._is_base_env:
                return self._started(seed=seed, options=options or None)
            if seed is not None:
                if self.seeds_episodes and positional_count(self.env.seed) > 1:
                    self.env.seed(seed, False)
                else:
                    self.env.seed(seed)
            return self._started(), {}
        except Exception as error:
            raise self._named("reset", error) from error

    def _started(self, **kwargs: Any) -> Any:
        first = self._reset_env(**kwargs)
        if self._normalisers.adopt(0, self.env):
            # Wrappers that are made by a reset have normalised without what was loaded.
            first = self._reset_env(**kwargs)
        if self._raw is not None:
            self._raw.total = 0.0
        return first

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        try:
            if not self._is_base_env:
                result = self._step_env(action)
                if self._raw is not None and (result[2] or result[3]):
                    value = float(np.asarray(self._raw.total).reshape(-1)[0])
                    return (*result[:4], {"eval_episode_return": value, **result[4]})
                return result
            if isinstance(action, int | np.integer):
                action = number_as_action(action)
            obs, reward, done, info = self._step_env(action)
            truncated = bool(done) and is_truncated(info)
            value = float(np.asarray(reward).reshape(-1)[0])
            return obs, value, bool(done) and not truncated, truncated, info
        except Exception as error:
            raise self._named("step", error) from error

    @property
    def normalises(self) -> bool:
        """Whether the environment normalises by statistics of what it has seen."""
        return bool(self._normalisers.statistics)

    def take_statistics(self) -> Statistics | None:
        """What was seen since the last call; ``None`` if nothing is normalised here."""
        return self._normalisers.take()

    def load_statistics(self, state: Statistics, frozen: bool) -> None:
        """Normalise by these statistics and, if not `frozen`, by what is seen from now on."""
        self._normalisers.load(state, frozen)

    def render(self) -> Any:
        return self.env.render()

    def close(self) -> None:
        self.env.close()

    @property
    def resume_state(self) -> dict[str, Any]:
        """What the next episodes depend on."""
        own = self.env.state_dict() if hasattr(self.env, "state_dict") else None
        return {"env": own, "generators": generator_states(self.env)}

    @resume_state.setter
    def resume_state(self, state: dict[str, Any]) -> None:
        if state["env"] is not None:
            self.env.load_state_dict(state["env"])
        load_generator_states(self.env, state["generators"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    def _named(self, doing: str, error: Exception) -> EnvError:
        name = type(self.env).__name__
        if isinstance(error, CallTimeoutError):
            limit = getattr(self.settings, f"{doing}_timeout")
            return timeout_error(self.env_id, name, doing, limit)
        return env_error(self.env_id, name, f"failed in {doing}()", error)

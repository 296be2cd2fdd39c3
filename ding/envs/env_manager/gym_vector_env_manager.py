"""gymnasium's vector environments as an env manager."""

from collections.abc import Mapping
from dataclasses import replace

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from ding.envs.env.base_env import BaseEnv
from ding.envs.env.ding_env_wrapper import DingEnvWrapper
from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import PER_EPISODE, Seed, fn_name
from ding.envs.env_manager._runner import Answer, EnvRunner
from ding.envs.env_manager._vector_runner import Answers, VectorLibrary, VectorRunner
from ding.envs.env_manager.base_env_manager import BaseEnvManager
from ding.envs.env_manager.subprocess_env_manager import SyncSubprocessEnvManager
from ding.envs.vector_step import AnyEnv, EnvFn, Obs
from ding.utils import ENV_MANAGER_REGISTRY
from ding.utils.errors import EnvError
from ding.utils.types import Config, Settings, State, Tree

__all__ = ["GymVectorEnvManager"]

# How a vector environment starts the next episode of a member; the names of gymnasium's modes.
_NEXT_STEP = "NEXT_STEP"  # by itself, in the step after, whose action and reward mean nothing
_SAME_STEP = "SAME_STEP"  # by itself, at once; the last observation is in the infos


@ENV_MANAGER_REGISTRY.register("gym_vector")
class GymVectorEnvManager(BaseEnvManager):
    """Passes whole batches to gymnasium's own vector version of an environment.

    If the environment is not named by its id, or has no such version, single environments are
    stepped as by the other managers. A native version steps all environments at once: reset those
    that got no action before they are used again. Where members reset themselves in the step after
    an episode's end, that step of theirs is not reported. A native version takes the seed of
    environment 0; ``dynamic_seed=False`` does not make its episodes equal. A
    custom ``gymnasium.vector.VectorEnv`` is used if its id is registered with it:
    ``gymnasium.register(env_id, vector_entry_point=...)``.

    Config keys, in addition to ``episode_num``, ``step_timeout`` and ``reset_timeout``:
        env_id: Makes the environments natively; ``None`` to see whether `env_fn` names an id.
        kwargs: For the native environment.
        native: Whether native versions are used at all.
        shared_memory: Steps single environments in a process each, with shared memory.
    """

    config: Config = {
        "shared_memory": False,
        "episode_num": float("inf"),
        "env_id": None,
        "kwargs": {},
        "native": True,
    }

    def _set_seeds(self, seeds: Mapping[int, Seed]) -> None:
        self._seeds.update(seeds)
        if isinstance(self._runner, VectorRunner) and self._numbers_starts():
            self._runner.stop(wait=True)
            self._start(self._single_runner())
        else:
            super()._set_seeds(seeds)

    def _numbers_starts(self) -> bool:
        """Whether each episode of a member has a seed, which native versions cannot take."""
        return any(dynamic == PER_EPISODE for _, dynamic in self._seeds.values())

    def _make_runner(self) -> EnvRunner:
        cfg, named = self._cfg, None
        if cfg.native and not self._numbers_starts():
            if cfg.env_id:
                named = cfg.env_id, dict(cfg.kwargs)
            elif hasattr(self.env_ref, "vector_spec"):
                named = self.env_ref.vector_spec()
        venv = None if named is None else _native_vector_env(named[0], self._env_num, named[1])
        if venv is None:
            return self._single_runner()
        return VectorRunner(_GymnasiumVector(venv, self._seeds), self._settings)

    def _single_runner(self) -> EnvRunner:
        env_fns: list[EnvFn] = [_BaseEnvFn(fn) for fn in self._env_fn]
        if self._cfg.shared_memory:
            processes = SyncSubprocessEnvManager(env_fns, {**self._cfg, "envs_per_worker": 1})  # type: ignore[arg-type]
            processes._seeds, processes._env_replay_path = self._seeds, self._env_replay_path
            return processes._make_runner()
        spec = self._group_spec()
        return EnvGroup(replace(spec, env_fns=dict(enumerate(env_fns))))


def _native_vector_env(env_id: str, env_num: int, kwargs: Config) -> VectorEnv | None:
    """The vector version that an id is registered with, if its members reset themselves."""
    spec = gymnasium.registry.get(env_id)
    if spec is None or spec.vector_entry_point is None:
        return None
    try:
        venv = gymnasium.make_vec(env_id, env_num, "vector_entry_point", **kwargs)
    except Exception as error:
        raise EnvError(f"cannot make the vector env {env_id!r}: {error}") from error
    if _autoreset_mode(venv) not in (_NEXT_STEP, _SAME_STEP):
        venv.close()
        return None
    return venv


def _autoreset_mode(venv: VectorEnv) -> str:
    """How members are reset; without a mode it is gymnasium's first convention."""
    mode = (venv.metadata or {}).get("autoreset_mode")
    return mode if isinstance(mode, str) else getattr(mode, "name", _NEXT_STEP)


class _GymnasiumVector(VectorLibrary):
    """A vector environment of gymnasium's API; all members answer at once."""

    def __init__(self, venv: VectorEnv, seeds: Mapping[int, Seed]) -> None:
        super().__init__(venv, venv.num_envs, venv.num_envs)
        self.observation_space = venv.single_observation_space
        self.action_space = venv.single_action_space
        self.resets_at_once = _autoreset_mode(venv) == _SAME_STEP
        self._ids = np.arange(self.env_num)
        self._first: Obs = None  # observations that a reset gave
        self._actions: np.ndarray
        self._seed: int | None = None  # of the next reset
        self.seed(seeds)

    def seed(self, seeds: Mapping[int, Seed]) -> None:
        if 0 in seeds:
            self._seed = seeds[0][0]
            self.action_space.seed(self._seed)

    def reset(self, options: Config) -> None:
        self._first, _ = self.library.reset(seed=self._seed, options=options)
        self._seed = None

    def send(self, actions: np.ndarray, ids: np.ndarray) -> None:
        self._actions = actions

    def receive(self) -> Answers:
        if self._first is not None:
            first, self._first = self._first, None
            nothing = np.zeros(self.env_num)
            return Answers(self._ids, first, nothing, nothing, nothing, {})
        return Answers(self._ids, *self.library.step(self._actions))

    def image(self, env_id: int) -> np.ndarray:
        return self.library.render()[env_id]

    def attribute(self, env_id: int, name: str) -> tuple[bool, Answer]:
        values: Tree = getattr(self.library.unwrapped, name, None)
        return (True, values[env_id]) if np.ndim(values) else (False, None)

    def state_dict(self) -> State:
        return {"native": self.library.np_random.bit_generator.state}

    def load_state_dict(self, state: Settings) -> None:
        if "native" in state:
            self._seed = None
            self.library.np_random.bit_generator.state = state["native"]


class _BaseEnvFn:
    """Makes what `fn` makes; puts a gymnasium environment in a `DingEnvWrapper`."""

    def __init__(self, fn: EnvFn) -> None:
        self.fn, self.__name__ = fn, fn_name(fn)

    def __call__(self) -> AnyEnv:
        env = self.fn()
        plain = isinstance(env, gymnasium.Env) and not isinstance(env, BaseEnv)
        return DingEnvWrapper(env) if plain else env

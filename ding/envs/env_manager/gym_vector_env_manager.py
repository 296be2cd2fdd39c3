"""gymnasium's vector environments as an env manager."""

from collections.abc import Mapping
from dataclasses import replace

import gymnasium
from gymnasium.vector import VectorEnv

from ding.envs.env.base_env import BaseEnv
from ding.envs.env.ding_env_wrapper import DingEnvWrapper
from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import PER_EPISODE, Seed, fn_name
from ding.envs.env_manager._runner import EnvRunner
from ding.envs.env_manager._vector_runner import VectorRunner, autoreset_mode
from ding.envs.env_manager.base_env_manager import BaseEnvManager
from ding.envs.env_manager.subprocess_env_manager import SyncSubprocessEnvManager
from ding.envs.vector_step import AnyEnv, EnvFn
from ding.utils import ENV_MANAGER_REGISTRY
from ding.utils.errors import EnvError
from ding.utils.types import Config

__all__ = ["GymVectorEnvManager"]


@ENV_MANAGER_REGISTRY.register("gym_vector")
class GymVectorEnvManager(BaseEnvManager):
    """Passes whole batches to gymnasium's own vector version of an environment.

    If the environment is not named by its id, or has no such version, single environments are
    stepped as by the other managers. A native version steps all environments at once: reset those
    that got no action before they are used again. Where members reset themselves in the step after
    an episode's end, that step of theirs is not reported. A native version takes the seed of
    environment 0; ``dynamic_seed=False`` does not make its episodes equal. Videos are saved of
    single environments. A custom ``gymnasium.vector.VectorEnv`` is used if its id is registered
    with it: ``gymnasium.register(env_id, vector_entry_point=...)``.

    Config keys, in addition to ``episode_num``, ``step_timeout`` and ``reset_timeout``:
        shared_memory: Steps single environments in a process each, with shared memory.
    """

    config: Config = {"shared_memory": False, "episode_num": float("inf")}

    def enable_save_replay(self, replay_path: list[str] | str) -> None:
        super().enable_save_replay(replay_path)
        self._leave_native()

    def _set_seeds(self, seeds: Mapping[int, Seed]) -> None:
        self._seeds.update(seeds)
        if not self._leave_native():
            super()._set_seeds(seeds)

    def _leave_native(self) -> bool:
        """Run single environments from the next reset on, if a native version will not do."""
        if not isinstance(self._runner, VectorRunner) or not self._needs_single():
            return False
        self._runner.stop(wait=True)
        self._start(self._make_runner())
        self._note_ready()
        return True

    def _needs_single(self) -> bool:
        """Whether each episode of a member has a seed, or is filmed, as no native version can."""
        numbers_starts = any(dynamic == PER_EPISODE for _, dynamic in self._seeds.values())
        return numbers_starts or bool(self._env_replay_path)

    def _make_runner(self) -> EnvRunner:
        if not self._needs_single() and hasattr(self.env_ref, "vector_spec"):
            named = self.env_ref.vector_spec()
            venv = None if named is None else _native_vector_env(named[0], self._env_num, named[1])
            if venv is not None:
                return VectorRunner(venv, self._settings, self._seeds)
        env_fns: list[EnvFn] = [_BaseEnvFn(fn) for fn in self._env_fn]
        if self._cfg.shared_memory:
            processes = SyncSubprocessEnvManager(env_fns, {**self._cfg, "envs_per_worker": 1})  # type: ignore[arg-type]
            processes._seeds, processes._env_replay_path = self._seeds, self._env_replay_path
            return processes._make_runner()
        return EnvGroup(replace(self._group_spec(), env_fns=dict(enumerate(env_fns))))


def _native_vector_env(env_id: str, env_num: int, kwargs: Config) -> VectorEnv | None:
    """The vector version that an id is registered with, if its members reset themselves."""
    spec = gymnasium.registry.get(env_id)
    if spec is None or spec.vector_entry_point is None:
        return None
    try:
        venv = gymnasium.make_vec(env_id, env_num, "vector_entry_point", **kwargs)
    except Exception as error:
        raise EnvError(f"cannot make the vector env {env_id!r}: {error}") from error
    if autoreset_mode(venv) not in ("NEXT_STEP", "SAME_STEP"):
        venv.close()
        return None
    return venv


class _BaseEnvFn:
    """Makes what `fn` makes; puts a gymnasium environment in a `DingEnvWrapper`."""

    def __init__(self, fn: EnvFn) -> None:
        self.fn, self.__name__ = fn, fn_name(fn)

    def __call__(self) -> AnyEnv:
        env = self.fn()
        plain = isinstance(env, gymnasium.Env) and not isinstance(env, BaseEnv)
        return DingEnvWrapper(env) if plain else env

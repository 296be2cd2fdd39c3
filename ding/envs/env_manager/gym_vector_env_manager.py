"""gymnasium's vector environments as an env manager."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from ding.envs.env.base_env import BaseEnv
from ding.envs.env.ding_env_wrapper import DingEnvWrapper
from ding.envs.env_manager._env_types import Seed
from ding.envs.env_manager._native_runner import (
    NativeRunner,
    PromptCartPole,
    native_vector_env,
    numbers_starts,
)
from ding.envs.env_manager._runner import EnvRunner, LocalRunner
from ding.envs.env_manager._settings import fn_name
from ding.envs.env_manager.base_env_manager import BaseEnvManager
from ding.envs.env_manager.subprocess_env_manager import SyncSubprocessEnvManager
from ding.utils import ENV_MANAGER_REGISTRY

__all__ = ["GymVectorEnvManager"]


@ENV_MANAGER_REGISTRY.register("gym_vector")
class GymVectorEnvManager(BaseEnvManager):
    """Passes whole batches to gymnasium's own vector version of an environment.

    If the environment is not named by its id, or has no such version, single environments are
    stepped as by the other managers. With a native version every step is taken with all
    environments: what those do that were given no action is not told, so reset them before they
    are used again. With native ones that reset themselves in the step after an episode's end, an
    environment whose episode ended sits out one step: that step only resets it. A native version
    takes the seed of environment 0; ``dynamic_seed=False`` does not make its episodes alike.

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

    @property
    def steps_all(self) -> bool:
        """Whether environments that a step has no action for are stepped, too."""
        return self._runner is None or self._runner.steps_all

    def _set_seeds(self, seeds: Mapping[int, Seed]) -> None:
        self._seeds.update(seeds)
        if isinstance(self._runner, NativeRunner) and not self._suits(self._runner.venv):
            self._runner.stop(wait=True)
            self._start(self._single_runner())
        else:
            super()._set_seeds(seeds)

    def _suits(self, venv: VectorEnv) -> bool:
        # Native environments but one cannot seed each episode of a member.
        return isinstance(venv, PromptCartPole) or not numbers_starts(self._seeds)

    def _make_runner(self) -> EnvRunner:
        cfg, named = self._cfg, None
        if cfg.native and cfg.env_id:
            named = cfg.env_id, dict(cfg.kwargs)
        elif cfg.native and hasattr(self.env_ref, "vector_spec"):
            named = self.env_ref.vector_spec()
        venv = None if named is None else native_vector_env(named[0], self._env_num, named[1])
        if venv is not None and self._suits(venv):
            return NativeRunner(venv, self._settings, self._seeds)
        if venv is not None:
            venv.close()
        return self._single_runner()

    def _single_runner(self) -> EnvRunner:
        env_fns: list[Callable] = [_BaseEnvFn(fn) for fn in self._env_fn]
        if self._cfg.shared_memory:
            processes = SyncSubprocessEnvManager(env_fns, {**self._cfg, "envs_per_worker": 1})  # type: ignore[arg-type]
            processes._seeds, processes._env_replay_path = self._seeds, self._env_replay_path
            return processes._make_runner()
        spec = self._group_spec()
        return LocalRunner(replace(spec, env_fns=dict(enumerate(env_fns))))


class _BaseEnvFn:
    """Makes what `fn` makes; a gymnasium environment in a wrapper."""

    def __init__(self, fn: Callable) -> None:
        self.fn, self.__name__ = fn, fn_name(fn)

    def __call__(self) -> Any:
        env = self.fn()
        plain = isinstance(env, gymnasium.Env) and not isinstance(env, BaseEnv)
        return DingEnvWrapper(env) if plain else env

"""gymnasium's vector environments as an env manager."""

from functools import partial

import gymnasium
from easydict import EasyDict
from gymnasium.vector import VectorEnv

from ding.envs.env.base_env import BaseEnv
from ding.envs.env.ding_env_wrapper import DingEnvWrapper
from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import PER_EPISODE
from ding.envs.env_manager._runner import EnvRunner
from ding.envs.env_manager._vector_runner import VectorRunner
from ding.envs.env_manager.base_env_manager import BaseEnvManager
from ding.envs.vector_step import AnyEnv, EnvFn
from ding.utils import ENV_MANAGER_REGISTRY
from ding.utils.errors import EnvError
from ding.utils.types import Config

__all__ = ["GymVectorEnvManager"]


@ENV_MANAGER_REGISTRY.register("gym_vector")
class GymVectorEnvManager(BaseEnvManager):
    """Passes whole batches to gymnasium's own vector version of an environment.

    If the environment is not named by its id, or has no such version, single environments are
    stepped as by `BaseEnvManager`. A native version steps all environments at once: reset those
    that got no action before they are used again. Members reset themselves in the step after an
    episode's end, and that step of theirs is not reported. A native version takes the seed of
    environment 0; ``dynamic_seed=False`` does not make its episodes equal. Videos are saved of
    single environments. A custom ``gymnasium.vector.VectorEnv`` is used if its id is registered
    with it: ``gymnasium.register(env_id, vector_entry_point=...)``.

    Config keys:
        episode_num: Episodes that each environment plays before it is done for good.
        shared_memory: Accepted for old configs: ``subprocess`` steps environments in processes.
    """

    config: Config = {"shared_memory": False, "episode_num": float("inf")}

    def __init__(self, env_fn: list[EnvFn], cfg: EasyDict = EasyDict({})) -> None:
        super().__init__([partial(_base_env, fn) for fn in env_fn], cfg)

    def reset(self, reset_param: dict[int, Config] | None = None) -> None:
        if isinstance(self._runner, VectorRunner) and self._needs_single():
            self._runner.stop(wait=True)
            self._start(EnvGroup(self._group_spec()))
        super().reset(reset_param)

    def _needs_single(self) -> bool:
        """Whether each episode of a member has a seed, or is filmed, as no native version can."""
        numbers_starts = any(dynamic == PER_EPISODE for _, dynamic in self._seeds.values())
        return numbers_starts or bool(self._env_replay_path)

    def _make_runner(self) -> EnvRunner:
        named = None
        if not self._needs_single() and hasattr(self.env_ref, "vector_spec"):
            named = self.env_ref.vector_spec()
        venv = None if named is None else _native_vector_env(named[0], self._env_num, named[1])
        if venv is None:
            return EnvGroup(self._group_spec())
        return VectorRunner(venv, self._settings, self._seeds)


def _native_vector_env(env_id: str, env_num: int, kwargs: Config) -> VectorEnv | None:
    """The vector version that an id is registered with, if members begin episodes as we expect."""
    spec = gymnasium.registry.get(env_id)
    if spec is None or spec.vector_entry_point is None:
        return None
    try:
        venv = gymnasium.make_vec(env_id, env_num, "vector_entry_point", **kwargs)
    except Exception as error:
        raise EnvError(f"cannot make the vector env {env_id!r}: {error}") from error
    mode = (venv.metadata or {}).get("autoreset_mode")
    # What declares nothing follows gymnasium's first convention.
    if getattr(mode, "name", mode) in (None, "NEXT_STEP"):
        return venv
    venv.close()
    return None


def _base_env(make: EnvFn) -> AnyEnv:
    env = make()
    is_plain = isinstance(env, gymnasium.Env) and not isinstance(env, BaseEnv)
    return DingEnvWrapper(env) if is_plain else env

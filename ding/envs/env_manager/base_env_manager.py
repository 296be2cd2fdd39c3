"""Many environments stepped as one, in this process; the base of all env managers."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs.env.base_env import BaseEnvTimestep
from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._action_check import batch_check, check_one
from ding.envs.env_manager._env_group import (
    EnvGroup,
    EnvState,
    GroupSettings,
    close_quietly,
    env_error,
)
from ding.envs.env_manager._settings import (
    fn_name,
    merged_config,
    named_method_names,
    replay_paths,
    seeds_by_id,
    spread,
)
from ding.envs.env_manager._stacked import actions_by_id, stacked_ready_obs, with_env_ids
from ding.envs.env_manager._steps import Rows, bad_data, check_step, timesteps, vector_step
from ding.envs.env_manager._timeout import timeout_wrapper
from ding.envs.vector_step import VectorStep
from ding.utils import ENV_MANAGER_REGISTRY, import_module
from ding.utils.errors import DataError, EnvError

__all__ = [
    "BaseEnvManager",
    "BaseEnvManagerV2",
    "EnvState",
    "create_env_manager",
    "get_env_manager_cls",
    "timeout_wrapper",
]


@ENV_MANAGER_REGISTRY.register("base")
class BaseEnvManager:
    """Steps environments one after the other in the calling process.

    Two APIs over the same machinery: dicts by env id (``ready_obs``, ``step``) and columns
    (``ready_columns``, ``step_columns``). An environment whose episode is done is reset by the
    manager at once, until it has played ``episode_num`` episodes.

    Config keys:
        episode_num: Episodes that each environment plays before it is done for good.
        auto_reset: Whether the manager resets an environment whose episode ended.
        max_retry: Tries per reset; if greater than 1, a failing step is recovered too: the
            timestep has ``info['abnormal']`` and the first observation of a new episode.
        retry_type: ``reset`` the environment or ``renew`` it: close it and make another.
        retry_waiting_time: Seconds between tries.
        step_timeout: Seconds that a step may take.
        reset_timeout: Seconds that a reset may take.
    """

    config: dict[str, Any] = {
        "episode_num": float("inf"),
        "max_retry": 1,
        "retry_type": "reset",
        "auto_reset": True,
        "step_timeout": None,
        "reset_timeout": None,
        "retry_waiting_time": 0.1,
    }
    _columns_fit_rows = True

    def __init_subclass__(cls, columns_fit_rows: bool = False, **kwargs: Any) -> None:
        # A subclass that changes what a step does, but only in the dict API, must not be
        # bypassed by callers that prefer columns.
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if not columns_fit_rows and ("step" in own or "ready_obs" in own):
            cls._columns_fit_rows = "step_columns" in own

    @classmethod
    def default_config(cls) -> EasyDict:
        cfg = EasyDict(copy.deepcopy(cls.config))
        cfg.cfg_type = cls.__name__ + "Dict"
        return cfg

    def __init__(self, env_fn: list[Callable], cfg: EasyDict = EasyDict({})) -> None:
        """
        Args:
            env_fn: One function per environment that makes it.
            cfg: See the class; other keys are left alone.

        Raises:
            ConfigError: A value that cannot be used.
        """
        self._closed = True
        self._cfg = merged_config(self.default_config(), cfg, env_fn)
        self._env_fn = list(env_fn)
        self._env_num = len(self._env_fn)
        self._settings = GroupSettings(
            **{name: self._cfg[name] for name in GroupSettings.__slots__ if name in self._cfg}
        )
        self._env_ref: Any = None
        self._spaces: dict[str, Any] = {}
        self._env_states = dict.fromkeys(range(self._env_num), EnvState.VOID)
        self._seeds: dict[int, tuple[int, bool | None]] = {}
        self._env_replay_path: dict[int, str] = {}
        self._saved_state: Mapping[str, Any] | None = None
        self._step_count = 0
        self._forget_envs()

    # ---- life ---------------------------------------------------------------------------------

    def launch(self, reset_param: dict | None = None) -> None:
        """Make the environments and reset them.

        Args:
            reset_param: As for :meth:`reset`.

        Raises:
            EnvError: An environment cannot be made or reset; everything is closed again.
        """
        if not self._closed:
            raise EnvError("the env manager is launched already; close() it before another launch")
        self._closed = False
        try:
            self._start()
            if self._saved_state is not None:
                self._load_env_states(self._saved_state)
                self._saved_state = None
            self.reset(reset_param)
        except BaseException:
            self.close()
            raise

    def reset(self, reset_param: dict | None = None) -> None:
        """Start new episodes.

        Args:
            reset_param: Env id to keyword arguments of its ``reset`` (kept for its later resets)
                or ``None``; only these environments are reset. Without it, all are, and their
                episodes are counted anew.

        Raises:
            EnvError: An environment cannot be reset.
        """
        self._require_launched()
        params = spread(reset_param, self._env_num)
        try:
            first = self._restart(params, recount=reset_param is None)
            if self._store is None:
                self._store = self._make_store(first)
            else:
                for env_id, obs in first.items():
                    self._write_first(env_id, obs)
        finally:
            self._note_ready()

    def close(self) -> None:
        """Close all environments. May be called at any time, more than once."""
        if self._closed and self._env_ref is None:
            return
        self._closed = True
        self._stop()
        if self._env_ref is not None:
            ref, self._env_ref = self._env_ref, None
            close_quietly(ref, "env_ref")
        for env_id in self._env_states:
            self._env_states[env_id] = EnvState.VOID
        self._forget_envs()

    @property
    def closed(self) -> bool:
        return self._closed

    # ---- columns ------------------------------------------------------------------------------

    @property
    def supports_columns(self) -> bool:
        """Whether ``ready_columns`` and ``step_columns`` can be used instead of the dict API.

        They can if observations are arrays of one shape, or nested dicts of such, and no subclass
        changed the dict API alone.
        """
        if not self._columns_fit_rows or not {"step", "ready_obs"}.isdisjoint(vars(self)):
            return False
        if self._store is not None:
            return self._store.layout is not None
        return obs_store.is_columnar_space(self.observation_space)

    def ready_columns(self) -> tuple[np.ndarray, Any]:
        """Ids and observations of the environments that wait for an action.

        Returns:
            int64 ``[n]``, and ``[n, *obs_shape]`` or nested dicts of such. The arrays hold until
            the next but one ``step_columns``.
        """
        store = self._column_store()
        self._await_ready()
        ids = self._ready_ids
        return ids, store.view() if len(ids) == self._env_num else store.gather(ids)

    def step_columns(self, actions: np.ndarray, env_ids: np.ndarray) -> VectorStep:
        """Step environments that wait for an action.

        Args:
            actions: ``[n, *action_shape]``.
            env_ids: ``[n]``, as from ``ready_columns``.

        Raises:
            ActionError: An action that the space does not contain; nothing was stepped.
            EnvError: An environment failed.
            DataError: NaN or infinity in rewards, NaN in observations.
        """
        self._column_store()
        if env_ids is not self._ready_ids:
            self._require_ready(env_ids)
        ids = env_ids.tolist() if isinstance(env_ids, np.ndarray) else list(env_ids)
        if len(actions) != len(ids):
            raise DataError(f"{len(actions)} actions came for {len(ids)} environments")
        if self._check_actions is None:
            self._check_actions = batch_check(self.action_space)
        actions = self._check_actions(np.asarray(actions), ids)
        step, _ = self._step_envs(ids, actions, want_rows=False)
        return check_step(step, self._step_count)

    # ---- dicts --------------------------------------------------------------------------------

    @property
    def ready_obs(self) -> dict[int, Any]:
        """Env id to observation of the environments that wait for an action."""
        self._require_launched()
        self._await_ready()
        return {env_id: self._store.row(env_id) for env_id in self._ready_ids.tolist()}

    @property
    def ready_obs_id(self) -> list[int]:
        """Ids of the environments that wait for an action."""
        self._require_launched()
        self._await_ready()
        return self._ready_ids.tolist()

    @property
    def ready_imgs(self, render_mode: str | None = "rgb_array") -> dict[int, Any]:
        """Env id to picture, as ``render`` gives it."""
        return {i: self._group.image(i, render_mode or "rgb_array") for i in self.ready_obs_id}

    def step(self, actions: dict[int, Any]) -> dict[int, BaseEnvTimestep]:
        """Step environments that wait for an action.

        Args:
            actions: By env id.

        Returns:
            The timesteps by env id; observations and rewards are the caller's own.

        Raises:
            As :meth:`step_columns`.
        """
        self._require_launched()
        if not actions:
            return {}
        ids = sorted(actions)
        self._require_ready(ids)
        space = self.action_space
        for env_id in ids:
            check_one(space, env_id, actions[env_id])
        step, rows = self._step_envs(ids, [actions[env_id] for env_id in ids], want_rows=True)
        return timesteps(check_step(step, self._step_count), rows)

    def random_action(self) -> dict[int, Any]:
        """An action for each environment that waits for one."""
        return {env_id: self._group.random_action(env_id) for env_id in self.ready_obs_id}

    @property
    def done(self) -> bool:
        """Whether all environments have played their ``episode_num`` episodes."""
        return all(state == EnvState.DONE for state in self._env_states.values())

    def env_state_done(self, env_id: int) -> bool:
        return self._env_states[env_id] == EnvState.DONE

    # ---- settings and requests ----------------------------------------------------------------

    def seed(
        self, seed: dict[int, int] | list[int] | int, dynamic_seed: bool | None = None
    ) -> None:
        """Set the seeds that the next reset of each environment takes.

        Args:
            seed: One per environment, by id or in order; a single number ``s`` means ``s + id``.
            dynamic_seed: Whether every episode has another seed; ``None`` leaves it to the
                environment.
        """
        seeds = {i: (s, dynamic_seed) for i, s in seeds_by_id(seed, self._env_num).items()}
        self._seeds.update(seeds)
        if not self._closed:
            self._seed_envs(seeds)

    def enable_save_replay(self, replay_path: list[str] | str) -> None:
        """Save videos, from the next reset on.

        Args:
            replay_path: A folder, or one per environment.
        """
        self._env_replay_path = replay_paths(replay_path, self._env_num)
        if not self._closed:
            self._save_replays(self._env_replay_path)

    def enable_save_figure(self, env_id: int, figure_path: str) -> None:
        self._require_launched()
        self._call(env_id, "enable_save_figure", (figure_path,))

    def reward_shaping(self, env_id: int, transitions: list[dict]) -> list[dict]:
        """What the environment's own ``reward_shaping`` makes of an episode's transitions."""
        self._require_launched()
        return self._call(env_id, "reward_shaping", (transitions,))

    @property
    def env_num(self) -> int:
        return self._env_num

    @property
    def env_ref(self) -> Any:
        """An environment of the same kind that is not part of the manager, to ask it things."""
        if self._env_ref is None:
            try:
                self._env_ref = self._env_fn[0]()
            except Exception as error:
                name = fn_name(self._env_fn[0])
                raise env_error(0, name, "could not be made", error) from error
        return self._env_ref

    @property
    def observation_space(self) -> Any:
        return self._space("observation_space")

    @property
    def action_space(self) -> Any:
        return self._space("action_space")

    @property
    def reward_space(self) -> Any:
        return self._space("reward_space")

    @property
    def method_name_list(self) -> list[str]:
        """The methods of environments that the manager calls."""
        return named_method_names(self._cfg)

    def state_dict(self) -> dict[str, Any]:
        """Seeds, episode counts and the environments' own states; not episodes in flight."""
        envs = self._env_state_dicts() if not self._closed else None
        return {"seeds": dict(self._seeds), "envs": envs}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a state: at the next launch, or at once with new episodes.

        Raises:
            DataError: The state is that of another number of environments.
        """
        envs = state_dict["envs"]
        if envs is not None and len(envs) != self._env_num:
            raise DataError(
                f"the saved state is of {len(envs)} environments, the manager has {self._env_num}"
            )
        self._seeds = {int(i): tuple(seed) for i, seed in state_dict["seeds"].items()}
        if envs is None:
            return
        if self._closed:
            self._saved_state = envs
        else:
            self._load_env_states(envs)
            self.reset(dict.fromkeys(range(self._env_num)))

    def __getattr__(self, name: str) -> Any:
        # Public attributes of the environments, as a list over them.
        if name.startswith("_") or self.__dict__.get("_closed", True):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._gather_attribute(name)

    # ---- what a subclass that runs its environments elsewhere replaces --------------------------

    def _start(self) -> None:
        self._group = EnvGroup(dict(enumerate(self._env_fn)), self._settings)
        self._env_states = self._group.states
        self._group.seed(self._seeds)
        self._group.save_replays(self._env_replay_path)
        self._group.build()

    def _stop(self) -> None:
        if self._group is not None:
            self._group.close()

    def _restart(self, params: Mapping[int, dict | None], recount: bool) -> dict[int, Any]:
        """Reset environments; first observations of those that did not write them already."""
        group, store = self._group, self._store
        if store is None:
            # Copied at once: environments may share what they hand out.
            return {i: copy.deepcopy(group.restart(i, p, recount)) for i, p in params.items()}
        for env_id, param in params.items():
            self._write_first(env_id, group.restart(env_id, param, recount))
        return {}

    def _step_envs(
        self, ids: list[int], actions: Sequence[Any], want_rows: bool
    ) -> tuple[VectorStep, Rows]:
        """Step `ids`; ``Rows`` may be empty unless they are wanted."""
        group, store = self._group, self._store
        self._step_count += 1
        step = group.step(ids, list(actions))
        try:
            obs = store.write_step(ids, step.obs)
        except DataError:
            if not want_rows:
                raise
            store = self._store = obs_store.as_objects(store, self._env_num)
            obs = store.write_step(ids, step.obs)
        if step.ended:
            obs = obs_store.copy_columns(obs)
            fresh = group.start_next(ids, step)
            for position, first in fresh.items():
                self._write_first(ids[position], first)
            if len(fresh) < len(step.ended):
                self._note_ready()
        rows = list(zip(step.rewards, step.infos)) if want_rows else ()
        return vector_step(self._id_array(ids), obs, step, strict=not want_rows), rows

    def _await_ready(self) -> None:
        """Return when some environment waits for an action, or none will."""

    def _seed_envs(self, seeds: Mapping[int, tuple[int, bool | None]]) -> None:
        self._group.seed(seeds)

    def _save_replays(self, paths: Mapping[int, str]) -> None:
        self._group.save_replays(paths)

    def _call(self, env_id: int, name: str, args: tuple = ()) -> Any:
        return self._group.call(env_id, name, args)

    def _gather_attribute(self, name: str) -> list[Any]:
        envs = self._group.envs
        if not any(hasattr(env, name) for env in envs.values()):
            raise AttributeError(f"neither {type(self).__name__} nor its environments have {name}")
        return [getattr(envs[env_id], name, None) for env_id in range(self._env_num)]

    def _env_state_dicts(self) -> dict[int, dict[str, Any]]:
        return self._group.state_dict()

    def _load_env_states(self, states: Mapping[int, Mapping[str, Any]]) -> None:
        self._group.load_state_dict(states)

    # ---- inside -------------------------------------------------------------------------------

    def _forget_envs(self) -> None:
        self._group: EnvGroup | None = None
        self._store: obs_store.ColumnStore | obs_store.ObjectStore | None = None
        self._check_actions: Callable | None = None
        self._all_ids = _constant(range(self._env_num))
        self._ready_ids = _constant([])

    def _make_store(self, first: Mapping[int, Any]) -> Any:
        store = obs_store.store_for([first[env_id] for env_id in range(self._env_num)])
        for env_id in first:
            self._check_first(env_id, store.row(env_id))
        return store

    def _write_first(self, env_id: int, obs: Any) -> None:
        try:
            self._store.write(env_id, obs)
        except DataError:
            self._store = obs_store.as_objects(self._store, self._env_num)
            self._store.write(env_id, obs)
        self._check_first(env_id, obs)

    def _check_first(self, env_id: int, obs: Any) -> None:
        if obs_store.nan_position([obs]) is not None:
            raise bad_data(env_id, "an observation with NaN", self._step_count)

    def _note_ready(self) -> None:
        ids = [i for i, state in self._env_states.items() if state == EnvState.RUN]
        self._ready_ids = self._all_ids if len(ids) == self._env_num else _constant(ids)

    def _id_array(self, ids: list[int]) -> np.ndarray:
        if len(ids) == self._env_num and ids[0] == 0 and ids[-1] == self._env_num - 1:
            return self._all_ids
        return np.array(ids, np.int64)

    def _require_launched(self) -> None:
        if self._closed:
            raise EnvError("the env manager is closed or was not launched yet; call launch() first")

    def _require_ready(self, ids: Any) -> None:
        ready = set(self._ready_ids.tolist())
        given = [int(env_id) for env_id in ids]
        for env_id in given:
            if env_id not in ready:
                state = self._env_states.get(env_id)
                why = "there is no such environment" if state is None else f"it is in {state!r}"
                raise EnvError(
                    f"env {env_id} does not wait for an action: {why}; step only environments "
                    "that ready_obs or ready_columns showed, and reset() those that need it",
                    env_id,
                )
        if len(set(given)) < len(given):
            raise EnvError(f"an environment cannot be stepped twice at once: {given}")

    def _column_store(self) -> obs_store.ColumnStore:
        self._require_launched()
        if self._store.layout is None:
            raise DataError(
                "the observations are not arrays of one shape and dtype, or dicts of such; use "
                "ready_obs and step()"
            )
        return self._store

    def _space(self, name: str) -> Any:
        if name not in self._spaces:
            env = self._group.envs[0] if self._group is not None else self.env_ref
            self._spaces[name] = _find_space(env, name)
        return self._spaces[name]


@ENV_MANAGER_REGISTRY.register("base_v2")
class BaseEnvManagerV2(BaseEnvManager, columns_fit_rows=True):
    """The base manager with stacked observations and lists of timesteps."""

    @property
    def ready_obs(self) -> np.ndarray:  # type: ignore[override]
        """Stacked observations of the environments in ``ready_obs_id``."""
        return stacked_ready_obs(super().ready_obs)

    def step(self, actions: list[np.ndarray]) -> list[BaseEnvTimestep]:  # type: ignore[override]
        """Step the environments in ``ready_obs_id``.

        Args:
            actions: One for each of them, in their order; or a dict by env id.

        Returns:
            Timesteps with ``env_id``.
        """
        return with_env_ids(super().step(actions_by_id(actions, self.ready_obs_id)))


def create_env_manager(manager_cfg: EasyDict, env_fn: list[Callable]) -> BaseEnvManager:
    """The env manager that ``manager_cfg.type`` names, not launched yet.

    Raises:
        UnknownTypeError: No such type is registered.
    """
    return get_env_manager_cls(manager_cfg)(env_fn=env_fn, cfg=manager_cfg)


def get_env_manager_cls(cfg: EasyDict) -> type:
    """The class registered as ``cfg.type``, after importing ``cfg.import_names``."""
    import_module(cfg.get("import_names", []))
    return ENV_MANAGER_REGISTRY.get(cfg["type"])


def _constant(ids: Sequence[int]) -> np.ndarray:
    array = np.array(ids, np.int64)
    array.setflags(write=False)
    return array


def _find_space(env: Any, name: str) -> Any:
    try:
        return getattr(env, name)
    except AttributeError:
        if name == "reward_space":
            return None
    env.reset()  # some environments know their spaces only then
    return getattr(env, name)

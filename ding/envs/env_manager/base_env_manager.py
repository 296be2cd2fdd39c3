"""Many environments stepped as one, in this process; the base of all env managers."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.envs.env.base_env import BaseEnvTimestep
from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._action_check import batch_check, check_one, check_players
from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import (
    EnvState,
    Seed,
    close_quietly,
)
from ding.envs.env_manager._requests import SPACES, Asked, EnvRequests, find_space
from ding.envs.env_manager._settings import (
    group_settings,
    merged_config,
    spread,
)
from ding.envs.env_manager._stacked import (
    EnvIdTimestep,
    actions_by_id,
    stacked_ready_obs,
    with_env_ids,
)
from ding.envs.env_manager._steps import Rows, check_step, timesteps, vector_step
from ding.envs.env_manager._timeout import timeout_wrapper
from ding.envs.vector_step import PlayerActions, VectorStep
from ding.utils import ENV_MANAGER_REGISTRY, import_module
from ding.utils.class_config import class_config
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
class BaseEnvManager(EnvRequests):
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
        step_timeout: Seconds that a step may take. ``None``, or infinity: any time, as far as the
            manager goes; a pipeline gives up after some time all the same unless it is infinity.
        reset_timeout: Seconds that a reset may take, likewise.
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
    # Unset before the launch; every use follows a check that there was one.
    _group: Any
    _store: Any
    _check_actions: Callable | None
    _ready_ids: np.ndarray
    _ready_list: list[int]
    #: Whether a step answers for just those environments that it was given actions for.
    in_lockstep = True
    #: Whether environments that a step has no action for are stepped, too.
    steps_all = False

    def __init_subclass__(cls, columns_fit_rows: bool = False, **kwargs: Any) -> None:
        # A subclass that changes what a step does, but only in the dict API, must not be
        # bypassed by callers that prefer columns.
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if not columns_fit_rows and ("step" in own or "ready_obs" in own):
            cls._columns_fit_rows = "step_columns" in own

    @classmethod
    def default_config(cls) -> EasyDict:
        """Defaults of this class, merged over those of its base classes."""
        return class_config(cls)

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
        self._settings = group_settings(self._cfg)
        self._env_ref: Any = None
        self._spaces: dict[str, Any] = {}
        self._env_states = dict.fromkeys(range(self._env_num), EnvState.VOID)
        self._seeds: dict[int, Seed] = {}
        self._env_replay_path: dict[int, str] = {}
        self._saved_state: Sequence[Any] | None = None
        self._step_count = 0
        #: How often `reset` was called; whoever follows episodes sees that they were cut short.
        self.reset_count = 0
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
        self.reset_count += 1
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
        self._end(wait=True)

    def abandon(self) -> None:
        """Close all environments without waiting for those that are at work."""
        self._end(wait=False)

    def _end(self, wait: bool) -> None:
        if self._closed and self._env_ref is None:
            return
        self._closed = True
        self._stop(wait)
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
    def ready_obs_changes(self) -> bool:
        """Whether what ``ready_obs`` gives is written over by later steps."""
        return False

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
        ids = self._ready_ids
        return ids, store.view() if len(ids) == self._env_num else store.gather(ids)

    def step_columns(self, actions: np.ndarray, env_ids: np.ndarray) -> VectorStep:
        """Step environments that wait for an action.

        Args:
            actions: ``[n, *action_shape]``; ``PlayerActions`` in battles.
            env_ids: ``[n]``, as from ``ready_columns``.

        Raises:
            ActionError: An action that the space does not contain; nothing was stepped.
            EnvError: An environment failed.
            DataError: NaN or infinity in rewards, NaN in observations.
        """
        store = self._store
        if store is None or store.layout is None:
            self._column_store()  # says what is wrong
        if env_ids is self._ready_ids and self._ready_list:
            ids = self._ready_list
        else:
            ids = [int(env_id) for env_id in env_ids]
            self._require_ready(ids)
        if len(actions) != len(ids):
            raise DataError(f"{len(actions)} actions came for {len(ids)} environments")
        if isinstance(actions, PlayerActions):
            actions = check_players(self.action_space, actions, ids)
        elif ids:
            if self._check_actions is None:
                self._check_actions = batch_check(self.action_space)
            actions = self._check_actions(np.asarray(actions), ids)
        step, _ = self._step_envs(ids, actions, want_rows=False)
        return check_step(step, self._store, self._step_count)

    # ---- dicts --------------------------------------------------------------------------------

    @property
    def ready_obs(self) -> dict[int, Any]:
        """Env id to observation of the environments that wait for an action."""
        self._require_launched()
        return {env_id: self._store.row(env_id) for env_id in self._ready_list}

    @property
    def ready_obs_id(self) -> list[int]:  # type: ignore[override]
        """Ids of the environments that wait for an action."""
        self._require_launched()
        return list(self._ready_list)

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
        if not actions and not self._in_flight():
            return {}
        ids = sorted(actions)
        self._require_ready(ids)
        space = self.action_space
        for env_id in ids:
            check_one(space, env_id, actions[env_id])
        step, rows = self._step_envs(ids, [actions[env_id] for env_id in ids], want_rows=True)
        return timesteps(check_step(step, self._store, self._step_count), rows)

    @property
    def done(self) -> bool:
        """Whether all environments have played their ``episode_num`` episodes."""
        return all(state == EnvState.DONE for state in self._env_states.values())

    def env_state_done(self, env_id: int) -> bool:
        return self._env_states[env_id] == EnvState.DONE

    # ---- what a subclass that runs its environments elsewhere replaces --------------------------

    def _start(self) -> None:
        self._group = EnvGroup(dict(enumerate(self._env_fn)), self._settings)
        self._env_states = self._group.states
        self._group.seed(self._seeds)
        self._group.save_replays(self._env_replay_path)
        self._group.build()
        for name in SPACES:
            self._spaces[name] = find_space(self._group.envs[0], name)

    def _stop(self, wait: bool) -> None:
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

    def _step_envs(self, ids: list[int], actions: Any, want_rows: bool) -> tuple[VectorStep, Rows]:
        """Step `ids`; ``Rows`` may be empty unless they are wanted."""
        group = self._group
        self._step_count += 1
        step = group.step(ids, actions, want_rows)
        obs = self._store_rows(ids, step.obs, want_rows)
        if step.ended:
            obs = obs_store.copy_columns(obs)
            fresh = group.start_next(ids, step)
            for position, first in fresh.items():
                self._write_first(ids[position], first)
            if len(fresh) < len(step.ended):
                self._note_ready()
        rows = list(zip(step.rewards, step.infos)) if want_rows else ()
        id_array = self._all_ids if ids is self._all_id_list else self._id_array(ids)
        return vector_step(id_array, obs, step, strict=not want_rows), rows

    def _in_flight(self) -> Sequence[int]:
        """Environments whose step is under way; only a manager that does not wait has any."""
        return ()

    def _groups(self) -> Sequence[Asked]:
        return [] if self._group is None else [self._group]

    def _group_of(self, env_id: int) -> Asked:
        self._require_launched()
        return self._group

    # ---- inside -------------------------------------------------------------------------------

    def _forget_envs(self) -> None:
        self._group = None
        self._normalises = None
        self._store = None
        self._check_actions = None
        self._all_id_list = list(range(self._env_num))
        self._all_ids = _constant(self._all_id_list)
        self._set_ready([])

    def _make_store(self, first: Mapping[int, Any]) -> Any:
        return obs_store.store_for([first[env_id] for env_id in range(self._env_num)])

    def _store_rows(self, ids: list[int], observations: Sequence[Any], may_differ: bool) -> Any:
        """Store a step's observations; those of the dict API may change their shapes."""
        try:
            return self._store.write_step(ids, observations)
        except DataError:
            if not self._widen_store(observations):
                if not may_differ:
                    raise
                self._store = obs_store.as_objects(self._store, self._env_num)
            return self._store.write_step(ids, observations)

    def _write_first(self, env_id: int, obs: Any) -> None:
        try:
            self._store.write(env_id, obs)
        except DataError:
            if not self._widen_store([obs]):
                self._store = obs_store.as_objects(self._store, self._env_num)
            self._store.write(env_id, obs)

    def _widen_store(self, observations: Sequence[Any]) -> bool:
        """Whether the store takes observations now that did not fit its dtypes."""
        wide = obs_store.widened(self._store, observations)
        if wide is not None:
            self._store = wide
        return wide is not None

    def _note_ready(self) -> None:
        self._set_ready([i for i, state in self._env_states.items() if state == EnvState.RUN])

    def _set_ready(self, ids: list[int]) -> None:
        all_ready = len(ids) == self._env_num
        self._ready_list = self._all_id_list if all_ready else ids
        self._ready_ids = self._all_ids if all_ready else _constant(ids)

    def _is_full(self, ids: list[int]) -> bool:
        """Whether `ids`, which do not repeat, are all environments, in order."""
        return ids is self._all_id_list or ids == self._all_id_list

    def _id_array(self, ids: list[int]) -> np.ndarray:
        return self._all_ids if self._is_full(ids) else np.array(ids, np.int64)

    def _require_launched(self) -> None:
        if self._closed:
            raise EnvError("the env manager is closed or was not launched yet; call launch() first")

    def _require_ready(self, ids: Any) -> None:
        ready, given = set(self._ready_list), list(ids)
        for env_id in given:
            if env_id not in ready:
                state = self._env_states.get(env_id)
                why = "there is no such environment" if state is None else f"it is in {state!r}"
                raise EnvError(
                    f"env {env_id} does not wait for an action: {why}; step only environments "
                    "that ready_obs or ready_columns showed, and reset() those that need it",
                    env_id,
                )
        if not given and not self._in_flight():
            raise EnvError("no environment was named; all are done, or wait for a reset()")
        if len(set(given)) < len(given):
            raise EnvError(f"an environment cannot be stepped twice at once: {given}")

    def _column_store(self) -> obs_store.ObsColumns:
        self._require_launched()
        if self._store.layout is None:
            raise DataError(
                "the observations are not arrays of one shape and dtype, or dicts of such; use "
                "ready_obs and step()"
            )
        return self._store


@ENV_MANAGER_REGISTRY.register("base_v2")
class BaseEnvManagerV2(BaseEnvManager, columns_fit_rows=True):
    """The base manager with stacked observations and lists of timesteps."""

    @property
    def ready_obs(self) -> np.ndarray:  # type: ignore[override]
        """Stacked observations of the environments in ``ready_obs_id``."""
        return stacked_ready_obs(super().ready_obs)

    def step(self, actions: list[np.ndarray]) -> list[EnvIdTimestep]:  # type: ignore[override]
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
    return ENV_MANAGER_REGISTRY.get(cfg["type"])  # type: ignore[return-value]


def _constant(ids: Sequence[int]) -> np.ndarray:
    array = np.array(ids, np.int64)
    array.setflags(write=False)
    return array

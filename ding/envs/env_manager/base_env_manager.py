"""Many environments stepped as one, in this process; the base of all env managers."""

import copy
from collections import namedtuple
from collections.abc import Mapping, Sequence

import numpy as np
from easydict import EasyDict

from ding.envs.env.base_env import BaseEnvTimestep
from ding.envs.env_manager import _obs_store as obs_store
from ding.envs.env_manager._action_check import ActionCheck
from ding.envs.env_manager._env_group import EnvGroup
from ding.envs.env_manager._env_types import (
    EnvState,
    GroupSpec,
    by_env_id,
    close_quietly,
    group_settings,
    merged_config,
    offers,
)
from ding.envs.env_manager._requests import EnvRequests
from ding.envs.env_manager._runner import EnvRunner, GroupStep, vector_step
from ding.envs.vector_step import Action, Actions, EnvFn, Obs, Reward, VectorStep
from ding.utils import ENV_MANAGER_REGISTRY, import_module
from ding.utils.default_helper import Configurable
from ding.utils.errors import DataError, EnvError
from ding.utils.time_helper import timeout_wrapper
from ding.utils.types import Config, Settings

__all__ = [
    "BaseEnvManager",
    "BaseEnvManagerV2",
    "EnvState",
    "create_env_manager",
    "get_env_manager_cls",
    "timeout_wrapper",
]

EnvIdTimestep = namedtuple("EnvIdTimestep", ["obs", "reward", "done", "info", "env_id"])


@ENV_MANAGER_REGISTRY.register("base")
class BaseEnvManager(Configurable, EnvRequests):
    """Vectorised environments, stepped one after the other in the calling process.

    Two APIs over the same machinery: dicts by env id (``ready_obs``, ``step``) and columns
    (``ready_columns``, ``step_columns``). An environment whose episode is done is reset by the
    manager at once, until it has played ``episode_num`` episodes.

    Config keys:
        episode_num: Episodes that each environment plays before it is done for good.
        auto_reset: Whether the manager resets an environment whose episode ended.
        max_retry: Tries per reset, and steps in a row that fail before that is an error; until
            then, the timestep of a step that fails has ``info['abnormal']`` and the first
            observation of a new episode.
        retry_type: ``reset`` the environment or ``renew`` it: close it and make another.
        retry_waiting_time: Seconds between tries.
        step_timeout: Seconds that a step may take. ``None`` sets no limit in the manager; pipelines
            give up after some time unless it is infinity.
        reset_timeout: Seconds that a reset may take, in the same way.

    Args:
        env_fn: A function for each environment, which makes it.
        cfg: The keys above; defaults for those that are left out.

    Example:

        >>> from ding.envs import BaseEnvManager, DingEnvWrapper
        >>> envs = BaseEnvManager([lambda: DingEnvWrapper(cfg={"env_id": "CartPole-v1"})] * 2)
        >>> envs.seed(0)
        >>> envs.launch()
        >>> sorted(envs.ready_obs)
        [0, 1]
        >>> envs.step({0: 1, 1: 0})[0].done
        False
        >>> envs.close()
    """

    config: Config = {
        "episode_num": float("inf"),
        "max_retry": 1,
        "retry_type": "reset",
        "auto_reset": True,
        "step_timeout": None,
        "reset_timeout": None,
        "retry_waiting_time": 0.1,
    }
    #: Whether a step returns exactly those environments that it was given actions for.
    in_lockstep = True

    def __init__(self, env_fn: list[EnvFn], cfg: EasyDict = EasyDict({})) -> None:
        super().__init__(env_fn, merged_config(self.default_config(), cfg, env_fn))
        self._settings = group_settings(self._cfg)
        self._action_check: ActionCheck  # from the launch on
        self._step_count = 0
        self._zero_reward: Reward = None
        self._store: obs_store.ObsColumns | None = None  # from the first reset on
        self._all_list = list(range(self._env_num))
        self._note_ready()
        #: How often each environment was reset but for steps, int64 ``[env_num]``, another array
        #: after each time: collectors see that an episode was cut short.
        self.reset_counts = np.zeros(self._env_num, np.int64)

    # ---- life ---------------------------------------------------------------------------------

    def launch(self, reset_param: dict[int, Config] | None = None) -> None:
        """Make the environments and `reset` them.

        Raises:
            EnvError: An environment cannot be made or reset; everything is closed again.
        """
        if self._runner is not None:
            raise EnvError("the env manager is launched already; close() it before another launch")
        try:
            self._start(self._make_runner())
            # Before the first reset, whose seeds it decides.
            if self._saved_state is not None:
                self._launched().load_state_dict(self._saved_state)
                self._saved_state = None
            self.reset(reset_param)
        except BaseException:
            self.close()
            raise

    def _start(self, runner: EnvRunner) -> None:
        self._runner, self._store = runner, None
        self._spaces.update(runner.start())
        self._action_check = ActionCheck(self.action_space)

    def _make_runner(self) -> EnvRunner:
        """What runs the environments until the manager is closed."""
        return EnvGroup(self._group_spec())

    def _group_spec(self) -> GroupSpec:
        env_fns = dict(enumerate(self._env_fn))
        return GroupSpec(env_fns, self._settings, self._seeds, self._env_replay_path)

    def reset(self, reset_param: dict[int, Config] | None = None) -> None:
        """Start new episodes.

        Args:
            reset_param: Env id to keyword arguments of its ``reset`` (kept for its later resets)
                or ``None``; only these environments are reset. Without it, all are, and their
                episodes are counted again.

        Raises:
            EnvError: An environment cannot be reset.
        """
        runner = self._launched()
        try:
            params = dict.fromkeys(self._all_list) if reset_param is None else reset_param
            params = by_env_id(params, self._env_num, "reset_param")
            self._count_resets(list(params))
            step = runner.restart(params, recount=reset_param is None)
            self._count_resets(step.cut)
            if self._store is not None or step.error is None:
                self._take_first(step.first)
        finally:
            self._note_ready()
        if step.error is not None:
            raise step.error

    def close(self) -> None:
        """Close all environments. May be called at any time, more than once."""
        self._close(wait=True)

    def abandon(self) -> None:
        """Close all environments without waiting for those that are at work."""
        self._close(wait=False)

    def _close(self, wait: bool) -> None:
        runner, self._runner, self._store = self._runner, None, None
        if runner is not None:
            runner.stop(wait)
        if self._reference is not None:
            ref, self._reference = self._reference, None
            close_quietly(ref, "env_ref")

    @property
    def closed(self) -> bool:
        """Whether no environment runs: before ``launch`` and after ``close``."""
        return self._runner is None

    # ---- columns ------------------------------------------------------------------------------

    @property
    def steps_all(self) -> bool:
        """Whether a step also steps environments without an action: reset these before use."""
        return self._runner is not None and self._runner.steps_all

    @property
    def supports_columns(self) -> bool:
        """Whether, once launched, it offers ``ready_columns`` and ``step_columns``.

        It does if observations are arrays of one shape, or nested dicts of such, and no subclass
        overrides the dict API alone.
        """
        return offers(self, "step_columns", "step", "ready_obs") and self._observed().is_columnar

    def ready_columns(self) -> tuple[np.ndarray, Obs]:
        """Ids and observations of the environments that wait for an action.

        Returns:
            int64 ``[n]``, and ``[n, *obs_shape]`` or nested dicts of such, which are not written to
            again.
        """
        store, ids = self._observed(in_columns=True), self._ready_ids
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
        self._observed(in_columns=True)
        ids = np.asarray(env_ids, np.int64).tolist()
        if ids != self._ready_list or not ids:
            self._require_ready(ids)
        if len(actions) != len(ids):
            raise DataError(f"{len(actions)} actions came for {len(ids)} environments")
        if ids:
            actions = self._action_check.batch(np.asanyarray(actions), ids)
        return self._step_runner(ids, actions)[0]

    # ---- dicts --------------------------------------------------------------------------------

    @property
    def ready_obs(self) -> dict[int, Obs]:
        """Observations of the environments that wait for an action, by env id."""
        rows = obs_store.each_row(self._observed().gather(self._ready_ids))
        return dict(zip(self._ready_list, rows))

    @property
    def ready_obs_id(self) -> list[int]:  # type: ignore[override]
        """Ids of the environments that wait for an action."""
        self._launched()
        return list(self._ready_list)

    def step(self, actions: dict[int, Action]) -> dict[int, BaseEnvTimestep]:
        """Step environments that wait for an action, by env id; raises as `step_columns`.

        Returns:
            The timesteps by env id; observations and rewards are copies.
        """
        runner = self._launched()
        if not actions and not runner.in_flight:
            return {}
        ids = sorted(actions)
        self._require_ready(ids)
        for env_id in ids:
            self._action_check.one(env_id, actions[env_id])
        vector, step = self._step_runner(ids, [actions[env_id] for env_id in ids], rows=True)
        observations = obs_store.each_row(obs_store.take_rows(vector.obs, range(len(step.ids))))
        rows = zip(step.ids, observations, step.rewards, vector.done.tolist(), step.infos)
        return {
            env_id: BaseEnvTimestep(obs, copy.copy(reward), done, info)
            for env_id, obs, reward, done, info in rows
        }

    @property
    def done(self) -> bool:
        """Whether all environments have played their ``episode_num`` episodes."""
        return all(map(self.env_state_done, self._all_list))

    def env_state_done(self, env_id: int) -> bool:
        """Whether the environment has finished all its episodes."""
        return self._runner is not None and self._runner.states[env_id] == EnvState.DONE

    # ---- inside -------------------------------------------------------------------------------

    def _step_runner(
        self, ids: list[int], actions: Actions, rows: bool = False
    ) -> tuple[VectorStep, GroupStep]:
        """Step environments: their answers in columns, and as they gave them."""
        self._step_count += 1
        runner = self._launched()
        try:
            step = runner.step(ids, actions, rows)
        except Exception:
            self._note_ready()
            raise
        if step.abnormal or self._zero_reward is None:
            # A failed environment has no reward: zeros of the others' shape keep the column whole.
            given = (reward for reward in step.rewards if reward is not None)
            zero = self._zero_reward = np.zeros_like(next(given, self._zero_reward), np.float32)
            step.rewards = [
                zero if reward is None and env_id in step.abnormal else reward
                for env_id, reward in zip(step.ids, step.rewards)
            ]
        self._count_resets(step.cut)
        obs = self._observed().put(list(step.ids), step.obs, may_differ=rows)
        if step.first:
            self._take_first(step.first)
        if step.ended or step.first or not self.in_lockstep:
            self._note_ready()
        return vector_step(obs, step, self._step_count, strict=not rows), step

    def _take_first(self, first: Mapping[int, Obs]) -> None:
        """Store first observations; those of all environments make the store."""
        if self._store is not None:
            self._store.put(list(first), list(first.values()), may_differ=True)
            return
        some = next(iter(first.values()))  # if some alone were reset at the launch
        observations = [first.get(env_id, some) for env_id in self._all_list]
        self._store = obs_store.ObsColumns(observations, self.observation_space)

    def _count_resets(self, ids: Sequence[int]) -> None:
        if ids:
            # Another array each time: collectors compare identities, as they look in every step.
            self.reset_counts = self.reset_counts.copy()
            self.reset_counts[ids] += 1

    def _note_ready(self) -> None:
        """Note the ids of the environments that wait for an action, also as int64 ``[n]``."""
        self._ready_list = [] if self._runner is None else self._runner.ready()
        self._ready_ids = np.array(self._ready_list, np.int64)
        self._ready_ids.setflags(write=False)  # it is handed out

    def _require_ready(self, ids: list[int]) -> None:
        runner, ready = self._launched(), set(self._ready_list)
        for env_id in ids:
            if env_id not in ready:
                state = runner.states.get(env_id)
                why = "there is no such environment" if state is None else f"it is in {state!r}"
                raise EnvError(
                    f"env {env_id} does not wait for an action: {why}; step only environments "
                    "that ready_obs or ready_columns showed, and reset() those that need it",
                    env_id,
                )
        if not ids and not runner.in_flight:
            raise EnvError("no environment was named; all are done, or wait for a reset()")
        if len(set(ids)) < len(ids):
            raise EnvError(f"an environment cannot be stepped twice at once: {ids}")

    def _observed(self, in_columns: bool = False) -> obs_store.ObsColumns:
        """The environments' latest observations."""
        if self._store is None:
            self._launched()
            raise EnvError("no environment has begun an episode; call reset() first")
        if in_columns and not self._store.is_columnar:
            raise DataError(
                "the observations are not arrays of one shape and dtype, or dicts of such; use "
                "ready_obs and step()"
            )
        return self._store


@ENV_MANAGER_REGISTRY.register("base_v2")
class BaseEnvManagerV2(BaseEnvManager):
    """The base manager with stacked observations and lists of timesteps."""

    step_columns = BaseEnvManager.step_columns  # they fit what is overridden here

    @property
    def ready_obs(self) -> np.ndarray:  # type: ignore[override]
        """Observations of ``ready_obs_id``, stacked; an array of objects if they fit no columns."""
        return self._observed().gather(self._ready_ids)

    def step(  # type: ignore[override]
        self, actions: Sequence[np.ndarray] | Mapping[int, Action]
    ) -> list[EnvIdTimestep]:
        """Step the environments in ``ready_obs_id``; timesteps with ``env_id``.

        Args:
            actions: One for each of them, in their order; or a dict by env id.
        """
        if not isinstance(actions, Mapping):
            ids = self.ready_obs_id
            if len(actions) != len(ids):
                raise DataError(
                    f"{len(actions)} actions came for the {len(ids)} ready environments {ids}"
                )
            actions = dict(zip(ids, actions))
        return [
            EnvIdTimestep(*step, env_id) for env_id, step in super().step(dict(actions)).items()
        ]


def create_env_manager(manager_cfg: Settings, env_fn: list[EnvFn]) -> BaseEnvManager:
    """Build the env manager that ``manager_cfg.type`` names, not launched yet.

    Args:
        manager_cfg: ``type`` and the manager's keys.
        env_fn: A function for each environment, which makes it.

    Raises:
        UnknownTypeError: No manager of this type is registered.

    Example:

        >>> from ding.envs import DingEnvWrapper, create_env_manager
        >>> make_env = lambda: DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
        >>> create_env_manager({"type": "base"}, [make_env] * 2).env_num
        2
    """
    return get_env_manager_cls(manager_cfg)(env_fn=env_fn, cfg=manager_cfg)


def get_env_manager_cls(cfg: EasyDict) -> type:
    """The class registered as ``cfg.type``, after importing ``cfg.import_names``."""
    import_module(cfg.get("import_names", []))
    return ENV_MANAGER_REGISTRY.get(cfg["type"])  # type: ignore[return-value]

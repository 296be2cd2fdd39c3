"""Any single-agent gymnasium environment, or old gym one, as a `BaseEnv`."""

import copy
from collections.abc import Callable
from typing import Any, NoReturn

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.core import RenderFrame

from ding.envs.env_wrappers import (
    WRAPPER_KEYS,
    RawRewards,
    RecordReplayWrapper,
    TimeLimitWrapper,
    apply_env_wrappers,
    as_gymnasium,
    config_wrappers,
    raw_rewards,
    stateful_wrappers,
)
from ding.envs.env_wrappers.gym_to_gymnasium import FoundSpace
from ding.envs.env_wrappers.steps import FlattenActionWrapper, counts_otherwise
from ding.envs.vector_step import Action, AnyEnv, EnvStep, Info, Obs, Reward, Space
from ding.utils.default_helper import Configurable
from ding.utils.errors import ConfigError, EnvError
from ding.utils.import_helper import import_module
from ding.utils.types import Config, Settings, State

from ._make import current_id, env_name, make_gymnasium
from ._spaces import action_adapter, observation_adapter, scaled_space
from .answers import brief, step_fault
from .base_env import BaseEnv, BaseEnvTimestep, copy_env_cfg

_FLOAT32 = np.dtype(np.float32)
_SEED_LIMIT = 2**31


class DingEnvWrapper(Configurable, BaseEnv):
    """Adapter of a gymnasium or old gym environment to `BaseEnv`.

    ``reset()`` returns the observation alone, ``step()`` a ``BaseEnvTimestep`` with ``reward``
    float32 ``[1]`` and ``done = terminated or truncated``. Observations are float32, or uint8 for
    images; an array may be the inner environment's own, so copy it to keep it over
    a step (env managers do).

    At an episode's end ``info`` holds ``eval_episode_return`` (the undiscounted sum of the rewards
    before wrappers change them, unless the environment put it there), ``terminated`` and
    ``truncated``; an episode that terminates on its very last allowed step counts as terminated
    only.

    Config keys:
        env_id: An id that gymnasium knows; ``module:Name-v0`` imports the module first.
        kwargs: Passed on to ``gymnasium.make``.
        max_episode_steps: A time limit instead of the registered one. (``max_step``)
        env_wrapper: A preset's name, or a list whose items are registered names,
            ``{type, kwargs}`` or functions from env to env; the first is the innermost.
        act_scale: Actions come in ``[-1, 1]`` and are mapped to the bounds of the Box. Another name
            of it is ``use_act_scale``.
        clip_action: Actions beyond the bounds of the Box are clipped, not refused.
            (``action_clip``)
        replay_path: A folder for videos of the episodes. (``save_replay_path``)
        is_train: If false, collectors' environments are wrapped as evaluators' are.
        norm_obs, norm_reward, delay_reward_step, rew_clip, frame_stack,
            obs_plus_prev_action_reward: See `ding.envs.env_wrappers.config_wrappers`.
        caller: ``collector`` or ``evaluator``; set in the configs made by
            ``create_collector_env_cfg`` and ``create_evaluator_env_cfg``.

    Example:

        >>> from ding.envs import DingEnvWrapper
        >>> env = DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
        >>> env.seed(0)
        >>> env.reset().shape
        (4,)
        >>> env.step(env.random_action()).reward
        array([1.], dtype=float32)
    """

    config: Config = {
        "env_id": None,
        "kwargs": {},
        "max_episode_steps": None,
        "max_step": None,
        "env_wrapper": [],
        **WRAPPER_KEYS,
        "act_scale": False,
        "use_act_scale": False,
        "clip_action": False,
        "action_clip": False,
        "replay_path": None,
        "save_replay_path": None,
        "is_train": True,
    }

    def __init__(
        self,
        env: AnyEnv = None,
        cfg: Config | None = None,
        seed_api: bool = True,
        caller: str = "collector",
        is_gymnasium: bool = False,
    ) -> None:
        """
        Args:
            env: A gymnasium or old gym environment; ``None`` to make one from ``cfg.env_id``.
            cfg: See the class.
            seed_api: Whether the environment can be seeded.
            caller: ``collector`` or ``evaluator``: presets of wrappers shape rewards and episodes
                for training only.
            is_gymnasium: Accepted for old scripts; the API is recognised by its behaviour.
        """
        self._cfg = {} if cfg is None else cfg
        if env is None and not self._cfg.get("env_id"):
            raise ConfigError(
                "env.env_id is missing: name a gymnasium environment, as in "
                "env=dict(env_id='CartPole-v1'), or pass an environment"
            )
        self._given_env = env
        self._seed_api = seed_api
        self._caller = self._cfg.get("caller", caller)
        if not self._cfg.get("is_train", True):
            self._caller = "evaluator"
        self._replay_path: str | None = self._first_of("replay_path", "save_replay_path")
        self._limit: int | None = self._first_of("max_episode_steps", "max_step")
        self._act_scale = bool(self._first_of("act_scale", "use_act_scale"))
        self._clips_actions = bool(self._first_of("clip_action", "action_clip"))
        self._env: gymnasium.Env | None = None
        self._seed: int | None = None
        self._dynamic_seed = True
        self._seed_rng: np.random.Generator | None = None
        self._seed_is_due = True
        self._is_plain = self._has_one_stream = False  # as long as there is no environment
        #: What is added to choices, all or each, of environments made from ``cfg.env_id``.
        self.first_action: int | list[int] = 0
        self._episode_return: Reward = 0.0
        self._raw: RawRewards | None = None
        #: Where the environment that is built next continues: its generator and its wrappers.
        self._kept: State = {"stream": None, "wrappers": []}
        # Bound late: `step` looks them up instead of asking each time what state it is in.
        self._step_env: Callable[[Action], EnvStep] = self._step_before_reset
        self._to_action: Callable[[Action], Action] = lambda action: action
        self._to_obs: Callable[[Obs], Obs]

    # ---- episodes -----------------------------------------------------------------------------

    def reset(self, *, options: Config | None = None) -> np.ndarray:  # type: ignore[override]
        """Start an episode; `options` are passed on to the environment's own ``reset``."""
        env = self.build()
        kwargs: Config = {} if options is None else {"options": options}
        goes_on = self._dynamic_seed and self._has_one_stream and not self._seed_is_due
        if self._seed is not None and self._seed_api and not goes_on:
            rng, self._seed_is_due = self._seed_rng, False
            kwargs["seed"] = self._seed if rng is None else int(rng.integers(_SEED_LIMIT))
        try:
            result = env.reset(**kwargs)
        except TypeError as error:
            if "unexpected keyword argument" not in str(error):
                raise
            raise EnvError(
                f"{error}: define reset(self, *, seed=None, options=None), as in gymnasium"
            ) from error
        if not isinstance(result, tuple) or len(result) != 2:
            raise EnvError(
                f"reset() of env {env_name(env)!r} returned {brief(result)}, expected (obs, info): "
                "return obs, {}; if it has the old gym API, pass it in a GymToGymnasiumWrapper"
            )
        obs = result[0]
        self._episode_return = 0.0
        if self._raw is not None:
            self._raw.total = 0.0
        self._step_env = env.step
        return self._to_obs(obs)

    def step(self, action: Action) -> BaseEnvTimestep:
        """Take an action; ``ActionError`` for one that the action space does not contain."""
        obs, rew, terminated, truncated, info = self._fitted_step(action)
        self._episode_return += rew
        if type(rew) is float or isinstance(rew, (int, np.generic)):
            reward = np.empty(1, _FLOAT32)
            reward[0] = rew
        else:
            reward = np.asarray(rew, _FLOAT32).reshape(-1)
        done = bool(terminated or truncated)
        if done:
            info = self.final_info(info, bool(terminated), self._episode_return)
        return BaseEnvTimestep(obs, reward, done, info)

    def plain_step(self) -> Callable[[Action], EnvStep]:
        """What steps the environment until the next reset, with gymnasium's five results.

        Env managers take it in place of `step`, unless a subclass overrides that alone. They
        add up the rewards, as the environment gave them, and ask for `final_info`. With a
        Discrete action space and a Box of float32 observations it is the inner environment's own
        ``step``: callers check actions, which are ints, and cast observations to float32.
        """
        self.build()
        return self._step_env if self._is_plain else self._fitted_step

    def _fitted_step(self, action: Action) -> EnvStep:
        result = self._step_env(self._to_action(action))
        try:
            obs, rew, terminated, truncated, info = result
        except (TypeError, ValueError) as error:
            raise EnvError(step_fault(result, 5) or str(error)) from None
        return self._to_obs(obs), rew, terminated, truncated, info

    def final_info(self, info: Info, terminated: bool, episode_return: Reward) -> Info:
        """The last info of an episode, whose rewards add up to `episode_return`."""
        info = dict(info)  # the environment may keep its own
        info["terminated"] = terminated
        info["truncated"] = not terminated
        own = episode_return if self._raw is None else self._raw.total
        value: Reward = info.get("eval_episode_return", own)
        if type(value) is not float:
            value = np.asarray(value)
            value = float(value.item()) if value.size == 1 else value
        info["eval_episode_return"] = value
        return info

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        """Seed the episodes to come; without `dynamic_seed` all start from `seed` itself.

        gymnasium's own environments are seeded once, as they hold all of their random numbers in
        one generator; what others hold is not known, so each of their episodes is seeded.
        """
        self._seed, self._seed_is_due, self._kept["stream"] = int(seed), True, None
        self._dynamic_seed = dynamic_seed
        self._seed_rng = np.random.default_rng(self._seed) if dynamic_seed else None
        if self._env is not None:
            self._action_space.seed(self._seed)

    def render(self) -> RenderFrame | list[RenderFrame] | None:
        return self.build().render()

    def close(self) -> None:
        """Close the environment; one made from ``cfg.env_id`` is made again if it is needed."""
        if self._env is not None:
            self._env.close()
            self._step_env = self._step_before_reset
            if self._given_env is None:
                # Generator and statistics continue in the environment that is made next.
                self._kept, self._env = self._inner_state(), None

    def build(self) -> gymnasium.Env:
        """The gymnasium environment inside, with its wrappers; made if there is none yet."""
        if self._env is None:
            self._env = self._build()
        return self._env

    # ---- spaces -------------------------------------------------------------------------------

    @property
    def observation_space(self) -> Space:  # type: ignore[override]
        """Space of what ``reset`` and ``step`` return, after all wrappers."""
        self.build()
        return self._observation_space

    @property
    def action_space(self) -> Space:  # type: ignore[override]
        """The space of actions for `step`; with ``act_scale`` Boxes are ``[-1, 1]``."""
        self.build()
        return self._action_space

    @property
    def reward_space(self) -> Space:  # type: ignore[override]
        """Box of shape ``(1,)`` float32."""
        self.build()
        return self._reward_space

    # ---- configs, copies, state ---------------------------------------------------------------

    @staticmethod
    def create_collector_env_cfg(cfg: Config) -> list[Config]:
        return copy_env_cfg(cfg, "collector_env_num", caller="collector")

    @staticmethod
    def create_evaluator_env_cfg(cfg: Config) -> list[Config]:
        return copy_env_cfg(cfg, "evaluator_env_num", caller="evaluator")

    def enable_save_replay(self, replay_path: str | None = None) -> None:
        """Save a video of every episode from the next ``reset`` on in a folder, or ``./video``."""
        self._replay_path = "./video" if replay_path is None else str(replay_path)
        env = self._env
        if env is not None and self._given_env is None:
            self.close()
        elif env is not None:
            if isinstance(env, RecordReplayWrapper):
                env.finish()
                env = env.env
            self._env = RecordReplayWrapper(env, self._replay_path, env_name(self._given_env))
            self._step_env = self._step_before_reset

    def clone(self, caller: str = "collector") -> BaseEnv:
        """Another environment like this one, not started and without its seeds."""
        env = self._given_env
        if env is not None:
            try:
                env = copy.deepcopy(env)
            except TypeError as error:  # handles of C libraries
                if not isinstance(env, gymnasium.Env) or env.spec is None:
                    raise EnvError(
                        f"env {env_name(env)!r} cannot be cloned: {error}; make it from cfg.env_id"
                    ) from error
                env = gymnasium.make(env.spec)
        cfg = {**self._cfg, "caller": caller}
        return DingEnvWrapper(env, cfg, self._seed_api, caller)

    def vector_spec(self) -> tuple[str, Config] | None:
        """Id and arguments for gymnasium's own vector version, if that does the same."""
        cfg = self._cfg
        changes = self._act_scale or self._clips_actions or config_wrappers(cfg, self._caller)
        if self._given_env is not None or self._replay_path or changes:
            return None
        env = self.build()
        is_adapted = self.observation_space is not env.observation_space
        if is_adapted or counts_otherwise(env.unwrapped.action_space):
            return None
        env_id, own = current_id(cfg["env_id"])
        kwargs = {**own, **(cfg.get("kwargs") or {})}
        if self._limit is not None:
            kwargs["max_episode_steps"] = self._limit
        return env_id, kwargs

    def state_dict(self) -> State:
        """What the next episode depends on: random numbers, and the statistics of the wrappers."""
        return {
            "seed": self._seed,
            "dynamic_seed": self._dynamic_seed,
            "seed_rng": None if self._seed_rng is None else self._seed_rng.bit_generator.state,
            "seed_is_due": self._seed_is_due,
            **self._inner_state(),
        }

    def load_state_dict(self, state_dict: Settings) -> None:
        """Restore seeds and the wrappers' statistics; the next ``reset`` continues from them."""
        self._seed = state_dict["seed"]
        self._dynamic_seed = state_dict["dynamic_seed"]
        self._seed_rng = None
        if state_dict["seed_rng"] is not None:
            self._seed_rng = np.random.default_rng()
            self._seed_rng.bit_generator.state = state_dict["seed_rng"]
        # States of former versions, which seeded each episode, have neither.
        self._seed_is_due = state_dict.get("seed_is_due", True)
        self._kept = {"stream": state_dict.get("stream"), "wrappers": state_dict["wrappers"]}
        if self._env is not None:
            self._go_on(self._env)

    def __repr__(self) -> str:
        inner = self._cfg.get("env_id") if self._given_env is None else env_name(self._given_env)
        return f"{type(self).__name__}({inner})"

    __str__ = __repr__  # gymnasium.Env defines another one

    # ---- inside -------------------------------------------------------------------------------

    def _build(self) -> gymnasium.Env:
        cfg, limit = self._cfg, self._limit
        if self._given_env is None:
            kwargs = dict(cfg.get("kwargs") or {})
            if limit is not None:
                kwargs["max_episode_steps"] = limit
            if self._replay_path is not None:
                kwargs["render_mode"] = "rgb_array"
            import_module(cfg.get("import_names") or [])  # also in a process that was spawned
            env = make_gymnasium(cfg["env_id"], **kwargs)
        else:
            env = as_gymnasium(self._given_env)
            if limit is not None:
                env = TimeLimitWrapper(env, limit)
        name = cfg.get("env_id") or env_name(self._given_env)
        env = apply_env_wrappers(env, config_wrappers(cfg, self._caller))
        actions: FoundSpace = getattr(env, "action_space", None)
        if self._given_env is None and counts_otherwise(actions):
            env = FlattenActionWrapper(env)  # policies choose from 0 on
            if not isinstance(actions, spaces.MultiBinary):
                start = np.asarray(actions.start)
                self.first_action = start.ravel().tolist() if start.ndim else int(start)
        elif isinstance(actions, spaces.MultiDiscrete) and actions.shape == (1,):
            self.first_action = [0]  # an action is an array, unlike one of a Discrete space
        if self._replay_path is not None:
            env = RecordReplayWrapper(env, self._replay_path, name)
        self._raw = raw_rewards(env)
        self._set_spaces(env, name)
        actions, observations = env.action_space, env.observation_space
        self._is_plain = (
            isinstance(actions, spaces.Discrete)
            and actions.start == 0
            and isinstance(observations, spaces.Box)
            and observations.shape == self._observation_space.shape
            # What is no uint8 has to become so here: env managers would take what comes.
            and self._observation_space.dtype == _FLOAT32
        )
        self._has_one_stream = type(env.unwrapped).__module__.startswith("gymnasium.envs.")
        self._go_on(env)
        return env

    def _first_of(self, *names: str) -> Any:
        """The first value that is set of several names of a key."""
        return next((self._cfg[name] for name in names if self._cfg.get(name)), None)

    def _set_spaces(self, env: gymnasium.Env, name: str) -> None:
        examples = {"observation_space": "Box(-1, 1, (4,))", "action_space": "Discrete(2)"}
        for what, example in examples.items():
            space = getattr(env, what, None)
            if not isinstance(space, spaces.Space):
                raise EnvError(
                    f"env {name!r} has no {what} (it is {space!r}): set self.{what} in its "
                    f"__init__, to gymnasium.spaces.{example} for example"
                )
        space = env.action_space
        self._to_action = action_adapter(space, name, self._act_scale, self._clips_actions)
        if self._act_scale:
            space = scaled_space(space)
        if self._seed is not None:
            # `random_action` draws from the space's own generator.
            space.seed(self._seed)
        self._action_space = space
        self._observation_space, self._to_obs = observation_adapter(env.observation_space, name)
        low, high = getattr(env, "reward_range", None) or (-np.inf, np.inf)
        self._reward_space = spaces.Box(float(low), float(high), shape=(1,), dtype=np.float32)

    def _inner_state(self) -> State:
        """``stream`` is the state of its one generator, if it is known to have no other."""
        if self._env is None:
            return self._kept
        generator = vars(self._env.unwrapped).get("_np_random") if self._has_one_stream else None
        return {
            "stream": None if generator is None else generator.bit_generator.state,
            "wrappers": [wrapper.state_dict() for wrapper in stateful_wrappers(self._env)],
        }

    def _go_on(self, env: gymnasium.Env) -> None:
        """Restore the state that was kept of an environment before this one."""
        stream, states = self._kept.values()
        self._kept = {"stream": None, "wrappers": []}
        wrappers = stateful_wrappers(env)
        if states and len(wrappers) != len(states):
            raise ConfigError(
                f"the saved state is of {len(states)} wrappers with state, but env.env_wrapper now "
                f"has {len(wrappers)}; use the config that was saved with it"
            )
        for wrapper, state in zip(wrappers, states):
            wrapper.load_state_dict(state)
        if stream is not None:
            env.unwrapped.np_random.bit_generator.state = stream

    def _step_before_reset(self, action: Action) -> NoReturn:
        raise EnvError(f"{self!r} was stepped before its first reset; call reset() first")

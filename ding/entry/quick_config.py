"""A config for an environment and a policy, without a config file.

The settings are those of the package's configs: of the same environment if there is one for it,
otherwise of the same policy in the most similar environment.
"""

import copy
import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.spaces import Space

import ding
from ding.config.parts import SOURCES, default_config
from ding.config.read import read_config_directly
from ding.config.save import plain
from ding.envs import GymnasiumEnv
from ding.envs.env._make import (
    ALE,
    MINIGRID,
    MUJOCO,
    Simulator,
    current_id,
    make_gymnasium,
    simulator_of,
)
from ding.policy.fit import KINDS, action_space_of, check_kind, model_shapes, policies_for
from ding.utils import ENV_REGISTRY, POLICY_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.settings import at
from ding.utils.types import Config

_PACKAGE = Path(ding.__file__).resolve().parent
#: Wheels contain the configs inside the package, the repository next to it.
_FOLDERS = (_PACKAGE / "configs", _PACKAGE.parent / "configs")
_DISCOUNTS = ("discount_factor", "learn.discount_factor", "collect.discount_factor")
_COUNTS = ("collector_env_num", "evaluator_env_num", "n_evaluator_episode")
#: Keys of a shipped config's environments that do not change the task.
_ENV_KEYS = (*_COUNTS, "act_scale", "frame_stack", "norm_obs", "norm_reward", "rew_clip")
#: Keys that policies do not take from another policy's config.
_TASKS_OWN = ("obs_shape", "action_shape", "action_space", "nstep", "priority", *_DISCOUNTS[:1])
#: A replay buffer below this size depends on the size of collections, and is kept with it.
_LARGE_BUFFER = 10_000


@dataclass(frozen=True)
class Shipped:
    """A config of the package: facts from its file name and contents."""

    name: str
    main: Config
    create: Config

    @property
    def policy(self) -> str:
        return str(self.create["policy"]["type"])

    @property
    def env_type(self) -> str:
        return str(self.create["env"]["type"])

    @property
    def simulator(self) -> Simulator | None:
        return simulator_of(str(self.main["env"].get("env_id")))

    @property
    def kind(self) -> str:
        """One of `KINDS`; several discrete actions count as one."""
        policy = self.main["policy"]
        model = policy.get("model") or {}
        words = {policy.get("action_space"), model.get("action_space")}
        served = _served(self.policy)
        if policy.get("multi_agent") or "agent_num" in model:
            return "multi-agent"
        if "hybrid" in words or served == ("hybrid",):
            return "hybrid"
        is_real = words & {"continuous", "regression", "reparameterization"}
        return "continuous" if is_real or "discrete" not in served else "discrete"

    def is_of(self, env: str) -> bool:
        """Whether its environment has this id or this built-in type."""
        env_id = self.main["env"].get("env_id")
        return env == env_id if env_id else env == self.env_type


@functools.cache
def shipped_configs() -> tuple[Shipped, ...]:
    """The configs that train without a reward model, without those of parallel runs."""
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[0])
    found = []
    for path in sorted(folder.glob("*/*_config.py")):
        names = plain(read_config_directly(os.fspath(path)))
        main, create = names["main_config"], names["create_config"]
        if not ({"reward_model", "bco"} & set(main) or "sqil" in path.stem):
            found.append(Shipped(path.stem.removesuffix("_config"), main, create))
    return tuple(found)


def trainable(kind: str | None = None) -> list[str]:
    """Types of policies that learn by acting, for all kinds of actions or one."""
    names = {name for one in KINDS if one == (kind or one) for name in policies_for(one)}
    return sorted(name for name in names if not source_of(name))


def source_of(policy: str) -> str:
    """The data source that a policy needs in addition to an environment; empty if none."""
    return SOURCES.get(pipeline_of(policy), "")


def pipeline_of(policy: str) -> str:
    """Command-line mode that trains a policy; empty if the policy implies it."""
    return str(getattr(POLICY_REGISTRY.get(policy), "pipeline", ""))


def quick_config(
    env_id: str | None, policy: str | None = None, any_source: bool = False
) -> tuple[Config, Config]:
    """``main_config`` and ``create_config`` that train ``policy`` in ``env_id``.

    Shapes come from the environment's spaces, ``stop_value`` from its registered threshold or the
    package's config for it; without one, training ends at a limit.

    Args:
        env_id: An id of gymnasium, or a built-in type such as ``cartpole`` or ``grid_spread``;
            ``None`` for the environment of a config that the package has for the policy.
        policy: A registered type; by default PPO, and SAC for continuous actions.
        any_source: Whether to accept policies that learn from a data set or an expert.

    Raises:
        ConfigError: The environment does not exist, or the policy does not suit it.
    """
    if policy is not None:
        policy = policy.removesuffix("_command")
        POLICY_REGISTRY.get(policy)
        if not any_source and (source := source_of(policy)):
            mode, file = pipeline_of(policy), f"{policy}_config.py"
            where = f" -e {env_id}" if env_id else ""
            raise ConfigError(
                f"policy {policy!r} learns from {source}, not from an environment alone. Its "
                f"config names where that comes from:\n  ding init {file}{where} -p {policy}   "
                f"then  ding -m {mode} -c {file}"
            )
    if env_id is None:
        env_id = _usual_env(policy or "ppo")
    is_type = env_id.lower() in ENV_REGISTRY
    if is_type:
        env_id = getattr(ENV_REGISTRY.get(env_id.lower()), "default_id", "") or env_id
    of_env = [one for one in shipped_configs() if one.is_of(env_id)]
    if is_type and not of_env and env_id.lower() in ENV_REGISTRY:
        raise ConfigError(
            f"env type {env_id!r} has no default environment: give the id of one in its place "
            f"(ding -q env names some), or write a config file with create_config.env.type="
            f"{env_id.lower()!r}"
        )
    if of_env and not _is_gymnasium(of_env[0].env_type):
        main, create = _in_own_env(env_id, policy, of_env)
    else:
        main, create = _in_gymnasium(env_id, policy)
    file_name = "".join(c if c.isalnum() or c in "-_." else "_" for c in env_id)
    main["exp_name"] = f"exp/{file_name}_{create['policy']['type']}"
    return main, create


def _is_gymnasium(env_type: str) -> bool:
    cls: Any = ENV_REGISTRY.get(env_type)
    return issubclass(cls, GymnasiumEnv)


def _served(policy: str) -> tuple[str, ...]:
    return tuple(getattr(POLICY_REGISTRY.get(policy), "actions", ()))


def _usual_env(policy: str) -> str:
    """The environment of a package config for a policy, preferably one without an extra."""
    for one in shipped_configs():
        is_plain = one.simulator is None and not one.main["env"].get("env_wrapper")
        if is_plain and POLICY_REGISTRY.get(one.policy) is POLICY_REGISTRY.get(policy):
            return str(one.main["env"].get("env_id") or one.env_type)
    return "Pendulum-v1" if "continuous" in _served(policy) else "CartPole-v1"


def _closest(
    policy: str, kind: str, simulator: Simulator | None = None, env_id: str = ""
) -> Shipped:
    """The package config of a policy, or of its class under another name, for the most similar
    environment."""
    cls: Any = POLICY_REGISTRY.get(policy)
    every = shipped_configs()
    same = [one for one in every if one.policy == policy]
    same = same or [one for one in every if POLICY_REGISTRY.get(one.policy) is cls]
    # A class that only adds demonstrations uses the settings of its base class.
    same = same or [one for one in every if POLICY_REGISTRY.get(one.policy) in cls.__mro__]

    def likeness(one: Shipped) -> tuple[float, ...]:
        return (
            one.kind == kind,
            one.is_of(env_id),
            one.simulator is simulator,
            one.simulator is None and bool(one.main["env"].get("env_id")),
            float(one.main["env"].get("stop_value") or 0),
        )

    return max(same, key=likeness)


def _in_own_env(env_type: str, policy: str | None, of_env: list[Shipped]) -> tuple[Config, Config]:
    """A config for an environment of this package that gymnasium cannot create."""
    example = of_env[0]
    policy = policy or example.policy
    kind = example.kind
    if kind not in _served(policy):
        raise ConfigError(
            f"policy {policy!r} does not choose {kind} actions, which {env_type!r} needs; policies "
            f"for it: {', '.join(trainable(kind))}"
        )
    exact = [one for one in of_env if one.policy == policy]
    chosen = exact[0] if exact else _closest(policy, kind)
    section = copy.deepcopy(chosen.main["policy"])
    if not exact:  # values that depend on the environment are read when the run starts
        model = section["model"]
        section["model"] = {k: v for k, v in model.items() if not k.endswith(("_shape", "_num"))}
    main = {"env": copy.deepcopy((exact or of_env)[0].main["env"]), "policy": section}
    create = {**chosen.create, "env": example.create["env"], "policy": {"type": policy}}
    return main, copy.deepcopy(create)


def _in_gymnasium(env_id: str, policy: str | None) -> tuple[Config, Config]:
    env, create_env, observations, actions = _look_at(env_id)
    kind = action_space_of(actions)
    if kind is None:
        raise ConfigError(
            f"env {env_id!r} has actions of {actions}, and no policy chooses such: wrap it, so "
            "that they are Discrete, MultiDiscrete or a Box of floats"
        )
    policy = policy or ("sac" if kind == "continuous" else "ppo")
    if _served(policy) == ("multi-agent",):
        raise ConfigError(
            f"policy {policy!r} trains a team of agents, and env {env_id!r} has one agent; try "
            f"ding train {_usual_env(policy)} {policy}, or write a config for your environment: "
            f"ding init {policy}_config.py -p {policy}"
        )
    check_kind(policy, actions, trainable())
    shapes = model_shapes(observations, actions)
    if "obs_shape" not in shapes:
        raise ConfigError(
            f"env {env_id!r} has observations of {observations}: networks without a config file "
            "read one array; flatten them with gymnasium.wrappers.FlattenObservation, or write a "
            "config file with env.env_wrapper=['flatten_obs'] or a network in policy.model"
        )
    simulator = simulator_of(env_id)
    chosen = _closest(policy, kind, simulator, env_id)
    is_own = chosen.is_of(env_id) and chosen.kind == kind
    is_like = is_own or (simulator is not None and chosen.simulator is simulator)
    theirs = chosen.main["env"]
    env.update({key: theirs[key] for key in (_ENV_KEYS if is_like else _COUNTS) if key in theirs})
    manager = chosen.create["env_manager"] if is_like else {"type": "base"}
    section = copy.deepcopy(chosen.main["policy"])
    if policy == "sqil_sac":  # uses SAC's configs
        section["collect"]["model_path"] = "exp/expert/ckpt/ckpt_best.pth.tar"
    if not is_own:
        sized = ALE if len(observations.shape or ()) == 3 else simulator
        _make_general(section, sized)
        if not is_like and sized in (ALE, MUJOCO):
            example = _example(policy, sized)
            _take_sizes(section, example.main["policy"])
            env.update({key: example.main["env"][key] for key in _COUNTS})
            if sized is simulator:
                manager = example.create["env_manager"]
    if isinstance(actions, spaces.Box) and not is_own:
        env["act_scale"] = bool(actions.is_bounded("both"))
    # An id may contain a module before its colon, which was imported before.
    spec = gymnasium.spec(current_id(env_id.rpartition(":")[2])[0])
    goal = spec.reward_threshold
    if (goal := theirs.get("stop_value") if is_own and goal is None else goal) is not None:
        env["stop_value"] = goal
    if policy == "bdq" and isinstance(actions, spaces.Discrete):
        shapes.update(num_branches=1, action_bins_per_branch=int(actions.n))
    model = section["model"]
    model.update({key: shapes[key] for key in ("obs_shape", *model) if key in shapes})
    for place in (section, model):
        if place.get("action_space") in ("discrete", "continuous", "hybrid"):
            place["action_space"] = kind
    if "action_space" in default_config(POLICY_REGISTRY.get(policy)):
        section.setdefault("action_space", kind)
    create = {"env": create_env, "env_manager": dict(manager), "policy": {"type": policy}}
    return {"env": copy.deepcopy(env), "policy": section}, create


def _look_at(env_id: str) -> tuple[Config, Config, Space[object], Space[object]]:
    """The environment's own keys, its type's section, and its spaces as seen by policies."""
    simulator = simulator_of(env_id)
    types: dict[Simulator | None, str] = {ALE: "atari", MUJOCO: "mujoco", MINIGRID: "minigrid"}
    type_ = types.get(simulator, "gymnasium")
    env: Config = {"env_id": env_id}
    if type_ == "gymnasium":
        bare = make_gymnasium(env_id)
        space = bare.observation_space
        bare.close()
        if isinstance(space, spaces.Discrete):
            name = re.sub(r"\W", "_", re.sub(r"(?<=[a-z])(?=[A-Z])|-v\d+$", "_", env_id)).lower()
            names = {name.strip("_"), name.replace("_", "")} & {*ENV_REGISTRY.query()}
            if names:
                type_ = names.pop()  # such as frozen_lake, which converts observations
            else:
                env["env_wrapper"] = ["one_hot_obs"]
        elif isinstance(space, spaces.Box) and len(space.shape) == 3 and space.shape[-1] in (1, 3):
            env["env_wrapper"] = ["warp_frame", "scaled_float_frame"]
            env["frame_stack"] = 4
    made = ENV_REGISTRY.get(type_)(env)
    try:
        return env, {"type": type_}, made.observation_space, made.action_space
    finally:
        made.close()


def _make_general(section: Config, simulator: Simulator | None) -> None:
    """Replace, in place, task-specific values: horizons and bounds of returns."""
    for path in _DISCOUNTS:
        place, _, name = path.rpartition(".")
        inner = at(section, place) if place else section
        if name in (inner or {}):
            inner[name] = max(inner[name], 0.99)
    if "v_min" in section["model"]:
        bound = 10 if simulator is ALE else 100  # Atari rewards are clipped to their signs
        section["model"].update(v_min=-bound, v_max=bound)


def _example(policy: str, simulator: Simulator) -> Shipped:
    """The package config for MuJoCo or Atari whose sizes and rates suit a policy."""
    if default_config(POLICY_REGISTRY.get(policy)).get("on_policy", False):
        return _closest("ppo", "discrete" if simulator is ALE else "continuous", simulator)
    return (
        _closest("dqn", "discrete", ALE)
        if simulator is ALE
        else _closest("td3", "continuous", MUJOCO)
    )


def _take_sizes(section: Config, theirs: Config) -> None:
    """Take sizes and rates from another policy's config, for keys that this one has."""
    model = section["model"]
    buffer = at(section, "other.replay_buffer.replay_buffer_size")
    if buffer is None or buffer >= _LARGE_BUFFER:
        _take(section, theirs)
    else:
        _take(model, theirs["model"])
    if len(theirs["model"].get("encoder_hidden_size_list", ())) > 2:
        model["encoder_hidden_size_list"] = [*theirs["model"]["encoder_hidden_size_list"]]
    rate = theirs["learn"].get("learning_rate", theirs["learn"].get("learning_rate_actor"))
    for key in section["learn"]:
        if key.startswith("learning_rate"):
            section["learn"][key] = min(section["learn"][key], rate)


def _take(section: Config, theirs: Config) -> None:
    """Replace values by those of another config with the same keys."""
    for key in [key for key in section if key in theirs and key not in _TASKS_OWN]:
        if isinstance(section[key], dict) and isinstance(theirs[key], dict):
            _take(section[key], theirs[key])
        else:
            section[key] = copy.deepcopy(theirs[key])

"""Completing a config with the defaults of everything that it names, and checking it."""

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from easydict import EasyDict

from ding.config.check import Problems, check_section, require
from ding.config.contradictions import find_contradictions
from ding.config.known_keys import ENV_KEYS, POLICY_KEYS, TOP_KEYS
from ding.config.save import save_config
from ding.envs import get_env_cls, get_env_manager_cls
from ding.policy import get_policy_cls
from ding.utils import LEARNER_REGISTRY, SERIAL_EVALUATOR_REGISTRY, deep_merge_dicts, import_module
from ding.utils.errors import ConfigError
from ding.worker import (
    BaseLearner,
    BaseSerialCommander,
    IBuffer,
    InteractionSerialEvaluator,
    ISerialCollector,
    get_buffer_cls,
    get_serial_collector_cls,
)


@dataclass
class _Parts:
    """The classes that a config is completed with; ``None`` for those that it does without."""

    env: type | None
    env_manager: type | None
    policy: type | None
    learner: type | None
    collector: type | None
    evaluator: type | None
    buffer: type | None


def compile_config(
    cfg: EasyDict,
    env_manager: type | None = None,
    policy: type | None = None,
    learner: type = BaseLearner,
    collector: type | None = None,
    evaluator: type = InteractionSerialEvaluator,
    buffer: type | None = None,
    env: type | None = None,
    reward_model: type | None = None,
    world_model: type | None = None,
    seed: int = 0,
    auto: bool = False,
    create_cfg: dict | None = None,
    save_cfg: bool = True,
    save_path: str = "total_config.py",
    renew_dir: bool = True,
) -> EasyDict:
    """Complete a config with defaults, check it, and save it into the run's folder.

    The classes come from ``create_cfg`` (with ``auto=True``) or are passed one by one. Of two
    values for a key the later of these wins: the classes' defaults, ``create_cfg``, ``cfg``; a
    policy's defaults for its buffer or collector win over that component's own.

    Args:
        cfg: What the user wrote: ``exp_name``, ``env``, ``policy``. Not changed.
        env_manager: Class of the env managers.
        policy: Class of the policy.
        learner: Class of the learner.
        collector: Class of the collector.
        evaluator: Class of the evaluator.
        buffer: Class of the replay buffer.
        env: Class of the environments, for its defaults.
        reward_model: Class whose ``default_config`` completes ``cfg.reward_model``.
        world_model: Class whose ``default_config`` completes ``cfg.world_model``.
        seed: Recorded in the config.
        auto: Take the classes from ``create_cfg``.
        create_cfg: Types and ``import_names`` by component.
        save_cfg: Make the run's folder and save the result there.
        save_path: Name of the saved file.
        renew_dir: If the folder exists, append the time to ``exp_name`` rather than write into it
            (never when training is resumed).

    Returns:
        The completed config.

    Raises:
        ConfigError: Unknown or missing keys, wrong types, contradictions: all of them, each with
            the full path of its key.
        UnknownTypeError: A type that no registry knows.
    """
    user = EasyDict(copy.deepcopy(dict(cfg)))
    create = EasyDict(copy.deepcopy(dict(create_cfg or {})))
    problems = Problems()
    _check_outline(user, create, auto, problems)
    if auto:
        parts = _parts_of(create, user, env)
    else:
        parts = _Parts(env, env_manager, policy, learner, collector, evaluator, buffer)
    defaults = _defaults(parts, create)
    _check_keys(user, defaults, parts, problems)
    for name, model_cls in (("reward_model", reward_model), ("world_model", world_model)):
        if model_cls is not None and hasattr(model_cls, "default_config"):
            defaults[name] = model_cls.default_config()
    problems.raise_if_any()
    merged = EasyDict(deep_merge_dicts(defaults, user))
    merged.seed = seed
    _drop_other_count(merged, user)
    _pass_on(merged)
    _check_completeness(merged, parts, problems)
    find_contradictions(merged, problems)
    problems.raise_if_any()
    resuming = bool(merged.policy.get("learn", {}).get("resume_training", False))
    merged.exp_name = _run_folder(
        merged.get("exp_name", "default_experiment"), renew_dir and not resuming
    )
    if create_cfg is not None:
        merged.create_config = create
    if save_cfg:
        _save(merged, save_path)
    return merged


def _check_outline(
    user: Mapping[str, Any], create: Mapping[str, Any], auto: bool, problems: Problems
) -> None:
    check_section(user, TOP_KEYS, "", problems, open_paths=("",))
    for name in ("env", "policy"):
        if not isinstance(user.get(name), Mapping):
            problems.add(f"main_config.{name} must be a dict, got {user.get(name)!r}")
    if auto:
        known = dict.fromkeys(
            (
                *("env", "env_manager", "policy", "learner", "collector", "evaluator"),
                *("replay_buffer", "commander", "reward_model", "world_model", "model"),
            ),
            {},
        )
        check_section(create, known, "create_config", problems)
        for name in ("env_manager", "policy"):
            require({"create_config": create}, f"create_config.{name}.type", "which one?", problems)
    problems.raise_if_any()


def _parts_of(create: EasyDict, user: EasyDict, env: type | None) -> _Parts:
    """Look up the classes that ``create_config`` names."""
    policy = get_policy_cls(create.policy)
    policy_defaults = policy.default_config()
    env_cfg = deep_merge_dicts(create.get("env", {}), user.env)
    create.setdefault("learner", EasyDict(type="base"))
    create.setdefault("evaluator", EasyDict(type="interaction"))
    on_policy = user.policy.get("on_policy", policy_defaults.get("on_policy", False))
    if not on_policy:
        create.setdefault("replay_buffer", EasyDict())
        create.replay_buffer.setdefault("type", "advanced")
    create.setdefault("collector", EasyDict())
    create.collector.setdefault("type", "sample")
    for component in ("learner", "evaluator"):
        import_module(create[component].get("import_names", []))
    return _Parts(
        env=env if env is not None else (get_env_cls(env_cfg) if env_cfg.get("type") else None),
        env_manager=get_env_manager_cls(create.env_manager),
        policy=policy,
        learner=LEARNER_REGISTRY.get(create.learner.type),
        collector=get_serial_collector_cls(create.collector),
        evaluator=SERIAL_EVALUATOR_REGISTRY.get(create.evaluator.type),
        buffer=get_buffer_cls(create.replay_buffer) if "replay_buffer" in create else None,
    )


def _default_config(cls: type | None) -> dict[str, Any]:
    if cls is None or not hasattr(cls, "default_config"):
        return EasyDict()
    return cls.default_config()


def _defaults(parts: _Parts, create: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that a run of these parts can be told, with its default."""

    def component(part: type | None, name: str, own: Mapping[str, Any]) -> dict[str, Any]:
        return deep_merge_dicts(
            deep_merge_dicts(_default_config(part), dict(own)), dict(create.get(name, {}))
        )

    env = deep_merge_dicts(_default_config(parts.env), dict(create.get("env", {})))
    env["manager"] = component(parts.env_manager, "env_manager", env.get("manager", {}))
    policy = deep_merge_dicts(_default_config(parts.policy), dict(create.get("policy", {})))
    for section in ("learn", "collect", "eval", "other"):
        policy.setdefault(section, EasyDict())
    places = [
        ("learn", "learner", "learner", parts.learner),
        ("collect", "collector", "collector", parts.collector),
        ("eval", "evaluator", "evaluator", parts.evaluator),
        ("other", "replay_buffer", "replay_buffer", parts.buffer),
    ]
    for section, key, name, part in places:
        if part is not None or key in policy[section]:
            policy[section][key] = component(part, name, policy[section].get(key, {}))
    policy["other"]["commander"] = component(
        BaseSerialCommander, "commander", policy["other"].get("commander", {})
    )
    return EasyDict(env=env, policy=policy)


def _check_keys(
    user: EasyDict, defaults: Mapping[str, Any], parts: _Parts, problems: Problems
) -> None:
    """Compare what the user wrote with what is known; classes from elsewhere may know more."""
    known = deep_merge_dicts({"env": ENV_KEYS, "policy": POLICY_KEYS}, dict(defaults))
    open_paths = {
        "policy.model",
        "policy.learn.learner.hook",
        "policy.other",
        "policy.other.commander",
    }
    if parts.env is None or not parts.env.__module__.startswith("ding."):
        open_paths.add("env")
    if parts.policy is None or not parts.policy.__module__.startswith("ding."):
        open_paths |= {"policy", "policy.learn", "policy.collect", "policy.eval"}
    components = {
        "env.manager": parts.env_manager,
        "policy.learn.learner": parts.learner,
        "policy.collect.collector": parts.collector,
        "policy.eval.evaluator": parts.evaluator,
        "policy.other.replay_buffer": parts.buffer,
    }
    for path, part in components.items():
        if part is None or not part.__module__.startswith("ding."):
            open_paths.add(path)
    check_section(user.env, known["env"], "env", problems, open_paths)
    check_section(user.policy, known["policy"], "policy", problems, open_paths)


def _drop_other_count(cfg: EasyDict, user: Mapping[str, Any]) -> None:
    """A user who counts in episodes does not want the policy's default number of samples."""
    wanted = user["policy"].get("collect", {})
    for given, other in (("n_sample", "n_episode"), ("n_episode", "n_sample")):
        if wanted.get(given) is not None and wanted.get(other) is None:
            cfg.policy.collect.pop(other, None)


def _pass_on(cfg: EasyDict) -> None:
    """Let the env section's goals reach the evaluator that judges by them."""
    evaluator = cfg.policy.eval.get("evaluator")
    if evaluator is None:
        return
    for source, target in (("stop_value", "stop_value"), ("n_evaluator_episode", "n_episode")):
        if cfg.env.get(source) is not None and evaluator.get(target) is None:
            evaluator[target] = cfg.env[source]
    if evaluator.get("stop_value") is None:
        evaluator.stop_value = float("inf")


def _check_completeness(cfg: EasyDict, parts: _Parts, problems: Problems) -> None:
    if parts.env is not None:
        require(cfg, "env.collector_env_num", "how many environments collect", problems)
        require(cfg, "env.evaluator_env_num", "how many environments evaluate", problems)
        if cfg.policy.eval.get("evaluator", {}).get("n_episode") is None:
            require(cfg, "env.n_evaluator_episode", "episodes of an evaluation", problems)


def compile_collector_config(
    policy_cfg: EasyDict, user_cfg: EasyDict, collector_cls: "type[ISerialCollector]"
) -> EasyDict:
    """A collector's defaults under the policy's and the user's settings for it."""
    own = policy_cfg.get("collect", {}).get("collector", {})
    wanted = user_cfg.get("policy", {}).get("collect", {}).get("collector", {})
    return _layered(collector_cls, own, wanted)


def compile_buffer_config(
    policy_cfg: EasyDict, user_cfg: EasyDict, buffer_cls: "type[IBuffer]"
) -> EasyDict:
    """A buffer's defaults under the policy's and the user's settings for it."""
    own = policy_cfg.get("other", {}).get("replay_buffer", {})
    wanted = user_cfg.get("policy", {}).get("other", {}).get("replay_buffer", {})
    return _layered(buffer_cls, own, wanted)


def _layered(cls: type, *layers: Mapping[str, Any]) -> EasyDict:
    merged = _default_config(cls)
    for layer in layers:
        merged = deep_merge_dicts(merged, dict(layer))
    return EasyDict(merged)


def _run_folder(exp_name: str, renew_dir: bool) -> str:
    if not renew_dir or not os.path.exists(exp_name):
        return exp_name
    stamped = f"{exp_name}_{datetime.now().strftime('%y%m%d_%H%M%S')}"
    # Two runs may start within one second.
    names = [stamped, *(f"{stamped}_{number}" for number in range(1, 1000))]
    return next(name for name in names if not os.path.exists(name))


def _save(cfg: EasyDict, save_path: str) -> None:
    try:
        os.makedirs(cfg.exp_name, exist_ok=True)
        save_config(cfg, os.path.join(cfg.exp_name, save_path), save_formatted=True)
    except OSError as error:
        raise ConfigError(
            f"cannot write into the run's folder {os.path.abspath(cfg.exp_name)!r}: "
            f"{error.strerror or error}; choose another exp_name"
        ) from error

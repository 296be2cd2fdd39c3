"""Completing a config with the defaults of everything that it names, and checking it."""

import copy
import logging
import os
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from numbers import Integral
from typing import Any

from easydict import EasyDict

from ding.config.adapt import adapt, find_contradictions, settle_twins, take_old_names
from ding.config.check import KeyChecker, Notes, Problems, at, put, require
from ding.config.defaults import (
    defaults_of,
    fill_model,
    known_keys,
    layered,
    model_class,
    open_paths,
    settle_model,
)
from ding.config.known_keys import COUNTS, CREATE_SECTIONS, SILENT
from ding.config.parts import (
    Parts,
    default_config,
    find_parts,
    is_ours,
    name_parts,
)
from ding.config.save import save_run_config
from ding.config.source import add_origins
from ding.utils import (
    ENV_REGISTRY,
    broadcast_object_list,
    deep_merge_dicts,
    get_rank,
    get_world_size,
)
from ding.utils.errors import ConfigError
from ding.utils.run_claims import is_locked
from ding.utils.run_log import never_began
from ding.worker import BaseLearner, IBuffer, InteractionSerialEvaluator, ISerialCollector

#: Whether unknown keys are errors: all, or those at or under these paths.
Strict = bool | Collection[str]

DEFAULT_EXP_NAME = "default_experiment"
_logger = logging.getLogger(__name__)


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
    strict: bool = False,
) -> EasyDict:
    """Complete a config with defaults, check it, and save it into the run's folder.

    The classes come from ``create_cfg`` (with ``auto=True``) or are passed one by one, those that
    are not from ``create_cfg`` if it is given. Of two values for a key the later of these wins:
    the classes' defaults, ``create_cfg``, ``cfg``; a policy's defaults for its buffer or collector
    win over that component's own. Shapes that ``policy.model`` leaves out are those of the
    environment that ``create_cfg`` names.

    Keys that are not known are logged and kept; one that is an edit away from a known key that
    ``cfg`` does not set is an error.

    Args:
        cfg: What the user wrote: ``exp_name``, ``env``, ``policy``. Not changed.
        env_manager: Class of the env managers.
        policy: Class of the policy.
        learner: Class of the learner.
        collector: Class of the collector; ``sample`` if there is none.
        evaluator: Class of the evaluator.
        buffer: Class of the replay buffer; ``advanced`` if there is none and the policy needs one.
        env: Class of the environments, for its defaults.
        reward_model: Class whose ``default_config`` completes ``cfg.reward_model``.
        world_model: Class whose ``default_config`` completes ``cfg.world_model``.
        seed: Recorded in the config.
        auto: Take the classes from ``create_cfg``.
        create_cfg: Types and ``import_names`` by component.
        save_cfg: Make the run's folder and save the result there.
        save_path: Name of the saved file.
        renew_dir: If the folder exists, append the time to ``exp_name`` rather than write into it
            (never when training is resumed, or nothing is saved).
        strict: Make every unknown key an error.

    Returns:
        The completed config.

    Raises:
        ConfigError: Unknown or missing keys, wrong types, contradictions: all of them, each with
            the full path of its key.
        UnknownTypeError: A type that no registry knows.
    """
    user = copied(cfg, "main_config")
    further = {"reward_model": reward_model, "world_model": world_model}
    notes = Notes()
    create = EasyDict() if create_cfg is None and not auto else copied(create_cfg, "create_config")
    check_create(create, notes, strict)
    given: dict[str, Any] = {"env": env}
    if not auto:
        if policy is None and not at(create, "policy.type"):
            raise ConfigError(
                "compile_config needs the policy: pass its class (policy=DQNPolicy), or "
                "create_cfg=dict(policy=dict(type='dqn'), ...)"
            )
        given.update(env_manager=env_manager, policy=policy, learner=learner, collector=collector)
        given.update(evaluator=evaluator, replay_buffer=buffer)
    given = {name: part for name, part in given.items() if part is not None}
    if not auto:
        name_parts(create, given)
    parts = find_parts(create, user, given, notes=notes)
    merged = merge_parts(user, create, parts, further, seed, notes, strict)
    if at(create, "env.type"):  # else the caller knows its environments, and perhaps its network
        fill_model(merged, user, parts, None, notes)
    check_values(merged, complete=auto, notes=notes)
    if notes.text:
        _logger.warning("%s", notes.text)
    if renew_dir and save_cfg and not at(merged, "policy.learn.resume_training"):
        merged.exp_name = new_folder(merged.exp_name)
    if save_cfg and get_rank() == 0:
        save_run_config(merged, save_path)
    return merged


def compile_run_config(
    main_config: Mapping[str, Any],
    create_config: Mapping[str, Any],
    seed: int = 0,
    env_setting: Sequence[Any] | None = None,
    own_model: bool = False,
    on_policy: bool | None = None,
    notes: Notes | None = None,
    strict: Strict = False,
    collects: bool = True,
    command: bool = False,
) -> EasyDict:
    """`compile_config` for a run that is built from the config, and whose gaps are errors.

    Args:
        main_config: What the user wrote.
        create_config: Types and ``import_names`` by component.
        seed: Recorded in the config.
        env_setting: Env class or function, the collectors' env configs, the evaluators'; the env
            type of the config is not looked at then.
        own_model: A network is given; ``policy.model`` need not describe one.
        on_policy: Whether the run trains without a replay buffer; ``None`` if it does not train.
        notes: Told of unknown keys and the like.
        strict: Whether unknown keys are errors: all, or those at or under these paths.
        collects: Whether the run collects, so that it has to be said how much.
        command: Use the policy's command-mode variant.
    """
    notes = Notes() if notes is None else notes
    user, create = copied(main_config, "main_config"), copied(create_config, "create_config")
    given = {}
    if env_setting is not None:
        create.pop("env", None)
        given["env"] = env_setting[0] if isinstance(env_setting[0], type) else None
    check_create(create, notes, strict)
    if command:
        use_command_mode(create)
    parts = find_parts(create, user, given, notes=notes)
    merged = merge_parts(user, create, parts, {}, seed, notes, strict)
    notes.say_what_runs_ignore()
    problems = Problems()
    if on_policy is not None:
        _check_pipeline(merged, parts, on_policy, problems)
    if env_setting is None:
        require_envs(merged, problems)
    if not own_model:
        settle_model(merged, user, parts, env_setting, problems, notes)
    check_values(merged, collects, problems, notes=notes)
    return merged


def use_command_mode(create: EasyDict) -> None:
    """Name the policy's type that also has the command mode."""
    type_ = at(create, "policy.type")
    if isinstance(type_, str) and not type_.endswith("_command"):
        create.policy.type = f"{type_}_command"


def copied(cfg: Any, name: str) -> EasyDict:
    if not isinstance(cfg, Mapping):
        raise ConfigError(f"{name} must be a dict, got {type(cfg).__name__} {cfg!r}")
    _check_names(cfg, name)
    return EasyDict(copy.deepcopy(dict(cfg)))


def _check_names(section: Mapping[Any, Any], path: str) -> None:
    for key, value in section.items():
        if not isinstance(key, str):  # keys become attributes
            raise ConfigError(f"{path}: keys must be strings, got {type(key).__name__} {key!r}")
        if isinstance(value, Mapping):
            _check_names(value, f"{path}.{key}")


def check_create(create: EasyDict, notes: Notes, strict: Strict) -> None:
    problems = Problems()
    component = {"type": "", "import_names": None}
    known = {"create_config": dict.fromkeys(CREATE_SECTIONS, component)}
    # A component's own keys may stand beside its type.
    sections = [f"create_config.{name}" for name in CREATE_SECTIONS]
    KeyChecker(known, sections, problems, notes, strict).check({"create_config": create})
    problems.raise_if_any()


def merge_parts(
    user: EasyDict,
    create: EasyDict,
    parts: Parts,
    further: Mapping[str, type | None],
    seed: int,
    notes: Notes,
    strict: Strict,
) -> EasyDict:
    """Check the user's keys and complete them with the defaults of the parts."""
    problems = Problems()
    for name in ("env", "policy"):
        if not isinstance(user.get(name), Mapping):
            problems.add(f"main_config.{name} must be a dict, got {user.get(name)!r}")
    if not isinstance(seed, Integral) or not 0 <= seed < 1 << 32:
        problems.add(f"seed must be a whole number from 0 to {(1 << 32) - 1}, got {seed!r}")
    problems.raise_if_any()
    add_origins(create, user, parts)
    defaults = defaults_of(parts, create)
    for name, cls in further.items():
        if cls is not None:
            defaults[name] = default_config(cls)
    take_old_names(user, defaults)
    model_cls = model_class(parts, user)
    known = known_keys(defaults, model_cls)
    for key in getattr(parts.policy, "_any_kind_keys", ()):
        put(known, f"policy.{key}", None)
    opened = open_paths(parts, model_cls)
    own = getattr(parts.policy, "_silent_keys", ())
    silent = SILENT.union(f"policy.{key}" for key in own)
    KeyChecker(known, opened, problems, notes, strict, silent, COUNTS).check(user)
    problems.raise_if_any()
    merged = EasyDict(deep_merge_dicts(defaults, user))
    merged.exp_name = merged.get("exp_name") or DEFAULT_EXP_NAME
    merged.seed = seed
    merged.create_config = create
    _drop_other_count(merged, user)
    _fill_goals(merged, user)
    settle_twins(merged, user, notes)
    says = getattr(parts.env, "says", None) if is_ours(parts.env) else None
    for line in says(merged.env) if says is not None else ():
        notes.adapt(line)
    return merged


def _drop_other_count(cfg: EasyDict, user: EasyDict) -> None:
    """A user who counts in episodes does not want the policy's default number of samples."""
    wanted = at(user, "policy.collect") or {}
    for given, other in (("n_sample", "n_episode"), ("n_episode", "n_sample")):
        if wanted.get(given) is not None and wanted.get(other) is None:
            cfg.policy.collect.pop(other, None)


def _fill_goals(cfg: EasyDict, user: EasyDict) -> None:
    """What holds for an evaluation if nobody said it."""
    env = cfg.env
    if env.get("stop_value") is None and at(user, "policy.eval.evaluator.stop_value") is None:
        env.stop_value = float("inf")
    if env.get("n_evaluator_episode") is None and env.get("evaluator_env_num") is not None:
        env.n_evaluator_episode = env.evaluator_env_num


def _check_pipeline(cfg: EasyDict, parts: Parts, on_policy: bool, problems: Problems) -> None:
    suits = bool(cfg.policy.get("on_policy", False)) == on_policy
    # Somebody else's policy may be on-policy and not say so; it cannot need a buffer and say not.
    if suits or (on_policy and not is_ours(parts.policy)):
        return
    source, other = (
        ("a replay buffer", "serial_pipeline (CLI: -m serial)")
        if on_policy
        else ("what it has just collected", "serial_pipeline_onpolicy (CLI: -m serial_onpolicy)")
    )
    type_ = str(cfg.policy.get("type")).removesuffix("_command")
    problems.add(
        f"policy {type_!r} (policy.on_policy={not on_policy}) learns from {source}: use {other}"
    )


def require_envs(cfg: EasyDict, problems: Problems) -> None:
    if cfg.env.get("type") is None:
        problems.add(
            "missing key create_config.env.type: name a registered env class, or 'gymnasium' with "
            "main_config.env.env_id"
        )
    elif getattr(ENV_REGISTRY.get(cfg.env.type), "default_id", None) == "":
        example = ENV_REGISTRY.get(cfg.env.type).example_id  # type: ignore[attr-defined]
        require(cfg, "env.env_id", f"an id that gymnasium knows, such as {example!r}", problems)
    require(cfg, "env.collector_env_num", "how many environments collect", problems)
    require(cfg, "env.evaluator_env_num", "how many environments evaluate", problems)


def check_values(
    cfg: EasyDict,
    complete: bool,
    problems: Problems | None = None,
    parallel: bool = False,
    *,
    notes: Notes,
) -> None:
    """Refuse values that cannot be, then adapt those that do not fit together."""
    problems = problems or Problems()
    find_contradictions(cfg, complete, problems, parallel)
    problems.raise_if_any()
    adapt(cfg, notes)


def new_folder(name: str) -> str:
    """``name`` if it is free, else with the time appended; the same on all ranks.

    A folder is free if it does not exist, or if the run in it failed before it had begun.
    """
    chosen = name
    if os.path.exists(name) and not (never_began(name) and not is_locked(name)):
        stamped = f"{name}_{datetime.now().strftime('%y%m%d_%H%M%S')}"
        # Two runs may start within one second.
        names = [stamped, *(f"{stamped}_{number}" for number in range(1, 1000))]
        chosen = next(one for one in names if not os.path.exists(one))
    if get_world_size() > 1:
        shared = [chosen]
        broadcast_object_list(shared, src=0)
        chosen = shared[0]
    return chosen


def compile_collector_config(
    policy_cfg: EasyDict, user_cfg: EasyDict, collector_cls: type[ISerialCollector]
) -> EasyDict:
    """A collector's defaults under the policy's and the user's settings for it."""
    return _component_config(policy_cfg, user_cfg, collector_cls, "collect.collector")


def compile_buffer_config(
    policy_cfg: EasyDict, user_cfg: EasyDict, buffer_cls: type[IBuffer]
) -> EasyDict:
    """A buffer's defaults under the policy's and the user's settings for it."""
    return _component_config(policy_cfg, user_cfg, buffer_cls, "other.replay_buffer")


def _component_config(policy_cfg: EasyDict, user_cfg: EasyDict, cls: type, place: str) -> EasyDict:
    own, wanted = at(policy_cfg, place) or {}, at(user_cfg, f"policy.{place}") or {}
    return layered(default_config(cls), own, wanted)

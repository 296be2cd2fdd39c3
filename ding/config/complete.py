"""A config from what a user wrote to what a run is built from, in steps.

``read`` → `name_types` → `translate_old_names` → `fill_defaults` → `settle_twins` →
`infer_from_environments` → `check` → `fit_together`. A step takes a `Draft` and returns another; it
changes nothing that it is given.
"""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from easydict import EasyDict

from ding.config.adapt import (
    COLLECTOR_NUM,
    TASK_SPACE,
    adapt,
    find_contradictions,
    settle_copies,
    take_old_names,
)
from ding.config.check import KeyChecker, Notes, Problems, is_int, require
from ding.config.defaults import (
    defaults_of,
    known_keys,
    model_class,
    open_paths,
    settle_model,
    share_buffer_keys,
)
from ding.config.parts import (
    SOURCES,
    Part,
    Parts,
    add_origins,
    default_config,
    find_parts,
    is_ours,
    name_parts,
    policy_mode,
)
from ding.config.schema import COUNTS, CREATE_SECTIONS, SILENT
from ding.utils import ENV_REGISTRY, deep_merge_dicts
from ding.utils.errors import ConfigError
from ding.utils.settings import EnvSetting, at, put
from ding.utils.types import Settings

#: Whether unknown keys are errors: all, or those at or under these paths.
Strict = bool | Collection[str]

DEFAULT_EXP_NAME = "default_experiment"


@dataclass(frozen=True)
class Request:
    """How to complete a config; the same for all steps.

    Attributes:
        notes: Takes what the caller shows: unknown keys and assumptions.
        seed: Recorded in the config.
        strict: Whether unknown keys are errors.
        given: Classes by role, in place of those that the config names.
        names_given: Whether ``create_config`` is to name them.
        parallel: Whether a parallel run is built from it.
        command: Whether the policy's command-mode variant is used.
        runs: Whether a run is built from the config alone, so that its gaps are errors.
        collects: Whether such a run collects, so that the config has to contain how much.
        on_policy: Whether it trains without a replay buffer; ``None`` if it does not train.
        env_setting: Environments in place of those that the config names.
        own_model: Whether a network is given.
    """

    notes: Notes
    seed: int = 0
    strict: Strict = False
    given: Mapping[str, Part] = field(default_factory=dict)
    names_given: bool = False
    parallel: bool = False
    command: bool = False
    runs: bool = True
    collects: bool = True
    on_policy: bool | None = None
    env_setting: EnvSetting | None = None
    own_model: bool = False


@dataclass(frozen=True)
class Draft:
    """A config between two steps.

    Attributes:
        cfg: The main config: what the user wrote, and from `fill_defaults` on the whole.
        create: ``create_config``.
        written: What the user wrote of the main config, with old names translated.
        parts: The classes that the config names, from `name_types` on.
        defaults: What these classes have as defaults, likewise.
        problems: Errors that are reported together, by `check`.
    """

    cfg: EasyDict
    create: EasyDict
    written: EasyDict
    parts: Parts = field(default_factory=Parts)
    defaults: EasyDict = field(default_factory=EasyDict)
    problems: tuple[str, ...] = ()


def complete(main: object, create: object, request: Request) -> EasyDict:
    """The main config that what a user wrote means.

    Raises:
        ConfigError: Everything that is wrong, with the full paths of the keys.
        UnknownTypeError: A type that no registry knows.
    """
    draft = read(main, create, request)
    for step in STEPS:
        draft = step(draft, request)
    return draft.cfg


def read(main: object, create: object, request: Request) -> Draft:
    """Copies of what the user wrote, if these are dicts with known sections."""
    cfg, named = copied(main, "main_config"), copied(create, "create_config")
    types, settings = at(cfg, "policy.type"), at(named, "policy") or {}
    if types and "type" not in settings and _SETTINGS.intersection(settings):
        raise ConfigError(
            "main_config and create_config are swapped: the settings of the policy are in "
            "create_config, its type is in main_config"
        )
    if request.env_setting is not None:
        named.pop("env", None)
    component = {"type": "", "import_names": None}
    known = {"create_config": dict.fromkeys(CREATE_SECTIONS, component)}
    # A component's own keys may be next to its type.
    sections = [f"create_config.{name}" for name in CREATE_SECTIONS]
    checker = KeyChecker(known, request.notes, request.strict, sections)
    checker.check({"create_config": named})
    if request.command:
        type_ = at(named, "policy.type")
        if isinstance(type_, str) and not type_.endswith("_command"):
            named.policy.type = f"{type_}_command"
    return Draft(cfg, named, cfg)


def name_types(draft: Draft, request: Request) -> Draft:
    """Look up the classes; ``create_config`` names them all, and what to import for them."""
    cfg, create = unshared(draft.cfg), unshared(draft.create)
    if request.names_given:
        name_parts(create, request.given)
    parts = find_parts(create, cfg, request.given, request.parallel, request.notes)
    problems = Problems()
    for name in ("env", "policy"):
        if name not in cfg:
            problems.add(f"main_config.{name} is missing: add {name}=dict() for the defaults")
        elif not isinstance(cfg[name], Mapping):
            problems.add(f"main_config.{name} must be a dict, got {cfg[name]!r}")
    seed = request.seed
    if not isinstance(seed, Integral) or not 0 <= seed < 1 << 32:
        problems.add(f"seed must be a whole number from 0 to {(1 << 32) - 1}, got {seed!r}")
    # The next steps need both sections.
    problems.raise_if_any()
    add_origins(create, cfg, parts)
    defaults = defaults_of(parts, create)
    if (world_model := parts.get("world_model")) is not None:  # of scripts alone
        defaults.world_model = default_config(world_model)
    return replace(draft, cfg=cfg, create=create, written=cfg, parts=parts, defaults=defaults)


def translate_old_names(draft: Draft, request: Request) -> Draft:
    """Set the keys of today from those of older configs, and check all that the user wrote."""
    cfg, parts = unshared(draft.cfg), draft.parts
    # Before defaults are filled in: what is written by an old name wins over these.
    take_old_names(cfg, draft.defaults)
    share_buffer_keys(cfg, parts)
    model_cls = model_class(parts, cfg)
    known = known_keys(draft.defaults, model_cls)
    for key in getattr(parts.policy, "_any_kind_keys", ()):
        put(known, f"policy.{key}", None)
    silent = SILENT.union(f"policy.{key}" for key in getattr(parts.policy, "_silent_keys", ()))
    opened = open_paths(parts, model_cls)
    KeyChecker(known, request.notes, request.strict, opened, silent, COUNTS).check(cfg)
    return replace(draft, cfg=cfg, written=cfg)


def fill_defaults(draft: Draft, request: Request) -> Draft:
    """Add what the user left out."""
    written = draft.written
    cfg = EasyDict(deep_merge_dicts(draft.defaults, unshared(written)))
    cfg.exp_name = run_folder(cfg)
    cfg.seed = request.seed
    cfg.create_config = unshared(draft.create)
    # A user who counts in episodes does not want the policy's default number of samples.
    wanted = at(written, "policy.collect") or {}
    for given, other in (("n_sample", "n_episode"), ("n_episode", "n_sample")):
        if wanted.get(given) is not None and wanted.get(other) is None:
            cfg.policy.collect.pop(other, None)
    env = cfg.env
    if env.get("stop_value") is None and at(written, "policy.eval.evaluator.stop_value") is None:
        env.stop_value = float("inf")
    if not request.collects and env.get("collector_env_num") is None:
        env.collector_env_num = 1
    if env.get("n_evaluator_episode") is None and env.get("evaluator_env_num") is not None:
        env.n_evaluator_episode = env.evaluator_env_num
    collectors, tasks = at(cfg, COLLECTOR_NUM), at(cfg, TASK_SPACE)
    if is_int(collectors) and is_int(tasks) and at(written, TASK_SPACE) is None:
        put(cfg, TASK_SPACE, max(collectors, tasks))
    return replace(draft, cfg=cfg)


def settle_twins(draft: Draft, request: Request) -> Draft:
    """Give one value to what is kept in two places."""
    cfg, notes = unshared(draft.cfg), request.notes
    settle_copies(cfg, draft.written, notes)
    env = draft.parts.env
    says = getattr(env, "says", None) if is_ours(env) else None
    for line in says(cfg.env) if says is not None else ():
        notes.adapt(line)
    if request.runs:
        notes.explain_gone(draft.written)
    return replace(draft, cfg=cfg)


def infer_from_environments(draft: Draft, request: Request) -> Draft:
    """Take the shapes that the user left out from an environment."""
    cfg, written, parts = unshared(draft.cfg), draft.written, draft.parts
    if not request.runs:
        if at(draft.create, "env.type"):  # else the caller has its environments, perhaps a network
            settle_model(cfg, written, parts, None, None, request.notes)
        return replace(draft, cfg=cfg)
    problems = Problems([*draft.problems])
    if request.on_policy is not None:
        _check_pipeline(cfg, parts, request.on_policy, problems)
    if request.env_setting is None:
        _require_envs(cfg, problems)
    if not request.own_model:
        setting = request.env_setting
        settle_model(cfg, written, parts, setting, problems, request.notes, request.parallel)
    return replace(draft, cfg=cfg, problems=tuple(problems.found))


def check(draft: Draft, request: Request) -> Draft:
    """Refuse values that cannot be, all in one error."""
    problems = Problems([*draft.problems])
    find_contradictions(draft.cfg, request.runs and request.collects, problems, request.parallel)
    mode = policy_mode(draft.parts.policy, on_policy=False)
    if request.parallel and (source := SOURCES.get(mode)):
        name = draft.cfg.policy.type.removesuffix("_command")
        problems.add(
            f"policy {name!r} learns from {source}, and parallel mode collects with "
            f"environments: train it with `ding -m {mode}`"
        )
    problems.raise_if_any()
    return draft


def fit_together(draft: Draft, request: Request) -> Draft:
    """Change settings that are possible and do not fit together; each change is noted."""
    cfg = unshared(draft.cfg)
    adapt(cfg, request.notes)
    return replace(draft, cfg=cfg)


STEPS: tuple[Callable[[Draft, Request], Draft], ...] = (
    name_types,
    translate_old_names,
    fill_defaults,
    settle_twins,
    infer_from_environments,
    check,
    fit_together,
)


# ---------------------------------------------------------------------- what the steps use


def run_folder(main: Settings) -> str:
    """The folder that a config names for its run: no other one than the same name with a slash."""
    name = os.path.expanduser(str(main.get("exp_name") or DEFAULT_EXP_NAME))
    return name.rstrip(os.sep) or os.sep


def copied(cfg: object, name: str) -> EasyDict:
    """A copy of a part of a config; objects in it, such as callbacks, are the user's own.

    Raises:
        ConfigError: It is no dict, or a key in it is no string.
    """
    if not isinstance(cfg, Mapping):
        raise ConfigError(f"{name} must be a dict, got {type(cfg).__name__} {cfg!r}")
    sections = [(name, cfg)]
    for path, section in sections:
        for key, value in section.items():
            if not isinstance(key, str):  # keys become attributes
                raise ConfigError(f"{path}: keys must be strings, got {type(key).__name__} {key!r}")
            if isinstance(value, Mapping):
                sections.append((f"{path}.{key}", value))
    return EasyDict(unshared(dict(cfg)))


def _check_pipeline(cfg: EasyDict, parts: Parts, on_policy: bool, problems: Problems) -> None:
    suits = bool(cfg.policy.get("on_policy", False)) == on_policy
    # A user's policy may be on-policy without `on_policy`; an off-policy one needs its buffer.
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


def _require_envs(cfg: EasyDict, problems: Problems) -> None:
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


def unshared(value: Any) -> Any:
    """A copy whose dicts and lists can be changed; what they hold is the same."""
    if isinstance(value, dict):
        return EasyDict({key: unshared(item) for key, item in value.items()})
    return [unshared(item) for item in value] if type(value) is list else value


#: Sections of ``policy`` in a main config.
_SETTINGS = {"model", "learn", "collect", "eval", "other"}

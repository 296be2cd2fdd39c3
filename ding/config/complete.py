"""A config from what a user wrote to what a run is built from: `read`, and then `STEPS` in order.

A step takes a `Draft` and returns another; it changes nothing that it is given.
"""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

from easydict import EasyDict

from ding.config import adapt, defaults
from ding.config.check import KeyChecker, Notes, Problems, is_int
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
    """How to complete a config; the same for all steps."""

    notes: Notes  # takes what the caller shows: unknown keys and assumptions
    seed: int = 0  # recorded in the config
    strict: Strict = False
    given: Mapping[str, Part] = field(default_factory=dict)  # instead of classes that it names
    names_given: bool = False  # whether `create_config` is to name these
    parallel: bool = False  # whether a parallel run is built from it
    command: bool = False  # whether the policy's command-mode variant is used
    runs: bool = True  # whether a run is built from the config alone: its gaps are errors
    collects: bool = True  # whether such a run collects: the config has to contain how much
    on_policy: bool | None = None  # whether it has no replay buffer; `None` if it does not train
    env_setting: EnvSetting | None = None  # instead of the environments that the config names
    own_model: bool = False  # whether a network is given
    problems: Problems = field(default_factory=Problems)  # what `check` reports, all together


@dataclass(frozen=True)
class Draft:
    """A config between two steps."""

    cfg: EasyDict  # the main config; from `fill_defaults` on all of it
    create: EasyDict  # `create_config`
    written: EasyDict  # what the user wrote of the main config, with old names translated
    parts: Parts = field(default_factory=Parts)  # the classes, from `name_types` on
    defaults: EasyDict = field(default_factory=EasyDict)  # what these have, likewise


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
    settings = at(named, "policy") or {}
    is_swapped = at(cfg, "policy.type") and "type" not in settings
    if is_swapped and {"model", *defaults.POLICY_SECTIONS}.intersection(settings):
        raise ConfigError(
            "main_config and create_config are swapped: the settings of the policy are in "
            "create_config, its type is in main_config"
        )
    if request.env_setting is not None:
        named.pop("env", None)
    known = {name: {"type": "", "import_names": None} for name in CREATE_SECTIONS}
    # A component's own keys may be next to its type.
    sections = [f"create_config.{name}" for name in CREATE_SECTIONS]
    checker = KeyChecker({"create_config": known}, request.notes, request.strict, sections)
    checker.check({"create_config": named})
    type_ = at(named, "policy.type")
    if request.command and isinstance(type_, str) and not type_.endswith("_command"):
        named.policy.type = f"{type_}_command"
    return Draft(cfg, named, cfg)


def name_types(draft: Draft, request: Request) -> Draft:
    """Look up the classes; ``create_config`` names them all, and what to import for them."""
    cfg, create = unshared(draft.cfg), unshared(draft.create)
    if request.names_given:
        name_parts(create, request.given)
    parts = find_parts(create, cfg, request.given, request.parallel, request.notes)
    problems = request.problems
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
    known = defaults.defaults_of(parts, create)
    if (world_model := parts.get("world_model")) is not None:  # of scripts alone
        known.world_model = default_config(world_model)
    return replace(draft, cfg=cfg, create=create, written=cfg, parts=parts, defaults=known)


def translate_old_names(draft: Draft, request: Request) -> Draft:
    """Set the keys of today from those of older configs, and check all that the user wrote."""
    cfg, parts = unshared(draft.cfg), draft.parts
    # Before defaults are filled in: what is written by an old name wins over these.
    adapt.take_old_names(cfg, draft.defaults)
    defaults.share_buffer_keys(cfg, parts)
    model_cls = defaults.model_class(parts, cfg)
    known = defaults.known_keys(draft.defaults, model_cls)
    for key in getattr(parts.policy, "_any_kind_keys", ()):
        put(known, f"policy.{key}", None)
    silent = SILENT.union(f"policy.{key}" for key in getattr(parts.policy, "_silent_keys", ()))
    opened = defaults.open_paths(parts, model_cls)
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
    collectors, tasks = at(cfg, adapt.COLLECTOR_NUM), at(cfg, adapt.TASK_SPACE)
    if is_int(collectors) and is_int(tasks) and at(written, adapt.TASK_SPACE) is None:
        put(cfg, adapt.TASK_SPACE, max(collectors, tasks))
    return replace(draft, cfg=cfg)


def settle_twins(draft: Draft, request: Request) -> Draft:
    """Give one value to what is kept in two places."""
    cfg, notes = unshared(draft.cfg), request.notes
    adapt.settle_copies(cfg, draft.written, notes)
    says = getattr(draft.parts.env, "says", None) if is_ours(draft.parts.env) else None
    for line in says(cfg.env) if says is not None else ():
        notes.adapt(line)
    if request.runs:
        notes.explain_gone(draft.written)
    return replace(draft, cfg=cfg)


def infer_from_environments(draft: Draft, request: Request) -> Draft:
    """Take the shapes that the user left out from an environment."""
    cfg, written, parts = unshared(draft.cfg), draft.written, draft.parts
    notes, problems = request.notes, request.problems
    if request.runs:
        _check_source(cfg, parts, request)
        if request.env_setting is None:
            _require_envs(cfg, problems)
        if not request.own_model:
            seen = defaults.fill_shapes(cfg, written, parts, notes, request.env_setting)
            defaults.check_model(cfg, parts, seen, problems)
            if request.parallel and not problems.found:
                defaults.check_fit_here(cfg, parts, seen, notes)
    elif at(draft.create, "env.type"):  # else the caller has its environments, perhaps a network
        defaults.fill_shapes(cfg, written, parts, notes, required=False)
    return replace(draft, cfg=cfg)


def check(draft: Draft, request: Request) -> Draft:
    """Refuse values that cannot be, all in one error."""
    complete, problems = request.runs and request.collects, request.problems
    adapt.find_contradictions(draft.cfg, complete, problems, request.parallel)
    problems.raise_if_any()
    return draft


def fit_together(draft: Draft, request: Request) -> Draft:
    """Change settings that are possible and do not fit together; each change is noted."""
    cfg = unshared(draft.cfg)
    adapt.fit_settings(cfg, request.notes)
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


def run_folder(main: Settings) -> str:
    """The folder that a config names for its run: no other one than the same name with a slash."""
    name = os.path.expanduser(str(main.get("exp_name") or DEFAULT_EXP_NAME))
    return name.rstrip(os.sep) or os.sep


def copied(cfg: object, name: str) -> EasyDict:
    """`unshared` for a part of a config, which must be a dict."""
    if not isinstance(cfg, Mapping):
        raise ConfigError(f"{name} must be a dict, got {type(cfg).__name__} {cfg!r}")
    return unshared(dict(cfg), name)


def unshared(value: Any, path: str = "") -> Any:
    """A copy whose dicts and lists can be changed; objects in it, such as callbacks, are the same.

    A key that is no string is a `ConfigError`, since keys become attributes.
    """
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ConfigError(f"{path}: keys must be strings, got {type(key).__name__} {key!r}")
        return EasyDict({key: unshared(item, f"{path}.{key}") for key, item in value.items()})
    return [unshared(item, path) for item in value] if type(value) is list else value


def _check_source(cfg: EasyDict, parts: Parts, request: Request) -> None:
    """Report a policy that learns from something else than what the run has."""
    name = str(cfg.policy.get("type")).removesuffix("_command")
    is_on_policy, mode = bool(cfg.policy.get("on_policy")), policy_mode(parts.policy, False)
    if request.parallel and is_on_policy:
        fault = (
            "(policy.on_policy=True) learns from what it has just collected, and parallel mode "
            "learns from a replay buffer: use an off-policy one, or serial_onpolicy"
        )
    elif request.parallel and mode in SOURCES:
        fault = (
            f"learns from {SOURCES[mode]}, and parallel mode collects with environments: train it "
            f"with `ding -m {mode}`"
        )
    elif request.on_policy is False and is_on_policy:
        fault = (
            "(policy.on_policy=True) learns from what it has just collected: use "
            "serial_pipeline_onpolicy (CLI: -m serial_onpolicy)"
        )
    # A user's policy may be on-policy without `on_policy`; an off-policy one needs its buffer.
    elif request.on_policy and not is_on_policy and is_ours(parts.policy):
        fault = (
            "(policy.on_policy=False) learns from a replay buffer: use serial_pipeline "
            "(CLI: -m serial)"
        )
    else:
        return
    request.problems.add(f"policy {name!r} {fault}")


def _require_envs(cfg: EasyDict, problems: Problems) -> None:
    wanted = {
        "env.collector_env_num": "how many environments collect",
        "env.evaluator_env_num": "how many environments evaluate",
    }
    if cfg.env.get("type") is None:
        problems.add(
            "missing key create_config.env.type: name a registered env class, or 'gymnasium' with "
            "main_config.env.env_id"
        )
    elif getattr(cls := ENV_REGISTRY.get(cfg.env.type), "default_id", None) == "":
        example = cls.example_id  # type: ignore[attr-defined]
        wanted = {"env.env_id": f"an id that gymnasium knows, such as {example!r}", **wanted}
    for path, what in wanted.items():
        if at(cfg, path) is None:
            problems.add(f"missing key {path}: {what}")

"""Executes the command ``ding`` with its options."""

import ast
import copy
import os
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
import yaml
from easydict import EasyDict

from ding.config import read_config_directly
from ding.config.adapt import twins_of
from ding.config.check import Notes
from ding.config.compile import complete_parallel, move_folders
from ding.config.complete import Strict, run_folder
from ding.config.parts import default_config, find_parts, policy_mode
from ding.config.read import main_and_create, parse_yaml
from ding.config.save import plain, save_config_formatted
from ding.entry import dist_entry
from ding.entry.application_entry import evaluate
from ding.entry.parallel_entry import parallel_pipeline, print_notes
from ding.entry.quick_config import quick_config
from ding.entry.seed_runs import train_in_turn, train_side_by_side
from ding.entry.serial_entry import OnPolicyPipeline, SerialPipeline
from ding.entry.serial_entry_bco import ObservationPipeline
from ding.entry.serial_entry_dqfd import DemonstrationPipeline, SQILPipeline
from ding.entry.serial_entry_offline import CloningPipeline, OfflinePipeline, TrajectoryPipeline
from ding.entry.serial_entry_reward_model import (
    GailPipeline,
    GuidedCostPipeline,
    OnPolicyRewardModelPipeline,
    RewardModelPipeline,
    TrexPipeline,
)
from ding.entry.trained_policy import PREFIX, find_trained, zoo_facts, zoo_names
from ding.envs.env_wrappers.build import config_wrappers
from ding.utils import ENV_REGISTRY
from ding.utils.console import Console, table
from ding.utils.errors import ConfigError
from ding.utils.settings import at
from ding.utils.types import Config, Settings

#: ``main_config``, ``create_config``, and ``system_config`` in parallel mode.
_Configs = list[Config]
_IMITATIONS = (GailPipeline, GuidedCostPipeline, TrexPipeline)
_PIPELINES: dict[str, type[SerialPipeline]] = {
    **{f"{one.mode}_onpolicy": one for one in _IMITATIONS},
    **{
        one.mode: one
        for one in (
            *_IMITATIONS,
            *(SerialPipeline, OnPolicyPipeline, OfflinePipeline, CloningPipeline),
            *(TrajectoryPipeline, DemonstrationPipeline, SQILPipeline, ObservationPipeline),
            *(RewardModelPipeline, OnPolicyRewardModelPipeline),
        )
    },
}


#: Options of parallel runs that are keys of their configs.
_PARALLEL_KEYS = {
    "engine": "system_config.engine.type",
    "address": "system_config.engine.address",
    "coordinator_host": "system_config.coordinator.host",
    "coordinator_port": "system_config.coordinator.port",
    "train_iter": "policy.learn.learner.train_iterations",
    "env_step": "policy.other.commander.max_env_step",
}


def run(options: Settings) -> int:
    """Run with the options of `ding.entry.cli.main`; returns the exit status."""
    mode, config, load_path = options["mode"], options["config"], options["load_path"]
    if mode == "dist" and options["module"] != "config":
        _launch(options["module"], options)
        return 0
    mode, configs = _find_configs(mode, config, options["env_id"], options["policy"])
    main, create = configs[:2]
    _set_start(configs, config, load_path, options["resume"])
    if options["env_manager"]:
        create["env_manager"] = {"type": options["env_manager"]}
    written = apply_overrides(configs, options["settings"])
    if options["exp_name"]:
        rename(configs, options["exp_name"])
    seeds = options["seeds"] or [main.get("seed") or 0]
    if mode == "eval":
        strict = options["strict"] or written
        return _evaluate(configs, seeds[0], load_path, options["replay_path"], strict)
    mode = mode or _suiting_mode(main, create)
    if mode in ("parallel", "dist"):
        if isinstance(engine := configs[2].get("engine"), str):
            configs[2]["engine"] = {"type": engine}
        written |= _override_keys(configs, options)
    elif options["engine"] or options["address"]:
        raise ConfigError(f"--engine and --address are for -m parallel, not -m {mode}")
    elif options["env_step"] is not None and not _PIPELINES[mode].collects:
        raise ConfigError("--env-step: a run from a data set takes no environment steps")
    strict = options["strict"] or written
    if mode == "dist":
        _prepare_parts(configs, seeds[0], strict, options)
        return 0
    if options["dry_run"]:
        _print_config(mode, configs, seeds[0], strict)
        return 0

    def train(seed: int, folder: str | None = None) -> None:
        own = configs
        if folder is not None:
            rename(own := copy.deepcopy(configs), folder)
        if mode == "parallel":
            logs = {name: options[name] for name in ("enable_total_log", "disable_flask_log")}
            parallel_pipeline(own, seed, strict=strict, **logs)
        else:
            pipeline = _PIPELINES[mode](own[:2], seed, strict=strict)
            if config is None and (wrappers := _wrappers_of(pipeline.cfg.env)):
                pipeline.notes.adapt(f"wrappers around the environments: {', '.join(wrappers)}")
            pipeline.train(options["train_iter"], options["env_step"])

    if len(seeds) == 1:
        train(seeds[0])
        return 0
    base = run_folder(main)
    if options["jobs"] > 1:
        return train_side_by_side(base, seeds, options["jobs"], options["args"])
    return train_in_turn(base, seeds, bool(at(main, "policy.learn.resume_training")), train)


def check_settings(
    config: str | None, env_id: str | None, policy: str | None, settings: Sequence[str]
) -> None:
    """Complete a run's config with these settings, without running it.

    Args:
        config: A config file; without it, `env_id` and `policy`.
        settings: Each ``path=value``, as in `apply_overrides`.

    Raises:
        ConfigError: The config is invalid, or a setting has an unknown key.
    """
    mode, configs = _find_configs(None, config, env_id, policy)
    written = apply_overrides(configs, settings)
    _completed(mode or _suiting_mode(*configs[:2]), configs, 0, written)


def _find_configs(
    mode: str | None, config: str | None, env_id: str | None, policy: str | None
) -> tuple[str | None, _Configs]:
    """The mode, if known, and the configs of a file, or of an environment and a policy."""
    if config is None:
        return mode, list(quick_config(env_id, policy))
    configs = read_configs(config, with_system=mode in ("parallel", "dist") if mode else None)
    if mode is None and len(configs) == 3:
        mode = "parallel"
    return mode, configs


def read_configs(path: str, with_system: bool | None = False) -> _Configs:
    """The dicts that a config file defines; modules in its folder become importable.

    Args:
        with_system: Whether to include the system config; None: if the file defines it.
    """
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    # Once: a file may modify dicts that it imports, and an imported module runs only once.
    names = read_config_directly(path)
    configs = list(main_and_create(path, names))
    if with_system or (with_system is None and "system_config" in names):
        configs.append(names.get("system_config", {}))
    for config in configs:
        if not isinstance(config, dict):
            raise ConfigError(f"{path}: its configs must be dicts, got {config!r}")
    return [plain(config) for config in configs]


def rename(configs: _Configs, exp_name: str) -> None:
    """Change the run's folder, also in the system config's paths within it."""
    main, _, *systems = configs
    exp_name = run_folder({"exp_name": exp_name})
    for system in systems:
        move_folders(system, main.get("exp_name") or "", exp_name)
    main["exp_name"] = exp_name


def _suiting_mode(main: Settings, create: Settings) -> str:
    """The pipeline mode of a policy, and the key that says what it learns from."""
    if main.get("bco"):
        return ObservationPipeline.mode
    # Copies, since missing types are filled in.
    parts = find_parts(EasyDict(plain(create)), EasyDict(plain(main)), {"env": None})
    on_policy = at(main, "policy.on_policy")
    if on_policy is None:
        on_policy = default_config(parts.policy).get("on_policy", False)
    if rewards := at(main, "reward_model.type"):
        fitting = (one for one in _IMITATIONS if rewards in one.types)
        return next(fitting, RewardModelPipeline).mode + "_onpolicy" * bool(on_policy)
    mode = policy_mode(parts.policy, bool(on_policy))
    if mode not in _PIPELINES:
        known = ", ".join(sorted(_PIPELINES))
        name = getattr(parts.policy, "__name__", parts.policy)
        raise ConfigError(f"{name}.pipeline is {mode!r}; expected one of {known}")
    if mode == SerialPipeline.mode and at(main, "policy.expert_random_collect_size"):
        return SQILPipeline.mode
    return mode


def _wrappers_of(env: Settings) -> list[str]:
    """What is put around the environments that collect, the innermost first."""
    inner = getattr(ENV_REGISTRY.get(env["type"]), "inner_wrappers", None)
    wrappers = [] if inner is None else [*inner(env, "collector")]
    shown = []
    for one in wrappers + config_wrappers(env, "collector"):
        facts: Settings = one if isinstance(one, Mapping) else {"type": one}
        given = ", ".join(f"{name}={value}" for name, value in (facts.get("kwargs") or {}).items())
        shown.append(f"{facts['type']}({given})" if given else str(facts["type"]))
    return shown


def _set_start(configs: _Configs, config: str | None, load_path: str | None, resume: bool) -> None:
    """Write where training starts into the config; called before other options change it."""
    if not resume and not load_path:
        return
    main = configs[0]
    sections = [main]
    for name in ("policy", "learn", "learner", "hook"):
        sections.append(sections[-1].setdefault(name, {}))
        if not isinstance(sections[-1], dict):
            return  # reported when the config is checked
    *_, learn, _, hook = sections
    if resume:
        learn["resume_training"] = True
        # From the run's own state, not from the checkpoint with which it began.
        hook["load_ckpt_before_run"] = ""
        folder = os.path.dirname(os.path.abspath(config)) if config else ""
        is_own = os.path.abspath(main.get("exp_name") or "") == folder
        if os.path.isdir(os.path.join(folder, "ckpt")) and not is_own:
            rename(configs, folder)  # the current directory has changed
    if load_path:
        hook["load_ckpt_before_run"] = load_path


def _print_config(mode: str, configs: _Configs, seed: int, strict: Strict) -> None:
    """Print the complete config of a run, as an executable script."""
    cfg, notes = _completed(mode, configs, seed, strict)
    with tempfile.TemporaryDirectory(prefix="ding-") as folder:
        path = os.path.join(folder, "config.py")
        save_config_formatted(cfg, path, mode)
        with open(path, encoding="utf-8") as file:
            click.echo(file.read().rstrip())
    print_notes(notes)


def _completed(mode: str, configs: _Configs, seed: int, strict: Strict) -> tuple[EasyDict, Notes]:
    """The complete config of a run."""
    if mode in ("parallel", "dist"):
        notes = Notes()
        main, create, system = configs
        return complete_parallel(main, create, system, seed, notes, strict), notes
    compiled = _PIPELINES[mode](configs[:2], seed, strict=strict)
    return compiled.cfg, compiled.notes


def evaluate_trained(
    name: str, seed: int, episodes: int | None, replay_path: str | None, settings: Sequence[str]
) -> None:
    """Evaluate the policy of a run's folder or of the zoo, and print its returns.

    Args:
        name: The folder, or ``zoo:NAME``.
        settings: ``PATH=VALUE``, changes of its config.
    """
    found = find_trained(name)
    configs = read_configs(found.config)
    if episodes is not None:
        configs[0].setdefault("env", {})["n_evaluator_episode"] = episodes
    written = apply_overrides(configs, settings)
    _evaluate(configs, seed, found.weights, replay_path, written)


def list_zoo() -> None:
    """Print the contents of the zoo."""
    rows = [("name", "policy", "env", "return", "goal")]
    for name in zoo_names():
        facts = zoo_facts(name)
        returned, goal = f"{facts['mean']:.4g} ± {facts['std']:.3g}", f"{facts['goal']:g}"
        rows.append((f"{PREFIX}{name}", facts["policy"], facts["env"], returned, goal))
    click.echo("\n".join(table(rows)))


def _evaluate(
    configs: _Configs, seed: int, load_path: str | None, replay_path: str | None, strict: Strict
) -> int:
    with Console("eval", mode="quiet"):  # keeps the evaluator's log off the terminal
        returns = evaluate(
            list(configs), seed, load_path=load_path, replay_path=replay_path, strict=strict
        )
    click.echo(
        f"mean return {statistics.fmean(returns):.6g} over {len(returns)} episodes "
        f"(std {statistics.pstdev(returns):.4g}, min {min(returns):.6g}, max {max(returns):.6g})"
    )
    click.echo("returns     " + " ".join(f"{value:.6g}" for value in returns))
    if replay_path:
        click.echo(f"videos      {os.path.abspath(replay_path)}")
    return 0


def _prepare_parts(configs: _Configs, seed: int, strict: Strict, options: Settings) -> None:
    """Write the config for parts that are started by hand: ``-m dist -M config``."""
    config, notes = _completed("dist", configs, seed, strict)
    print_notes(notes)
    hosts, ports = (
        tuple(options[f"{part}_{what}"] for part in ("coordinator", "learner", "collector"))
        for what in ("host", "port")
    )
    dist_entry.prepare(config, hosts, ports)


def _launch(module: str, options: Settings) -> None:
    logs = options["disable_flask_log"], options["enable_total_log"]
    seed = options["seeds"][0] if options["seeds"] else None
    config = dist_entry.read_part(options["config"], seed, *logs)
    config.resume_coordinator = True if options["resume"] else None
    _override_keys([config.main, {}, config.system], options)
    part = "learner" if "learner" in module else module
    place = options[f"{part}_host"], options[f"{part}_port"]
    dist_entry.launch(module, config, options["module_name"], *place)


def _override_keys(configs: Sequence[Config], options: Settings) -> set[str]:
    """Write options that are keys of a parallel config into it; returns their paths."""
    given = {key: options[name] for name, key in _PARALLEL_KEYS.items()}
    return apply_overrides(
        configs, [f"{key}={value!r}" for key, value in given.items() if value is not None]
    )


def apply_overrides(configs: Sequence[Config], settings: Iterable[str]) -> set[str]:
    """Write settings into the configs, in place, and remove the same setting at other places.

    Args:
        configs: The main config, the create config, and in parallel mode the system config.
        settings: Each ``path=value``; a path begins in the main config, or with
            ``create_config.`` or ``system_config.``. A value is Python or YAML, else a string.

    Returns:
        The paths; unknown ones are errors when the config is compiled.

    Raises:
        ConfigError: A setting has another form, or its path passes through a value.
    """
    named = dict(zip(("main_config", "create_config", "system_config"), configs))
    whole = {**configs[0], **named}
    written = set()
    for setting in settings:
        path, equals, text = setting.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise ConfigError(
                f"--set {setting}: expected path=value, such as policy.learn.batch_size=32"
            )
        if keys[0] == "main_config" and len(keys) > 1:
            keys = keys[1:]
        in_other = keys[0] in named and len(keys) > 1
        root, inner = (named[keys[0]], keys[1:]) if in_other else (configs[0], keys)
        section: object = root
        for depth, key in enumerate(inner):
            if not isinstance(section, dict):
                where = ".".join(inner[:depth])
                raise ConfigError(f"--set {setting}: {where} is {section!r}, it holds no keys")
            if depth < len(inner) - 1:
                section = section.setdefault(key, {})
            else:
                section[key] = parse_value(text.strip())
        written.add(".".join(keys))
    for twin in {twin for path in written for twin in twins_of(path)} - written:
        place, _, name = twin.rpartition(".")
        (at(whole, place) or {}).pop(name, None)
    return written


def parse_value(text: str) -> Any:
    """Parse a value of the command line."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    if text.lstrip("+-") in ("inf", "nan"):
        return float(text)
    try:
        return parse_yaml(text)
    except yaml.YAMLError:
        return text

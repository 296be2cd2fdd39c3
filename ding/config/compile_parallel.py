"""Completing the three parts of a parallel config."""

import copy
import logging
import os
from collections.abc import Mapping

from easydict import EasyDict

from ding.config.check import Notes
from ding.config.compile import CompiledConfig, new_folder
from ding.config.complete import Request, Strict, complete, copied, read
from ding.config.save import save_run_config
from ding.config.system import complete_system
from ding.config.utils import check_platform, fill_tables, place_parts, set_system_cfg
from ding.utils import PARALLEL_COLLECTOR_REGISTRY
from ding.utils.settings import at
from ding.utils.types import Config, Settings

_logger = logging.getLogger(__name__)


def compile_config_parallel(
    cfg: Settings,
    create_cfg: Settings,
    system_cfg: Settings,
    seed: int = 0,
    save_cfg: bool = True,
    save_path: str = "total_config.py",
    platform: str = "local",
    coordinator_host: str | None = None,
    learner_host: str | None = None,
    collector_host: str | None = None,
    coordinator_port: int | None = None,
    learner_port: int | None = None,
    collector_port: int | None = None,
    strict: bool = False,
) -> CompiledConfig:
    """Complete, check and save a parallel config; every part gets its address.

    Args:
        cfg: ``main_config``. None of the three is changed.
        create_cfg: ``create_config``.
        system_cfg: ``system_config``.
        seed: Recorded in the config.
        save_cfg: Make the run's folder and save the result there.
        save_path: Name of the saved file.
        platform: ``local``, which also means named hosts.
        coordinator_host: Host of the coordinator; the loopback address if not given.
        learner_host: Hosts of the learners, separated by commas.
        collector_host: Hosts of the collectors, likewise.
        coordinator_port: Port of the coordinator; a free one if not given.
        learner_port: Port of the first learner, and so on upwards.
        collector_port: Port of collectors, likewise.
        strict: Make every unknown key an error; else they are logged and kept.

    Returns:
        ``main`` and ``system``. The latter holds the coordinator's entry, with its tables of
        learners and collectors, and an entry for each worker.

    Raises:
        ConfigError: Everything that is wrong, with the full paths of the keys.
        UnknownTypeError: A type that no registry knows.
    """
    check_platform(platform)
    notes = Notes()
    config = complete_parallel(cfg, create_cfg, system_cfg, seed, notes, strict)
    if notes.text:
        _logger.warning("%s", notes.text)
    hosts = coordinator_host, learner_host, collector_host
    place_parts(config, hosts, (coordinator_port, learner_port, collector_port))
    if save_cfg:
        save_run_config(config, save_path)
    return config


def compile_joining(
    cfg: Settings,
    create_cfg: Settings,
    system_cfg: Settings,
    seed: int = 0,
    notes: Notes | None = None,
    strict: Strict = False,
) -> EasyDict:
    """`compile_config_parallel` for workers that choose their ports and join by themselves.

    If the run's folder exists another is taken, unless training is resumed. ``notes`` gets unknown
    keys and the like; ``strict`` makes them errors: all, or those at or under these paths.
    """
    config = complete_parallel(cfg, create_cfg, system_cfg, seed, notes, strict, new=True)
    set_system_cfg(config)
    fill_tables(config)
    return config


def complete_parallel(
    cfg: Settings,
    create_cfg: Settings,
    system_cfg: Settings,
    seed: int = 0,
    notes: Notes | None = None,
    strict: Strict = False,
    new: bool = False,
) -> EasyDict:
    """Check and complete the three parts; no entries for single workers yet.

    The result also contains the notes, for the run's record.

    Args:
        new: If the run's folder exists, take another one, unless training is resumed.
    """
    notes = Notes() if notes is None else notes
    request = Request(notes=notes, seed=seed, strict=strict, parallel=True, command=True)
    system = copied(system_cfg, "system_config")
    if not system:
        notes.adapt("system_config is not given: all parts run here, files in the run's folder")
    main = complete(read(cfg, create_cfg, request), request).cfg
    if new and not at(main, "policy.learn.resume_training"):
        old, main.exp_name = main.exp_name, new_folder(main.exp_name)
        move_folders(system, old, main.exp_name)
    config = EasyDict(main=main, system=complete_system(system, main, notes, strict))
    if notes.facts:
        config.notes = notes.facts
    return config


def move_folders(system: Config, old: str, new: str) -> None:
    """Keep the shared folders in the run's folder when that gets another name."""
    before, now = os.path.abspath(old), os.path.abspath(new)
    for key in ("path_data", "path_policy"):
        path = os.path.abspath(system.get(key) or "")
        if now != before and system.get(key) and os.path.commonpath([path, before]) == before:
            system[key] = os.path.join(new, os.path.relpath(path, before))


_PARALLEL_ONLY = ("collector", "commander", "comm_learner", "comm_collector", "league")


def is_parallel(create: object) -> bool:
    """Whether a ``create_config`` names parts of parallel mode."""
    return isinstance(create, Mapping) and (
        "comm_collector" in create or at(create, "collector.type") in PARALLEL_COLLECTOR_REGISTRY
    )


def serial_form(main: Settings, create: Settings) -> tuple[Config, Config]:
    """The configs of a parallel run for a serial one, or for evaluating what it trained.

    Parts and settings that only parallel mode has are left out.
    """
    serial_create = {key: value for key, value in create.items() if key not in _PARALLEL_ONLY}
    serial_main = copy.deepcopy(dict(main))
    for section, key in (("collect", "collector"), ("other", "commander")):
        (at(serial_main, f"policy.{section}") or {}).pop(key, None)
    return serial_main, serial_create

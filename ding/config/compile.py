"""Completing, checking and saving the configs of serial and parallel runs."""

import copy
import logging
import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from easydict import EasyDict

from ding.config.check import Notes
from ding.config.complete import Request, Strict, complete, copied
from ding.config.defaults import layered
from ding.config.parts import Part, default_config
from ding.config.save import save_run_config
from ding.config.system import FOLDERS, complete_system
from ding.config.utils import check_platform, fill_tables, place_parts, set_system_cfg
from ding.utils import (
    PARALLEL_COLLECTOR_REGISTRY,
    broadcast_object_list,
    get_rank,
    get_world_size,
)
from ding.utils.errors import ConfigError
from ding.utils.run_claims import is_locked
from ding.utils.run_log import never_began
from ding.utils.settings import EnvSetting, at
from ding.utils.types import Config, Settings
from ding.worker import BaseLearner, IBuffer, InteractionSerialEvaluator, ISerialCollector

_logger = logging.getLogger(__name__)


if TYPE_CHECKING:

    class CompiledConfig(EasyDict):
        """A complete config; its keys are attributes, too."""

        def __getattr__(self, name: str) -> Any: ...

else:
    CompiledConfig = EasyDict


def compile_config(
    cfg: Settings,
    env_manager: type | None = None,
    policy: type | None = None,
    learner: type = BaseLearner,
    collector: type | None = None,
    evaluator: type = InteractionSerialEvaluator,
    buffer: type | Mapping[str, type] | None = None,
    env: type | None = None,
    reward_model: type | None = None,
    world_model: type | None = None,
    seed: int = 0,
    auto: bool = False,
    create_cfg: Settings | None = None,
    save_cfg: bool = True,
    save_path: str = "total_config.py",
    renew_dir: bool = True,
    strict: bool = False,
) -> CompiledConfig:
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
            With a class by name (``{'policy': AdvancedReplayBuffer, 'value': ...}``) the config of
            each is under ``policy.other.replay_buffer.<name>``.
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

    Raises:
        ConfigError: Unknown or missing keys, wrong types, contradictions: all of them, each with
            the full path of its key.
        UnknownTypeError: A type that no registry knows.

    Example:

        >>> from ding.config import compile_config
        >>> from ding.envs import BaseEnvManager
        >>> from ding.policy import DQNPolicy
        >>> model = dict(obs_shape=4, action_shape=2)
        >>> main = dict(env=dict(env_id="CartPole-v1"), policy=dict(model=model))
        >>> cfg = compile_config(main, BaseEnvManager, DQNPolicy, save_cfg=False)
        >>> cfg.policy.learn.batch_size, cfg.policy.learn.learning_rate
        (64, 0.001)
    """
    given: dict[str, Part] = {"env": env, "reward_model": reward_model, "world_model": world_model}
    if not auto:
        if policy is None and not at(create_cfg or {}, "policy.type"):
            raise ConfigError(
                "compile_config needs the policy: pass its class (policy=DQNPolicy), or "
                "create_cfg=dict(policy=dict(type='dqn'), ...)"
            )
        create_cfg = {} if create_cfg is None else create_cfg
        given.update(env_manager=env_manager, policy=policy, learner=learner, collector=collector)
        given.update(evaluator=evaluator, replay_buffer=buffer)
    given = {name: part for name, part in given.items() if part is not None}
    request = Request(Notes(), seed, strict, given, names_given=not auto, runs=False)
    merged = complete(cfg, create_cfg, request)
    _log(request.notes)
    if renew_dir and save_cfg and not at(merged, "policy.learn.resume_training"):
        merged.exp_name = new_folder(merged.exp_name)
    if save_cfg and get_rank() == 0:
        save_run_config(merged, save_path)
    return merged


def _log(notes: Notes) -> None:
    if notes.text:
        _logger.warning("%s", notes.text)


def compile_run_config(
    main_config: Settings,
    create_config: Settings,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    notes: Notes | None = None,
    **options: Any,
) -> EasyDict:
    """`compile_config` for a run that is built from the config, and whose gaps are errors.

    ``notes`` gets unknown keys and the like; ``options`` are other attributes of `Request`.
    """
    given = {}
    if env_setting is not None:  # the env type of the config does not count then
        given["env"] = env_setting[0] if isinstance(env_setting[0], type) else None
    notes = Notes() if notes is None else notes
    request = Request(notes, seed, given=given, env_setting=env_setting, **options)
    return complete(main_config, create_config, request)


def new_folder(name: str) -> str:
    """``name`` if it is free, else with the time appended; the same on all ranks.

    A folder is free if it does not exist, or if the run in it failed before it had begun.

    Raises:
        ConfigError: The name is none that can be extended, such as ``..``.
    """
    check_new_folder(name)
    chosen = name
    if os.path.exists(name) and (is_locked(name) or not never_began(name)):
        stamped = f"{name}_{datetime.now().strftime('%y%m%d_%H%M%S')}"
        # Two runs may start within one second.
        names = [stamped, *(f"{stamped}_{number}" for number in range(1, 1000))]
        chosen = next(one for one in names if not os.path.exists(one))
    if get_world_size() > 1:
        shared = [chosen]
        broadcast_object_list(shared, src=0)
        chosen = shared[0]
    return chosen


def check_new_folder(name: str) -> None:
    """Refuse a path whose last part is no name, such as ``.``: no new folder can be named after it.

    Raises:
        ConfigError: It is one.
    """
    if os.path.basename(name.rstrip(os.sep)) in ("", os.curdir, os.pardir):
        raise ConfigError(
            f"exp_name={name!r} is no name for a new folder: name one that the run makes, such as "
            f"{os.path.join(name, 'my_run')!r}"
        )


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
        seed: See `compile_config`, as for ``save_cfg``, ``save_path`` and ``strict``.
        platform: ``local``, which also means named hosts.
        coordinator_host: Host of the coordinator; the loopback address if not given.
        learner_host: Hosts of the learners, separated by commas.
        collector_host: Hosts of the collectors, likewise.
        coordinator_port: Port of the coordinator; a free one if not given.
        learner_port: Port of the first learner, and so on upwards.
        collector_port: Port of the first collector, likewise.

    Returns:
        ``main`` and ``system``. The latter holds the coordinator's entry, with its tables of
        learners and collectors, and an entry for each worker.

    Raises:
        ConfigError: As `compile_config`.
    """
    check_platform(platform)
    notes = Notes()
    config = complete_parallel(cfg, create_cfg, system_cfg, seed, notes, strict)
    _log(notes)
    hosts = coordinator_host, learner_host, collector_host
    place_parts(config, hosts, (coordinator_port, learner_port, collector_port))
    if save_cfg:
        save_run_config(config, save_path)
    return config


def complete_parallel(
    cfg: Settings,
    create_cfg: Settings,
    system_cfg: Settings,
    seed: int = 0,
    notes: Notes | None = None,
    strict: Strict = False,
    joining: bool = False,
) -> EasyDict:
    """Check and complete the three parts; no entries for single workers yet.

    Args:
        notes: Gets unknown keys and the like; the result contains them, too, for the run's record.
        strict: Whether unknown keys are errors: all, or those at or under these paths.
        joining: For a run that starts now: if its folder exists another is taken, unless training
            is resumed, and there are entries for workers, which choose their ports and join.
    """
    notes = Notes() if notes is None else notes
    request = Request(notes=notes, seed=seed, strict=strict, parallel=True, command=True)
    system = copied(system_cfg, "system_config")
    if not system:
        notes.adapt("system_config is not given: all parts run here, files in the run's folder")
    main = complete(cfg, create_cfg, request)
    if joining and not at(main, "policy.learn.resume_training"):
        old, main.exp_name = main.exp_name, new_folder(main.exp_name)
        move_folders(system, old, main.exp_name)
    config = EasyDict(main=main, system=complete_system(system, main, notes, strict))
    if notes.facts:
        config.notes = notes.facts
    if joining:
        set_system_cfg(config)
        fill_tables(config)
    return config


def move_folders(system: Config, old: str, new: str) -> None:
    """Keep the shared folders in the run's folder when that gets another name."""
    before, now = os.path.abspath(old), os.path.abspath(new)
    for key in FOLDERS:
        path = os.path.abspath(system.get(key) or "")
        if now != before and system.get(key) and os.path.commonpath([path, before]) == before:
            system[key] = os.path.join(new, os.path.relpath(path, before))


def is_parallel(create: object) -> bool:
    """Whether a ``create_config`` names parts of parallel mode."""
    is_named = isinstance(create, Mapping) and "comm_collector" in create
    return is_named or at(create, "collector.type") in PARALLEL_COLLECTOR_REGISTRY


def serial_form(main: Settings, create: Settings) -> tuple[Config, Config]:
    """The configs of a parallel run for a serial one, or for evaluating what it trained.

    Parts and settings that only parallel mode has are left out.
    """
    serial_main, serial_create = copy.deepcopy(dict(main)), dict(create)
    for name in ("collector", "commander", "comm_learner", "comm_collector", "league"):
        serial_create.pop(name, None)
    for section, key in (("collect", "collector"), ("other", "commander")):
        (at(serial_main, f"policy.{section}") or {}).pop(key, None)
    return serial_main, serial_create


def compile_collector_config(
    policy_cfg: EasyDict, user_cfg: EasyDict, collector_cls: type[ISerialCollector]
) -> EasyDict:
    """A collector's defaults under the policy's and the user's settings for it."""
    return _part_config(policy_cfg, user_cfg, collector_cls, "collect.collector")


def compile_buffer_config(
    policy_cfg: EasyDict,
    user_cfg: EasyDict,
    buffer_cls: type[IBuffer] | Mapping[str, type[IBuffer]],
) -> EasyDict:
    """`compile_collector_config` for a buffer, or for several buffers under their names."""
    place = "other.replay_buffer"
    if not isinstance(buffer_cls, Mapping):
        return _part_config(policy_cfg, user_cfg, buffer_cls, place)
    names = buffer_cls.items()
    return EasyDict(
        {key: _part_config(policy_cfg, user_cfg, cls, f"{place}.{key}") for key, cls in names}
    )


def _part_config(policy_cfg: EasyDict, user_cfg: EasyDict, cls: type, place: str) -> EasyDict:
    own, wanted = at(policy_cfg, place) or {}, at(user_cfg, f"policy.{place}") or {}
    return layered(default_config(cls), own, wanted)

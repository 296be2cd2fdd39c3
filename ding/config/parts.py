"""The classes that a config is completed with, and where they are defined."""

import contextlib
import os
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from easydict import EasyDict

from ding.config.check import Notes, Problems
from ding.utils import (
    BUFFER_REGISTRY,
    COMM_COLLECTOR_REGISTRY,
    COMM_LEARNER_REGISTRY,
    COMMANDER_REGISTRY,
    ENV_MANAGER_REGISTRY,
    ENV_REGISTRY,
    LEARNER_REGISTRY,
    MODEL_REGISTRY,
    PARALLEL_COLLECTOR_REGISTRY,
    POLICY_REGISTRY,
    REWARD_MODEL_REGISTRY,
    SERIAL_COLLECTOR_REGISTRY,
    SERIAL_EVALUATOR_REGISTRY,
    import_module,
)
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.utils.import_helper import CONFIG_MODULE
from ding.utils.registry import Registry
from ding.utils.settings import Settings, at

#: Section of ``create_config`` to registry, and where the compiled config keeps the component.
COMPONENTS: dict[str, tuple[Registry, str]] = {
    "env": (ENV_REGISTRY, "env"),
    "env_manager": (ENV_MANAGER_REGISTRY, "env.manager"),
    "policy": (POLICY_REGISTRY, "policy"),
    "learner": (LEARNER_REGISTRY, "policy.learn.learner"),
    "collector": (SERIAL_COLLECTOR_REGISTRY, "policy.collect.collector"),
    "evaluator": (SERIAL_EVALUATOR_REGISTRY, "policy.eval.evaluator"),
    "replay_buffer": (BUFFER_REGISTRY, "policy.other.replay_buffer"),
    "reward_model": (REWARD_MODEL_REGISTRY, "reward_model"),
}
#: The same for parallel mode; what carries messages has no place in the main config.
PARALLEL_COMPONENTS: dict[str, tuple[Registry, str]] = {
    **COMPONENTS,
    "collector": (PARALLEL_COLLECTOR_REGISTRY, "policy.collect.collector"),
    "commander": (COMMANDER_REGISTRY, "policy.other.commander"),
    "comm_learner": (COMM_LEARNER_REGISTRY, ""),
    "comm_collector": (COMM_COLLECTOR_REGISTRY, ""),
}
_DEFAULT_TYPES = {
    "env_manager": "base",
    "learner": "base",
    "collector": "sample",
    "evaluator": "interaction",
    "replay_buffer": "advanced",
}
_PARALLEL_DEFAULT_TYPES = {
    **_DEFAULT_TYPES,
    "collector": "zergling",
    "commander": "solo",
    "comm_learner": "flask_fs",
    "comm_collector": "flask_fs",
}


#: A class, or several by name; ``None`` to do without one.
Part: TypeAlias = type | Mapping[str, type] | None


@dataclass
class Parts:
    """Classes by role; ``None`` for those that a config does without.

    Attributes:
        replay_buffer: With several buffers, the class of each by its name.
        parallel: Whether they are those of a parallel run.
    """

    env: type | None = None
    env_manager: type | None = None
    policy: type | None = None
    learner: type | None = None
    collector: type | None = None
    evaluator: type | None = None
    replay_buffer: type | dict[str, type] | None = None
    reward_model: type | None = None
    commander: type | None = None
    comm_learner: type | None = None
    comm_collector: type | None = None
    parallel: bool = False

    @property
    def components(self) -> dict[str, tuple[Registry, str]]:
        """Registry of each role, and where the compiled config keeps the component."""
        return PARALLEL_COMPONENTS if self.parallel else COMPONENTS


def find_parts(
    create: EasyDict,
    user: EasyDict,
    given: Mapping[str, Part],
    parallel: bool = False,
    notes: Notes | None = None,
) -> Parts:
    """Look up the classes that ``create_config`` names.

    Where it names none, the type in the main config counts, then the usual one, which is written
    into ``create``.

    Args:
        create: Types and ``import_names`` by component; completed in place.
        user: The main config.
        given: Classes instead of those that are named; ``None`` to do without one.
        notes: Gets the types that replace those that are named.

    Raises:
        ConfigError: A module cannot be imported, the two configs name different types, or something
            given is no class.
        UnknownTypeError: A type that no registry knows.
    """
    problems, parts = Problems(), Parts(parallel=parallel)
    vars(parts).update(given)
    notes = Notes() if notes is None else notes
    for name, part in given.items():
        classes = isinstance(part, Mapping) and name == "replay_buffer" and part.values()
        for one in classes or (part,):
            if one is not None and not isinstance(one, type):
                problems.add(f"{name} must be a class, got {type(one).__name__} {one!r}")
    for name in parts.components:
        if not isinstance(section := create.get(name, {}), Mapping | None):
            problems.add(
                f"create_config.{name} must be a dict such as dict(type='...'), got {section!r}"
            )
    problems.raise_if_any()
    if "env" not in given:
        _replace_env(create, notes)
    for name, (_, place) in parts.components.items():
        if place and name not in given:
            _settle_type(name, place, create, user, problems)
    if "policy" not in given and not at(create, "policy.type"):
        known = ", ".join(sorted(POLICY_REGISTRY.query()))
        problems.add(f"missing key create_config.policy.type: one of {known}")
    problems.raise_if_any()
    parts.policy = parts.policy or _lookup("policy", create, parts)
    on_policy = _wanted(user, parts.policy, "on_policy")
    if not on_policy and "replay_buffer" not in given:
        _prioritise(create, _wanted(user, parts.policy, "priority"), notes)
    if not parallel and "collector" not in given:
        _count_episodes(create, user, notes)
    for name, type_ in (_PARALLEL_DEFAULT_TYPES if parallel else _DEFAULT_TYPES).items():
        if name in given or (name == "replay_buffer" and on_policy and name not in create):
            continue
        section = create.setdefault(name, EasyDict())
        if name == "replay_buffer" and (several := _named_sections(section)):
            parts.replay_buffer = {key: _lookup(f"{name}.{key}", create, parts) for key in several}
            continue
        section.type = section.get("type") or type_
        setattr(parts, name, _lookup(name, create, parts))
    if "env" not in given and at(create, "env.type"):
        parts.env = _lookup("env", create, parts)
    if "reward_model" not in given and at(create, "reward_model.type"):
        # Scripts may build one of another kind themselves; a run that builds it refuses the type.
        with contextlib.suppress(UnknownTypeError):
            parts.reward_model = _lookup("reward_model", create, parts)
    return parts


def _wanted(user: EasyDict, policy: object, key: str) -> Any:
    written = at(user, f"policy.{key}")
    return at(default_config(policy), key) if written is None else written


def _count_episodes(create: EasyDict, user: EasyDict, notes: Notes) -> None:
    """Take the collector that counts in episodes if that is what the user counts in."""
    wanted = at(user, "policy.collect") or {}
    if wanted.get("n_episode") is None or wanted.get("n_sample") is not None:
        return
    if not at(create, "collector.type"):
        create.setdefault("collector", EasyDict()).type = "episode"
        notes.adapt(
            f"policy.collect.n_episode={wanted['n_episode']} without a collector's type: the "
            "collector 'episode' collects"
        )


def _prioritise(create: EasyDict, priority: object, notes: Notes) -> None:
    """Take the buffer that draws by priority if that is what the policy is to learn from."""
    kind = at(create, "replay_buffer.type")
    if priority and kind in ("naive", "elastic"):
        create.replay_buffer.type = _DEFAULT_TYPES["replay_buffer"]
        notes.adapt(
            f"policy.priority=True: samples are drawn by priority from the replay buffer "
            f"{create.replay_buffer.type!r}; {kind!r}, which create_config names, draws uniformly"
        )


def _named_sections(section: Settings) -> list[str]:
    """Names of the buffers that ``create_config.replay_buffer`` gives a type each."""
    if section.get("type"):
        return []
    return [key for key, one in section.items() if isinstance(one, Mapping) and one.get("type")]


def name_parts(create: EasyDict, given: Mapping[str, Part]) -> None:
    """Write the types of classes into a ``create_config``, in place."""
    for name, part in given.items():
        if name == "reward_model":  # scripts build it themselves
            continue
        section, registry = create.setdefault(name, EasyDict()), COMPONENTS[name][0]
        if isinstance(part, Mapping):
            section.pop("type", None)
            for key, one in part.items():
                section.setdefault(key, EasyDict()).type = _type_of(registry, one)
        else:
            section.type = _type_of(registry, part)


def _type_of(registry: Registry, part: object) -> str:
    # A class that is not registered cannot be found by its name later, and the error will say so.
    types = (key for key, value in registry.items() if value is part)
    return next(types, getattr(part, "__name__", ""))


def is_ours(part: Callable[..., object] | Mapping[str, type] | None) -> bool:
    """Whether all the keys of a class, or of several, are known: it is of this package."""
    if isinstance(part, Mapping):
        return all(is_ours(one) for one in part.values())
    return part is not None and part.__module__.split(".")[0] == "ding"


def default_config(cls: object) -> EasyDict:
    """A class's defaults; empty if it has none."""
    return cls.default_config() if hasattr(cls, "default_config") else EasyDict()


def _settle_type(
    name: str, place: str, create: EasyDict, user: EasyDict, problems: Problems
) -> None:
    """Take a missing type from the main config; report two different ones."""
    section = at(user, place)
    wanted = section.get("type") if isinstance(section, Mapping) else None
    if not wanted:
        return
    named = at(create, f"{name}.type")
    if not named:
        create.setdefault(name, EasyDict()).type = wanted
        if section.get("import_names"):
            create[name].import_names = section.import_names
    elif name == "policy" and len({str(t).removesuffix("_command") for t in (named, wanted)}) == 1:
        section.type = named  # the pipelines choose between a policy and its command mode
    elif named != wanted:
        problems.add(
            f"{place}.type={wanted!r} and create_config.{name}.type={named!r} name different "
            "types: keep one"
        )


def _lookup(name: str, create: Settings, parts: Parts) -> Any:
    section, registry = at(create, name), parts.components[name.split(".")[0]][0]
    where = f"create_config.{name}.import_names"
    try:
        import_names(section.get("import_names", []), where)
    except ConfigError as error:
        missing = (getattr(error.__cause__, "name", None) or "").split(".")[0]
        if missing in ("ding", "dizoo") and _is_built_in(registry, section):
            section["import_names"] = []  # the type has another place here
        elif missing == "dizoo":
            raise ConfigError(_no_dizoo(name, section, where)) from error
        elif missing != "ding" or not registry.why_left_out(section.get("type")):
            raise
    return registry.get(section["type"])  # raises with the reason for one that is left out


def _is_built_in(registry: Registry, section: Settings) -> bool:
    return section.get("type") in registry and is_ours(registry.get(section["type"]))


def _replace_env(create: EasyDict, notes: Notes) -> None:
    """Take an environment of this package where the module of one like it is not installed."""
    section = create.get("env")
    if not isinstance(section, EasyDict) or not section.get("import_names"):
        return
    if section.get("type") == "gymnasium":
        return  # the module registers the user's own environment: no type replaces that
    try:
        import_module(section.import_names)
        return
    except ModuleNotFoundError as error:
        missing = error.name or ""
    except (ImportError, TypeError):
        return  # the lookup reports it
    if section.get("type") not in ENV_REGISTRY:
        return
    whose = "of this package" if _is_built_in(ENV_REGISTRY, section) else "that is registered"
    notes.adapt(
        f"create_config.env.import_names={list(section.import_names)}: there is no module "
        f"{missing!r}; the type {section.type!r} {whose} is used instead"
    )
    section.import_names = []


def import_names(modules: list[str], where: str) -> None:
    """Import modules that a config names.

    Raises:
        ConfigError: One is missing, or what it imports fails; names the key ``where``.
    """
    try:
        import_module(modules)
    except (ImportError, TypeError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _no_dizoo(name: str, section: Settings, where: str) -> str:
    message = f"{where}={list(section['import_names'])}: 'dizoo' is not part of this package"
    if name != "env":
        return f"{message}; leave import_names out if {section['type']!r} is a built-in type"
    ours = ", ".join(sorted(ENV_REGISTRY.query()))
    return (
        f"{message}, and neither is the env type {section['type']!r}; there are {ours}. Any other "
        "environment of gymnasium: create_config.env=dict(type='gymnasium') with "
        "main_config.env.env_id"
    )


def add_origins(create: EasyDict, user: EasyDict, parts: Parts) -> None:
    """Complete the ``import_names`` of types that were registered without them, in place.

    A config file may import a module of environments, or define one, and never name it.

    Args:
        create: Types by component.
        user: The main config.
        parts: The classes of the types.
    """
    found = [
        (create[name], origin(getattr(parts, name))) for name in parts.components if name in create
    ]
    env_id = at(user, "env.env_id")
    if at(create, "env.type") == "gymnasium" and isinstance(env_id, str):
        found.append((create.env, _registrant(env_id)))
    model = at(user, "policy.model")
    if isinstance(model, Mapping) and model.get("type") in MODEL_REGISTRY:
        found.append((user.policy.model, origin(MODEL_REGISTRY[model["type"]])))
    for section, module in found:
        if module is not None and not section.get("import_names"):
            section.import_names = [module]


def origin(part: object) -> str | None:
    """What to import for a class or function: a module, or a config file.

    ``None`` if nothing has to be imported, or a script is running that cannot be.
    """
    module = getattr(part, "__module__", None)
    if module is None or module.split(".")[0] == "ding":
        return None
    if module != CONFIG_MODULE:
        return module if module in sys.modules and module != "__main__" else None
    # The file of a function, or of a class's first method.
    for member in [part, *vars(part).values()] if isinstance(part, type) else [part]:
        function = getattr(member, "__func__", member)
        if isinstance(function, types.FunctionType) and function.__module__ == CONFIG_MODULE:
            return os.path.abspath(function.__code__.co_filename)
    return None


def entry_point(env_id: object) -> str | Callable[..., object] | None:
    """What makes environments of an id that gymnasium knows: text, or the class or function."""
    spec = getattr(sys.modules.get("gymnasium"), "registry", {}).get(env_id)
    return getattr(spec, "entry_point", None)


def _registrant(env_id: str) -> str | None:
    """The module whose import makes an id of gymnasium known; ``None`` if that is not needed."""
    entry = entry_point(env_id)
    if isinstance(entry, str):
        module = entry.partition(":")[0]
        is_known = module.split(".")[0] == "gymnasium" or module not in sys.modules
        return None if is_known else module
    return None if entry is None else origin(entry)


def search_path(create: Settings) -> list[str]:
    """Folders of modules in ``import_names`` that are neither installed nor of this package."""
    folders: dict[str, None] = {}
    sections = (section for section in create.values() if isinstance(section, Mapping))
    for name in (name for one in sections for name in one.get("import_names") or ()):
        top = sys.modules.get(name.split(".")[0]) if isinstance(name, str) else None
        file = getattr(top, "__file__", None)
        if file is None or name.split(".")[0] == "ding":
            continue
        folder = os.path.dirname(os.path.abspath(file))
        if hasattr(top, "__path__"):
            folder = os.path.dirname(folder)
        if "site-packages" not in folder and not folder.startswith(os.path.join(sys.prefix, "")):
            folders[folder] = None
    return list(folders)

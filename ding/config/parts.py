"""The classes that a config is completed with, and where they are defined."""

import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

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
from ding.utils.import_helper import registrant, registrant_of_env
from ding.utils.registry import Registry
from ding.utils.settings import at
from ding.utils.types import Settings


class Component(NamedTuple):
    """A section of ``create_config``.

    Attributes:
        registry: Of its types.
        place: Where the compiled main config keeps it; empty for what carries messages.
        usual: The type where a config names none; empty if none is needed.
    """

    registry: Registry
    place: str
    usual: str = ""


#: Modes of policies that do not learn by acting alone, and what they learn from.
SOURCES = {
    **dict.fromkeys(("serial_offline", "serial_bc", "serial_dt"), "a data set"),
    **dict.fromkeys(("serial_dqfd", "serial_sqil"), "an expert's steps"),
}
COMPONENTS = {
    "env": Component(ENV_REGISTRY, "env"),
    "env_manager": Component(ENV_MANAGER_REGISTRY, "env.manager", "base"),
    "policy": Component(POLICY_REGISTRY, "policy"),
    "learner": Component(LEARNER_REGISTRY, "policy.learn.learner", "base"),
    "collector": Component(SERIAL_COLLECTOR_REGISTRY, "policy.collect.collector", "sample"),
    "evaluator": Component(SERIAL_EVALUATOR_REGISTRY, "policy.eval.evaluator", "interaction"),
    "replay_buffer": Component(BUFFER_REGISTRY, "policy.other.replay_buffer", "advanced"),
    "reward_model": Component(REWARD_MODEL_REGISTRY, "reward_model"),
}
PARALLEL_COMPONENTS = {
    **COMPONENTS,
    "collector": Component(PARALLEL_COLLECTOR_REGISTRY, "policy.collect.collector", "zergling"),
    "commander": Component(COMMANDER_REGISTRY, "policy.other.commander", "solo"),
    "comm_learner": Component(COMM_LEARNER_REGISTRY, "", "flask_fs"),
    "comm_collector": Component(COMM_COLLECTOR_REGISTRY, "", "flask_fs"),
}
#: A class, or several by name; ``None`` to do without one.
Part: TypeAlias = type | Mapping[str, type] | None


class Parts(dict[str, Part]):
    """Classes by role; with several replay buffers, the class of each by its name.

    Attributes:
        parallel: Whether they are those of a parallel run.
    """

    def __init__(self, given: Mapping[str, Part] | None = None, parallel: bool = False) -> None:
        super().__init__(given or {})
        self.parallel = parallel
        self.components = PARALLEL_COMPONENTS if parallel else COMPONENTS

    @property
    def env(self) -> Part:
        return self.get("env")

    @property
    def policy(self) -> Part:
        return self.get("policy")


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
    problems, parts = Problems(), Parts(given, parallel)
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
    for name, component in parts.components.items():
        if component.place and name not in given:
            _settle_type(name, component.place, create, user, problems)
    if "policy" not in given and not at(create, "policy.type"):
        known = ", ".join(sorted(POLICY_REGISTRY.query()))
        problems.add(f"missing key create_config.policy.type: one of {known}")
    problems.raise_if_any()
    if "env" not in given and at(create, "env.type"):  # its module may register the policy, too
        parts["env"] = _lookup("env", create, parts, notes)
    policy = parts["policy"] = parts.policy or _lookup("policy", create, parts, notes)
    on_policy = _wanted(user, policy, "on_policy")
    if not on_policy and "replay_buffer" not in given:
        _prioritise(create, _wanted(user, policy, "priority"), notes)
    if not parallel and "collector" not in given:
        _count_episodes(create, user, notes)
    for name, component in parts.components.items():
        unused = name == "replay_buffer" and on_policy and name not in create
        if not component.usual or name in given or unused:
            continue
        section = create.setdefault(name, EasyDict())
        if name == "replay_buffer" and (several := _named_sections(section)):
            found = {key: _lookup(f"{name}.{key}", create, parts, notes) for key in several}
            parts[name] = found
            continue
        section.type = section.get("type") or component.usual
        parts[name] = _lookup(name, create, parts, notes)
    if "reward_model" not in given and at(create, "reward_model.type"):
        # Scripts may build one of another kind themselves; a run that builds it refuses the type.
        with contextlib.suppress(UnknownTypeError):
            parts["reward_model"] = _lookup("reward_model", create, parts, notes)
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
        create.replay_buffer.type = COMPONENTS["replay_buffer"].usual
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
        if name in ("reward_model", "world_model"):  # scripts build it themselves
            continue
        section, registry = create.setdefault(name, EasyDict()), COMPONENTS[name].registry
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


def policy_mode(policy: object, on_policy: bool) -> str:
    """The mode of the command line that trains a policy, as its class says."""
    usual = "serial_onpolicy" if on_policy else "serial"
    return str(getattr(policy, "pipeline", "") or usual)


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


def _lookup(name: str, create: Settings, parts: Parts, notes: Notes) -> Any:
    """The class of a type; one of this package where the module of one like it is missing."""
    section, registry = at(create, name), parts.components[name.split(".")[0]].registry
    where = f"create_config.{name}.import_names"
    try:
        import_names(section.get("import_names", []), where)
    except ConfigError as error:
        cause, type_ = error.__cause__, section.get("type")
        module = getattr(cause, "name", None) or ""
        missing = module.split(".")[0]
        # The module of the type 'gymnasium' registers the user's own environment: no type
        # replaces that.
        is_known = name == "env" and type_ != "gymnasium" and type_ in registry
        if is_known and isinstance(cause, ModuleNotFoundError):
            whose = "of this package" if _is_built_in(registry, section) else "that is registered"
            notes.adapt(
                f"{where}={list(section.import_names)}: there is no module {module!r}; the type "
                f"{type_!r} {whose} is used instead"
            )
            section.import_names = []
        elif missing in ("ding", "dizoo") and _is_built_in(registry, section):
            section["import_names"] = []  # the type has another place here
        elif missing == "dizoo":
            raise ConfigError(_no_dizoo(name, section, where)) from error
        elif missing != "ding" or not registry.why_left_out(section.get("type")):
            raise
    return registry.get(section["type"])  # raises with the reason for one that is left out


def _is_built_in(registry: Registry, section: Settings) -> bool:
    return section.get("type") in registry and is_ours(registry.get(section["type"]))


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
    found: list[tuple[EasyDict, str | None]] = [
        (section, registrant(component.registry.origin(section.get("type"))))
        for name, component in parts.components.items()
        if isinstance(section := create.get(name), EasyDict)
    ]
    env_id = at(user, "env.env_id")
    if at(create, "env.type") == "gymnasium" and isinstance(env_id, str):
        found.append((create.env, registrant_of_env(env_id, entry_point(env_id))))
    model = at(user, "policy.model")
    if isinstance(model, Mapping):
        found.append((user.policy.model, registrant(MODEL_REGISTRY.origin(model.get("type")))))
    for section, module in found:
        if module is not None and not section.get("import_names"):
            section.import_names = [module]


def entry_point(env_id: object) -> str | Callable[..., object] | None:
    """What makes environments of an id that gymnasium knows: text, or the class or function."""
    spec = getattr(sys.modules.get("gymnasium"), "registry", {}).get(env_id)
    return getattr(spec, "entry_point", None)


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

"""The classes that a config is completed with, and where they are defined."""

import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from easydict import EasyDict

from ding.config.check import Notes, Problems
from ding.utils import import_module, registry_factory as reg
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.utils.import_helper import registrant, registrant_of_env
from ding.utils.registry import Registry
from ding.utils.settings import at
from ding.utils.types import Settings


class Component(NamedTuple):
    """A section of ``create_config``."""

    registry: Registry  # of its types
    place: str  # where the compiled main config keeps it; empty for what carries messages
    usual: str = ""  # the type where a config names none; empty if none is needed


#: Modes of policies that do not learn by acting alone, and what they learn from.
SOURCES = {
    **dict.fromkeys(("serial_offline", "serial_bc", "serial_dt"), "a data set"),
    **dict.fromkeys(("serial_dqfd", "serial_sqil"), "an expert's steps"),
}
COMPONENTS = {
    "env": Component(reg.ENV_REGISTRY, "env"),
    "env_manager": Component(reg.ENV_MANAGER_REGISTRY, "env.manager", "base"),
    "policy": Component(reg.POLICY_REGISTRY, "policy"),
    "learner": Component(reg.LEARNER_REGISTRY, "policy.learn.learner", "base"),
    "collector": Component(reg.SERIAL_COLLECTOR_REGISTRY, "policy.collect.collector", "sample"),
    "evaluator": Component(reg.SERIAL_EVALUATOR_REGISTRY, "policy.eval.evaluator", "interaction"),
    "replay_buffer": Component(reg.BUFFER_REGISTRY, "policy.other.replay_buffer", "advanced"),
    "reward_model": Component(reg.REWARD_MODEL_REGISTRY, "reward_model"),
}
PARALLEL_COMPONENTS = {
    **COMPONENTS,
    "collector": Component(reg.PARALLEL_COLLECTOR_REGISTRY, "policy.collect.collector", "zergling"),
    "commander": Component(reg.COMMANDER_REGISTRY, "policy.other.commander", "solo"),
    "comm_learner": Component(reg.COMM_LEARNER_REGISTRY, "", "flask_fs"),
    "comm_collector": Component(reg.COMM_COLLECTOR_REGISTRY, "", "flask_fs"),
}
#: A class, or several by name; ``None`` to do without one.
Part: TypeAlias = type | Mapping[str, type] | None


class Parts(dict[str, Part]):
    """Classes by role; with several replay buffers, the class of each by its name."""

    def __init__(self, given: Mapping[str, Part] | None = None, parallel: bool = False) -> None:
        super().__init__(given or {})
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
    """Look up the classes that ``create_config`` names; ``None`` in ``given`` does without one.

    Where it names none, the type in the main config (``user``) counts, then the usual one, which
    is written into ``create``. ``notes`` gets the types that replace those that are named.
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
        known = ", ".join(sorted(reg.POLICY_REGISTRY.query()))
        problems.add(f"missing key create_config.policy.type: one of {known}")
    problems.raise_if_any()
    if "env" not in given and at(create, "env.type"):  # its module may register the policy, too
        parts["env"] = _lookup("env", create, parts, notes)
    policy = parts["policy"] = parts.policy or _lookup("policy", create, parts, notes)
    on_policy = _wanted(user, policy, "on_policy")
    if not on_policy and "replay_buffer" not in given and _wanted(user, policy, "priority"):
        _prioritise(create, notes)
    if not parallel and "collector" not in given:
        _count_episodes(create, user, notes)
    for name, component in parts.components.items():
        unused = name == "replay_buffer" and on_policy and name not in create
        if not component.usual or name in given or unused:
            continue
        section = create.setdefault(name, EasyDict())
        names = [key for key, one in section.items() if at(one, "type")]
        if name == "replay_buffer" and names and not section.get("type"):
            parts[name] = {key: _lookup(f"{name}.{key}", create, parts, notes) for key in names}
        else:
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
    samples, episodes = (at(user, f"policy.collect.{key}") for key in ("n_sample", "n_episode"))
    if episodes is not None and samples is None and not at(create, "collector.type"):
        create.setdefault("collector", EasyDict()).type = "episode"
        notes.adapt(
            f"policy.collect.n_episode={episodes} without a collector's type: the collector "
            "'episode' collects"
        )


def _prioritise(create: EasyDict, notes: Notes) -> None:
    """Take the buffer that draws by priority: that is what the policy is to learn from."""
    if (kind := at(create, "replay_buffer.type")) in ("naive", "elastic"):
        create.replay_buffer.type = COMPONENTS["replay_buffer"].usual
        notes.adapt(
            f"policy.priority=True: samples are drawn by priority from the replay buffer "
            f"{create.replay_buffer.type!r}; {kind!r}, which create_config names, draws uniformly"
        )


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
    wanted, named = at(user, f"{place}.type"), at(create, f"{name}.type")
    if not wanted or named == wanted:
        return
    section = at(user, place)
    if not named:
        create.setdefault(name, EasyDict()).type = wanted
        if section.get("import_names"):
            create[name].import_names = section.import_names
    elif name == "policy" and len({str(t).removesuffix("_command") for t in (named, wanted)}) == 1:
        section.type = named  # the pipelines choose between a policy and its command mode
    else:
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
        missing, is_known = module.split(".")[0], type_ in registry
        is_built_in = is_known and is_ours(registry.get(type_))
        # The module of the type 'gymnasium' registers the user's own environment: no type
        # replaces that.
        is_replaced = is_known and name == "env" and type_ != "gymnasium"
        if is_replaced and isinstance(cause, ModuleNotFoundError):
            whose = "of this package" if is_built_in else "that is registered"
            notes.adapt(
                f"{where}={list(section.import_names)}: there is no module {module!r}; the type "
                f"{type_!r} {whose} is used instead"
            )
            section.import_names = []
        elif missing in ("ding", "dizoo") and is_built_in:
            section["import_names"] = []  # the type has another place here
        elif missing == "dizoo":
            raise ConfigError(_no_dizoo(name, section, where)) from error
        elif missing != "ding" or not registry.why_left_out(type_):
            raise
    return registry.get(section["type"])  # raises with the reason for one that is left out


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
    ours = ", ".join(sorted(reg.ENV_REGISTRY.query()))
    return (
        f"{message}, and neither is the env type {section['type']!r}; there are {ours}. Any other "
        "environment of gymnasium: create_config.env=dict(type='gymnasium') with "
        "main_config.env.env_id"
    )


def add_origins(create: EasyDict, user: EasyDict, parts: Parts) -> None:
    """Complete the ``import_names`` of types that were registered without them, in place.

    A config file may import a module of environments, or define one, and never name it.
    """
    found: list[tuple[EasyDict, str | None]] = [
        (create[name], registrant(component.registry.origin(create[name].get("type"))))
        for name, component in parts.components.items()
        if isinstance(create.get(name), EasyDict)
    ]
    env_id, model = at(user, "env.env_id"), at(user, "policy.model")
    if at(create, "env.type") == "gymnasium" and isinstance(env_id, str):
        found.append((create.env, registrant_of_env(env_id, entry_point(env_id))))
    if isinstance(model, Mapping):
        found.append((user.policy.model, registrant(reg.MODEL_REGISTRY.origin(model.get("type")))))
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
    sections = [section for section in create.values() if isinstance(section, Mapping)]
    for name in [name for one in sections for name in one.get("import_names") or ()]:
        package = name.split(".")[0] if isinstance(name, str) else "ding"
        module = sys.modules.get(package)
        file = getattr(module, "__file__", None)
        if package == "ding" or file is None:
            continue
        folder = os.path.dirname(os.path.abspath(file))
        if hasattr(module, "__path__"):
            folder = os.path.dirname(folder)
        if "site-packages" not in folder and not folder.startswith(os.path.join(sys.prefix, "")):
            folders[folder] = None
    return list(folders)

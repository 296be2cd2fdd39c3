"""What of a parallel config says which engine carries the run."""

from collections.abc import Mapping
from typing import Any

from easydict import EasyDict

from ding.config.check import at
from ding.config.parts import default_config, import_names
from ding.utils import COMM_COLLECTOR_REGISTRY, COMM_LEARNER_REGISTRY, ENGINE_REGISTRY
from ding.utils.errors import ConfigError

DEFAULT_ENGINE = "flask_fs"
_COMM = {"comm_collector": COMM_COLLECTOR_REGISTRY, "comm_learner": COMM_LEARNER_REGISTRY}
_WHERE = "system_config.engine"


def settle_engine(system: EasyDict, create: EasyDict) -> None:
    """Make ``system.engine`` a section with a type, in place.

    It may be given as a name alone, or by a comm type that is called like an engine: then that
    engine carries the run, with the usual workers unless there is a comm type of that name.

    Raises:
        ConfigError: It is neither a section nor a name.
    """
    for name, registry in _COMM.items():
        section = create.get(name)
        type_ = at(create, f"{name}.type")
        if not isinstance(section, EasyDict) or type_ in (None, DEFAULT_ENGINE):
            continue
        import_names(section.get("import_names", []), f"create_config.{name}.import_names")
        if type_ in ENGINE_REGISTRY:
            system.setdefault("engine", type_)
            if type_ not in registry:
                section.type = DEFAULT_ENGINE
    given = system.get("engine")
    if isinstance(given, str):
        system.engine = EasyDict(type=given)
    elif given is not None and not isinstance(given, Mapping):
        raise ConfigError(f"{_WHERE} must be a dict with 'type', or a name, got {given!r}")


def has_own_engine(system: Mapping[str, Any]) -> bool:
    """Whether a compiled ``system`` names another engine than the default one."""
    return bool(at(system, "engine.type") not in (None, DEFAULT_ENGINE))


def choose_engine(system: dict[str, Any], type_: str | None, address: str | None) -> set[str]:
    """Set an engine, or its address, in a user's system config, in place.

    What another engine's section says is left out, but for the modules to import.

    Returns:
        Paths of keys that the engine has to know.
    """
    given = system.get("engine") or {}
    section = {"type": given} if isinstance(given, str) else dict(given)
    if type_ is not None and section.get("type") != type_:
        section = {key: section[key] for key in section if key == "import_names"} | {"type": type_}
    if address is not None:
        section["address"] = address
    if section:
        system["engine"] = section
    return set() if address is None else {f"{_WHERE}.address"}


def engine_keys(system: Mapping[str, Any]) -> dict[str, Any]:
    """The known keys of the engine's section, with defaults.

    Raises:
        UnknownTypeError: There is no such engine.
        ConfigError: Its modules cannot be imported.
    """
    section = system.get("engine") or {}
    import_names(section.get("import_names", []), f"{_WHERE}.import_names")
    engine: Any = ENGINE_REGISTRY.get(section.get("type", DEFAULT_ENGINE))
    keys = {"type": DEFAULT_ENGINE, "import_names": [], **default_config(engine)}
    keys.pop("cfg_type", None)
    return keys

"""Where the classes of a config are defined, so that other processes can import them."""

import os
import sys
import types
from collections.abc import Mapping
from typing import Any

from easydict import EasyDict

from ding.config.check import at
from ding.config.parts import Parts
from ding.utils import MODEL_REGISTRY
from ding.utils.import_helper import CONFIG_MODULE


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


def origin(part: Any) -> str | None:
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


def entry_point(env_id: Any) -> Any:
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


def search_path(create: Mapping[str, Any]) -> list[str]:
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

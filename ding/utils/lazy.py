"""Packages whose names are imported on first use, so that start-up pays only for what it needs."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any


def lazy_exports(
    module_globals: dict[str, Any], exports: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Install a PEP 562 ``__getattr__`` and ``__dir__`` into a package.

    Args:
        module_globals: ``globals()`` of the package's ``__init__``.
        exports: Submodule (relative, without the dot) to the public names that it provides.

    Returns:
        Every public name: the value for the package's ``__all__``.
    """
    package = module_globals["__name__"]
    home = {name: module for module, names in exports.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{home[name]}"), name)
        module_globals[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*module_globals, *home})

    module_globals["__getattr__"] = __getattr__
    module_globals["__dir__"] = __dir__
    return tuple(home)

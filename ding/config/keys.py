"""Types of configs for editors and checkers, which read ``keys.pyi``; made from the schema.

When called they are plain dicts: ``MainConfig(env=EnvConfig(stop_value=195))``.
"""

from pathlib import Path
from typing import TypedDict


def __getattr__(name: str) -> type:
    if f"class {name}(" not in Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Of a type that can be subclassed with ``total=False``.
    found = globals()[name] = TypedDict(name, {}, total=False)
    return found

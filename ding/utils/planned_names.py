"""Names of the API that users' code may ask for and that are not there (yet)."""

from collections.abc import Callable, Iterable
from typing import Any

from ding.utils.errors import MissingNameError


def with_planned(
    package: str, names: Iterable[str], getattr_: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """A ``__getattr__`` of a package that says of some names that they are not there.

    As an `ImportError`: of an `AttributeError`, ``from package import name`` would not show the
    words.

    Args:
        package: Name of the package.
        names: What is not there.
        getattr_: What finds the other names.
    """
    planned = frozenset(names)

    def find(name: str) -> Any:
        try:
            if getattr_ is None:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            return getattr_(name)
        except AttributeError:
            if name not in planned:
                raise
        raise MissingNameError(
            f"{package}.{name} is not there: this version of ding does not have it. "
            "`ding -q policy` lists the policies that it has, README.md the other parts"
        )

    return find

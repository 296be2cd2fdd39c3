"""Registries of named types, to which the ``type`` of a config refers."""

import difflib
import importlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar, overload

from ding.utils.errors import DuplicateTypeError, UnknownTypeError

#: A class or function whose parameters and result depend on the registry.
Maker: TypeAlias = Callable[..., Any]
Registered = TypeVar("Registered", bound=Maker)


class Origin(NamedTuple):
    """The place in the source from which a name was registered."""

    module: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Registry(dict[str, Maker]):
    """A dict of names to classes or functions.

    ``@REGISTRY.register('name')`` adds an entry. Names that are declared with `register_lazy` are
    known from the start, and their module is imported at the first look-up.

    Attributes:
        label: Kind of the types, for error messages (``'policy'``).
        import_key: The config key that lists the modules to import for more types.
        gives_way: Whether declared names may be replaced without ``force_overwrite``: environments
            and data sets of users often have the names of built-in ones.

    Example:

        >>> from ding.utils import Registry
        >>> SHAPES = Registry()
        >>> @SHAPES.register("circle")
        ... class Circle:
        ...     pass
        >>> type(SHAPES.build("circle")).__name__
        'Circle'
    """

    def __init__(self, *args: Mapping[str, Maker], **kwargs: Maker) -> None:
        super().__init__(*args, **kwargs)
        self.label = ""
        #: Types of DI-engine that are not part of this package, with a description.
        self.left_out: dict[str, str] = {}
        #: Unregistered names that users try, and the corresponding setting.
        self.hints: dict[str, str] = {}
        self.import_key = "import_names"
        self.gives_way = False
        self._lazy: dict[str, str] = {}
        self._replaced: set[str] = set()
        self._origins: dict[str, Origin] = {}
        self._deriver: tuple[str, str, str] | None = None
        self._derived: set[str] = set()

    @overload
    def register(
        self,
        module_name: str | None = None,
        module: None = None,
        force_overwrite: bool = False,
    ) -> Callable[[Registered], Registered]: ...

    @overload
    def register(
        self, module_name: str | None, module: Registered, force_overwrite: bool = False
    ) -> Registered: ...

    def register(
        self,
        module_name: str | None = None,
        module: Maker | None = None,
        force_overwrite: bool = False,
    ) -> Maker:
        """Register `module`, or return a decorator that registers a class or function.

        The same definition may be registered again: a module may be reloaded, or imported under its
        name after it ran as ``__main__``.

        Args:
            module_name: The name; None for the object's ``__name__``.

        Raises:
            DuplicateTypeError: The name is registered and `force_overwrite` is false.
        """
        if module is not None:
            return self._add(module_name, module, force_overwrite)
        return lambda obj: self._add(module_name, obj, force_overwrite)

    def register_lazy(self, module_name: str, import_path: str) -> None:
        """Declare that importing `import_path` registers `module_name`."""
        self._lazy[module_name] = import_path

    def derive(self, suffix: str, import_path: str, function: str) -> None:
        """Derive unregistered names with this suffix from the registered names without it.

        Args:
            suffix: The suffix.
            import_path: Module of the function.
            function: Name of the function, which takes the object registered without the suffix.
        """
        self._deriver = suffix, import_path, function

    def get(self, module_name: str) -> Maker:  # type: ignore[override]
        """The object registered under a name; imports its module if the name is only declared.

        Raises:
            UnknownTypeError: The name is not registered.
        """
        return self[module_name]

    def build(self, obj_type: str, *obj_args: object, **obj_kwargs: object) -> Any:
        """Call the object registered as `obj_type` with the other arguments."""
        return self[obj_type](*obj_args, **obj_kwargs)

    def origin(self, module_name: str | None) -> Origin | None:
        """Where a name, or the name it is derived from, was registered; ``None`` if unknown."""
        name = module_name or ""
        if name in self._derived and self._deriver is not None:
            name = name.removesuffix(self._deriver[0])
        return self._origins.get(name)

    def query(self) -> list[str]:
        """All known names, including types that are not imported yet."""
        return list(dict.fromkeys([*self.keys(), *self._lazy]))

    def query_details(self, aliases: Iterable[str] | None = None) -> OrderedDict[str, str]:
        """Map each name to the ``'file:line'`` that registered it; imports declared types."""
        details = OrderedDict()
        for name in self.query() if aliases is None else aliases:
            target = self[name]
            details[name] = str(self._origins[name]) if name in self._origins else repr(target)
        return details

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._lazy

    def __missing__(self, name: str) -> Maker:
        path = self._lazy.get(name) if isinstance(name, str) else None
        if path is not None:
            importlib.import_module(path)
            if not super().__contains__(name):
                raise UnknownTypeError(
                    f"importing {path} was to register the {self.label or 'type'} {name!r}, "
                    f"but it did not"
                )
        elif self._deriver is None or not str(name).endswith(self._deriver[0]):
            raise UnknownTypeError(self._unknown(name))
        else:
            suffix, path, function = self._deriver
            source = self[str(name).removesuffix(suffix)]
            self[name] = getattr(importlib.import_module(path), function)(source)
            self._derived.add(name)
        return super().__getitem__(name)

    def _add(self, name: str | None, obj: Maker, force_overwrite: bool) -> Maker:
        name = obj.__name__ if name is None else name
        origin = _calling_place()
        # A declared type is registered by the declared module, or by a module in that package.
        if name in self._lazy and f"{origin.module}.".startswith(f"{self._lazy[name]}."):
            if name in self._replaced:
                return obj  # a user's type has already replaced it
        elif (
            name in self
            and not force_overwrite
            and name not in self._derived
            and not (self.gives_way and name in self._lazy and name not in self._replaced)
            and not self._is_same(name, obj, origin)
        ):
            holder = self._origins.get(name) or self._lazy.get(name) or repr(self[name])
            raise DuplicateTypeError(
                f"{self.label or 'type'} {name!r} is already registered, by {holder}; "
                f"choose another name, or pass force_overwrite=True to replace it"
            )
        elif name in self._lazy:
            self._replaced.add(name)
        self[name] = obj
        self._origins[name] = origin
        self._derived.discard(name)
        if self._deriver is not None:
            self._derive_again(name, f"{name}{self._deriver[0]}")
        return obj

    def _derive_again(self, name: str, derived: str) -> None:
        """Drop the object derived from a name that is registered again, unless a user set it."""
        if derived in self._lazy:
            if name not in self._replaced or derived in self._replaced:
                return
            del self._lazy[derived]
        elif derived not in self._derived:
            return
        self._derived.discard(derived)
        self.pop(derived, None)

    def _is_same(self, name: str, obj: Maker, origin: Origin) -> bool:
        if not super().__contains__(name):
            return False
        known = super().__getitem__(name)
        if known is obj:
            return True
        qualname = getattr(obj, "__qualname__", None)
        if qualname is None or qualname != getattr(known, "__qualname__", None):
            return False
        if self._origins.get(name, origin)[1:] == origin[1:]:
            return True
        return known.__module__ == obj.__module__ and "<locals>" not in qualname

    def why_left_out(self, name: object) -> str | None:
        """Description of a DI-engine type that this package does not have; else ``None``."""
        return self.left_out.get(str(name).removesuffix("_command"))

    def _unknown(self, name: object) -> str:
        if (what := self.why_left_out(name)) is not None:
            return (
                f"{self.label} type {name!r} ({what}) is left out of this package, see "
                "docs/differences.md; to use your own, name the module that registers it in "
                f"{self.import_key}"
            )
        known = [str(k) for k in self.query()]
        close = difflib.get_close_matches(str(name), known, n=3)
        hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        if name in self.hints:
            hint = f"use {self.hints[name]}; "
        return (
            f"no {self.label + ' ' if self.label else ''}type {name!r} is registered; {hint}"
            f"known: {', '.join(sorted(known)) or 'none'}. If it is your own, name the module that "
            f"registers it in {self.import_key}"
        )


def _calling_place() -> Origin:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return Origin(frame.f_globals.get("__name__", ""), frame.f_code.co_filename, frame.f_lineno)

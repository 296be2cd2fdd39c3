"""What sessions report, as calls of functions that somebody gave by name."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import cast

from .run_events import RunEvents

#: Functions that a coordinator of another kind gives.
CALLBACKS = tuple(name for name in vars(RunEvents) if name.startswith("deal_with_"))
Callbacks = Mapping[str, Callable[..., object]]


def events_of(callbacks: Callbacks) -> RunEvents:
    """The methods of `RunEvents`: the functions of `CALLBACKS`; other events are passed over.

    Args:
        callbacks: The functions by their names, with the parameters of those methods.

    Raises:
        KeyError: One of them is missing.
    """
    missing = [name for name in CALLBACKS if name not in callbacks]
    if missing:
        raise KeyError(f"callback_fn lacks {', '.join(missing)}")
    events = {name: _pass_over for name in vars(RunEvents) if not name.startswith("_")}
    known = {"envstep": lambda: 0, "env_statistics": dict}
    return cast(RunEvents, SimpleNamespace(**{**events, **known, **callbacks}))


def _pass_over(*news: object) -> None:
    """Who gives functions has none for it; there is no buffer, either."""

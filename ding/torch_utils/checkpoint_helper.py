"""Saves and restores training state, also when training is interrupted."""

import functools
import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, ParamSpec, Protocol, TypeVar

import torch
from torch.optim.lr_scheduler import LRScheduler

from ding.torch_utils.data_helper import to_device
from ding.utils.errors import CheckpointError
from ding.utils.file_helper import read_file, save_file
from ding.utils.types import SavedState, State, Tree

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class CountVar:
    """A counter that several objects share.

    Args:
        init_val: Initial value.
    """

    def __init__(self, init_val: int) -> None:
        self._val = init_val

    @property
    def val(self) -> int:
        """The count."""
        return self._val

    def update(self, val: int) -> None:
        """Set the counter."""
        self._val = val

    def add(self, add_num: int) -> None:
        """Add to the counter."""
        self._val += add_num


class HasState(Protocol):
    """Interface of objects with a state."""

    def state_dict(self) -> State: ...

    def load_state_dict(self, state_dict: State, /) -> object: ...


class CheckpointHelper:
    """Saves and loads checkpoint files of models, optimisers and counters."""

    def save(
        self,
        path: str,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        last_iter: CountVar | None = None,
        last_epoch: CountVar | None = None,
        last_frame: CountVar | None = None,
        dataset: HasState | None = None,
        collector_info: HasState | None = None,
        prefix_op: str | None = None,
        prefix: str | None = None,
    ) -> None:
        """Save the given parts in one file.

        Args:
            prefix_op: ``'add'`` or ``'remove'`` the ``prefix`` of the model's keys first.
        """
        counters = {"last_iter": last_iter, "last_epoch": last_epoch, "last_frame": last_frame}
        parts = {"optimizer": optimizer, "dataset": dataset, "collector_info": collector_info}
        checkpoint: State = {"model": _renamed(model.state_dict(), prefix_op, prefix)}
        checkpoint.update({k: part.state_dict() for k, part in parts.items() if part is not None})
        checkpoint.update({k: count.val for k, count in counters.items() if count is not None})
        save_file(path, to_device(checkpoint, "cpu"))

    def load(
        self,
        load_path: str,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        last_iter: CountVar | None = None,
        last_epoch: CountVar | None = None,
        last_frame: CountVar | None = None,
        lr_schduler: LRScheduler | None = None,
        dataset: HasState | None = None,
        collector_info: HasState | None = None,
        prefix_op: str | None = None,
        prefix: str | None = None,
        strict: bool = True,
        logger_prefix: str = "",
        state_dict_mask: list[str] = [],
    ) -> None:
        """Restore the given parts.

        Args:
            lr_schduler: Set to the ``last_iter`` of the file.
            prefix_op: ``'add'`` or ``'remove'`` the ``prefix`` of the file's model keys first.
            strict: Whether the model's keys must match exactly.
            logger_prefix: Prefix of each log line.
            state_dict_mask: Model keys that start with one of these are not loaded.

        Raises:
            CheckpointError: A requested part is not in the file, or it does not fit the model.
        """
        checkpoint = read_file(load_path)

        def entry(name: str) -> Tree:
            if isinstance(checkpoint, Mapping) and name in checkpoint:
                return checkpoint[name]
            held = [*checkpoint] if isinstance(checkpoint, Mapping) else type(checkpoint).__name__
            raise CheckpointError(f"{load_path} holds no {name!r}, only {held}")

        state = _renamed(entry("model"), prefix_op, prefix)
        if state_dict_mask:
            mask = tuple(state_dict_mask)
            state = {key: value for key, value in state.items() if not key.startswith(mask)}
        try:
            found = model.load_state_dict(state, strict=strict and not state_dict_mask)
        except RuntimeError as error:
            raise CheckpointError(f"{load_path} does not fit the model: {error}") from error
        if any(found):
            what = f"{load_path}: not loaded %s, not in the model %s"
            logger.warning(logger_prefix + what, *found)
        parts = {"optimizer": optimizer, "dataset": dataset, "collector_info": collector_info}
        for name, part in parts.items():
            if part is not None:
                part.load_state_dict(entry(name))
        counters = {"last_iter": last_iter, "last_epoch": last_epoch, "last_frame": last_frame}
        for name, count in counters.items():
            if count is not None:
                count.update(entry(name))
        if lr_schduler is not None:
            lr_schduler.step(entry("last_iter"))
        logger.info("%sloaded checkpoint %s", logger_prefix, load_path)


def build_checkpoint_helper(cfg: object) -> CheckpointHelper:
    """Create a `CheckpointHelper`; ``cfg`` is not used."""
    return CheckpointHelper()


def auto_checkpoint(func: Callable[P, T]) -> Callable[P, T]:
    """Decorator for methods: save a checkpoint on an error, Ctrl-C or SIGTERM.

    It calls ``save_checkpoint()`` of the object and re-raises the error. SIGTERM is only caught in
    the main thread and if it has no other handler; its handler is restored at the end.
    """

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        with _sigterm_raises():
            try:
                return func(*args, **kwargs)
            except BaseException:
                try:
                    owner: Any = args[0]
                    owner.save_checkpoint()
                except Exception:
                    # Raise the first error, and only log this one.
                    logger.exception("could not save a checkpoint after the error that follows")
                raise

    return wrapper


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    unhandled = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not unhandled or threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(signum: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + signum)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _renamed(state: SavedState, prefix_op: str | None, prefix: str | None) -> SavedState:
    if prefix_op is None:
        return state
    if prefix_op not in ("add", "remove") or prefix is None:
        raise ValueError(
            f"got prefix_op={prefix_op!r}, prefix={prefix!r}: expected 'add' or 'remove' "
            "and a prefix"
        )
    if prefix_op == "add":
        return {prefix + key: value for key, value in state.items()}
    return {key.removeprefix(prefix): value for key, value in state.items()}

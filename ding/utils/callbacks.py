"""Callbacks of a run: base class, events, and the class that calls them."""

import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from ding.utils.errors import CallbackError, ConfigError
from ding.utils.import_helper import import_module
from ding.utils.types import Settings


@dataclass(frozen=True)
class RunMoment:
    """Base class of the events that are passed to callbacks.

    Attributes:
        method: Name of the method that is called with the event.
        exp_name: The run's folder.
        env_step: Env steps collected so far.
        train_iter: Updates so far.
    """

    method: ClassVar[str]
    exp_name: str
    env_step: int
    train_iter: int


@dataclass(frozen=True)
class RunStarted(RunMoment):
    """All components are built and, in a resumed run, their state is loaded.

    Attributes:
        config: The run's completed main config; read-only.
    """

    method = "on_start"
    config: Settings


@dataclass(frozen=True)
class Collected(RunMoment):
    """Samples were collected.

    Attributes:
        sample_count: Number of samples; in an on-policy run, those of one update.
    """

    method = "on_collect"
    sample_count: int


@dataclass(frozen=True)
class EpisodeDone(RunMoment):
    """An episode has ended.

    Attributes:
        source: ``collector`` or ``evaluator``; in parallel runs the collector's
            name, with the suffix ``_eval`` for an evaluation.
        env_id: Index of the environment in its manager.
        episode_return: Sum of its rewards.
        length: Its number of steps.
    """

    method = "on_episode"
    source: str
    env_id: int
    episode_return: float
    length: int


@dataclass(frozen=True)
class Evaluated(RunMoment):
    """The policy was evaluated.

    Attributes:
        result: Mean return, or the value of a custom metric.
        returns: Returns of the episodes, in the order in which they ended.
        is_best: Whether the result is better than all earlier ones.
    """

    method = "on_evaluation"
    result: object
    returns: tuple[float, ...]
    is_best: bool


@dataclass(frozen=True)
class CheckpointSaved(RunMoment):
    """A checkpoint was written to disk.

    Attributes:
        path: File of the checkpoint.
    """

    method = "on_checkpoint"
    path: str


@dataclass(frozen=True)
class RunFinished(RunMoment):
    """The run is over, and its folder is complete.

    Attributes:
        status: ``converged``, ``finished``, ``interrupted`` or ``failed``.
        reason: Readable reason, one line.
        best_return: Best result of an evaluation, if it is a number.
    """

    status: str
    reason: str
    best_return: float | None


class RunCallback:
    """Base class for run callbacks. Override the events you need; all methods are no-ops here.

    A method that returns ``True`` ends the run at the next suitable moment, as ``finished``. An
    exception ends it as ``failed``, with the error as the reason; the state is saved first.

    A serial run calls callbacks in the training thread, which waits for them. A parallel run calls
    them in threads of the coordinator, one at a time.

    Example:

        >>> import ding
        >>> class PrintReturns(ding.RunCallback):
        ...     def on_evaluation(self, event):
        ...         print(event.env_step, event.result)
        ...         return event.result >= 195  # ends the run
    """

    def on_start(self, event: RunStarted) -> bool | None:
        """The run begins or is resumed."""

    def on_collect(self, event: Collected) -> bool | None:
        """Samples were collected."""

    def on_episode(self, event: EpisodeDone) -> bool | None:
        """An episode of a collector or of an evaluation has ended."""

    def on_evaluation(self, event: Evaluated) -> bool | None:
        """The policy was evaluated."""

    def on_checkpoint(self, event: CheckpointSaved) -> bool | None:
        """A checkpoint was saved; in a parallel run, only called for the best one."""

    def on_end(self, event: RunFinished) -> None:
        """The run has ended. This is the last call; a run that is killed does not make it.

        Errors are appended to the reason of the end. If the training thread hangs, another thread
        makes the call.
        """


#: A callback, its class, or the path of its class: ``module:Name``.
OneCallback: TypeAlias = RunCallback | type[RunCallback] | str
#: Several callbacks, or a mapping from the path of a class to its arguments.
GivenCallbacks: TypeAlias = Iterable[OneCallback] | Mapping[str, Settings] | None


class Callbacks:
    """The callbacks of a run; false if there are none.

    Args:
        given: Callbacks from the config, from the caller, or ``None``.

    Attributes:
        callbacks: The callbacks, in the order in which they are called.
        request: Message of the callback that requested the run's end; empty if none has.

    Raises:
        ConfigError: A value has another form, or a callback cannot be created.
    """

    def __init__(self, *given: GivenCallbacks) -> None:
        self.callbacks = [one for some in given for one in _made(some)]
        self._lock = threading.RLock()
        self._is_open = False
        self.request = ""

    def __bool__(self) -> bool:
        return bool(self.callbacks)

    def notify(self, event: RunMoment) -> None:
        """Call the event's method of each callback. After `RunStarted`, `end` calls ``on_end``.

        Raises:
            CallbackError: A callback raised.
        """
        self._is_open |= isinstance(event, RunStarted)
        with self._lock:
            for callback in self.callbacks:
                try:
                    asks = getattr(callback, event.method)(event)
                except Exception as error:
                    raise CallbackError(_words(callback, event.method, error)) from error
                if asks is True and not self.request:
                    self.request = f"{type(callback).__name__}.{event.method} asked for the end"

    def end(self, event: RunFinished) -> str:
        """Call each ``on_end`` once, if ``on_start`` was called; returns their errors as text."""
        with self._lock:
            callbacks = self.callbacks if self._is_open else []
            self._is_open = False
            problems = []
            for callback in callbacks:
                try:
                    callback.on_end(event)
                except Exception as error:  # the other callbacks still get the event
                    problems.append(_words(callback, "on_end", error))
        return "; ".join(problems)


def _words(callback: RunCallback, method: str, error: Exception) -> str:
    return f"{type(callback).__name__}.{method}: {type(error).__name__}: {error}"


def _made(given: object) -> list[RunCallback]:
    if given is None:
        return []
    if isinstance(given, Mapping) and all(isinstance(own, Mapping) for own in given.values()):
        return [_build(_find(name), own) for name, own in given.items()]
    if isinstance(given, list | tuple):
        return [one if isinstance(one, RunCallback) else _build(_find(one), {}) for one in given]
    raise ConfigError(
        f"callbacks is {given!r}: expected a list of classes or of names such as "
        "'my_package.my_module:MyCallback', or a dict of their arguments by name"
    )


def _find(named: object) -> type[RunCallback]:
    """The class itself, or the class at a path ``module:Name``."""
    found = named
    if isinstance(named, str):
        module, colon, name = named.partition(":")
        if not colon:
            raise ConfigError(f"callbacks: {named!r} names no class: expected 'module:Name'")
        try:
            import_module(module)
        except (ImportError, TypeError) as error:
            raise ConfigError(f"callbacks: {error}") from error
        found = getattr(sys.modules[module], name, None)
    if not (isinstance(found, type) and issubclass(found, RunCallback)):
        raise ConfigError(
            f"callbacks: {named!r} is no subclass of ding.RunCallback"
            + ("" if found is named else f" but {found!r}")
        )
    return found


def _build(kind: type[RunCallback], options: Settings) -> RunCallback:
    try:
        return kind(**options)
    except TypeError as error:
        raise ConfigError(f"callbacks: {kind.__name__} with {dict(options)}: {error}") from error

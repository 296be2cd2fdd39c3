"""What takes a run's figures, and how those that a config names get them."""

import json
import os
import warnings
from collections.abc import Mapping
from typing import Any

from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import TRACKER_REGISTRY


class Tracker:
    """Takes what a run logs; this class does nothing with it, subclasses override what they use.

    All methods are called in the thread that trains, about every two seconds. One that raises is
    reported, and that tracker gets nothing more; the run goes on.

    Args:
        folder: The run's folder.
        options: What stands beside the tracker's name in the config's ``trackers``.
    """

    def __init__(self, folder: str, **options: Any) -> None:
        self.folder = folder

    def config(self, config: Mapping[str, Any]) -> None:
        """Take the run's completed config, plain JSON; once, when the run begins."""

    def scalars(self, values: Mapping[str, float], step: int | None, time: float) -> None:
        """Take the scalars of one group (the part of a tag before the slash) at one step.

        Args:
            values: By tag, such as ``evaluator_step/reward_mean``.
            step: Updates for groups that end in ``_iter``, env steps for those in ``_step``.
            time: Seconds since 1970.
        """

    def end(self, status: str, reason: str, facts: Mapping[str, Any]) -> None:
        """Take how the run ended; the last call.

        Args:
            status: ``converged``, ``finished``, ``interrupted`` or ``failed``.
            reason: One line for a human.
            facts: Entries of ``run.json``, such as ``best_return``.
        """


class Trackers:
    """The trackers that a config names, fed from the run's ``metrics.jsonl``.

    They read the file because the learners of a parallel run are processes of their own, whose
    figures meet there.

    Args:
        given: Options by name, or names alone.
        folder: The run's folder.
        metrics_path: The file; what it holds already is of an earlier run.

    Raises:
        ConfigError: ``given`` is something else, or a tracker does not take its options.
        UnknownTypeError: Nobody registered a name.
    """

    def __init__(self, given: Any, folder: str, metrics_path: str) -> None:
        self._path = metrics_path
        self._read = os.path.getsize(metrics_path) if os.path.exists(metrics_path) else 0
        self._trackers = {
            name: _build(name, folder, options) for name, options in _options(given).items()
        }

    def __bool__(self) -> bool:
        return bool(self._trackers)

    def config(self, config: Mapping[str, Any]) -> None:
        """Hand on the run's config."""
        self._each("config", config)

    def feed(self) -> None:
        """Hand on the rows that have come since."""
        if not self._trackers or not os.path.exists(self._path):
            return
        with open(self._path, "rb") as file:
            file.seek(self._read)
            content = file.read()
        whole = content.rfind(b"\n") + 1  # another process may be writing the rest
        self._read += whole
        for line in content[:whole].splitlines():
            try:
                row = json.loads(line)
                time, step = row.pop("time"), row.pop("step")
            except (ValueError, TypeError, KeyError, AttributeError):
                continue  # half a line, of a process that was killed
            values = {tag: float("nan") if v is None else v for tag, v in row.items()}
            self._each("scalars", values, step, time)

    def end(self, status: str, reason: str, facts: Mapping[str, Any]) -> None:
        """Hand on the last rows, and how the run ended."""
        self.feed()
        self._each("end", status, reason, facts)
        self._trackers = {}

    def _each(self, method: str, *what: Any) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                getattr(tracker, method)(*what)
            except Exception as error:  # a service that is down must not end a training
                del self._trackers[name]
                warnings.warn(
                    f"tracker {name!r} gets nothing more: {type(error).__name__}: {error}",
                    RuntimeWarning,
                    stacklevel=4,
                )


def _options(given: Any) -> dict[str, dict[str, Any]]:
    if isinstance(given, (list, tuple)) and all(isinstance(name, str) for name in given):
        return {name: {} for name in given}
    if given is None or isinstance(given, Mapping):
        options = dict(given or {})
        if all(isinstance(own, Mapping) for own in options.values()):
            return {name: dict(own) for name, own in options.items()}
    raise ConfigError(
        f"trackers is {given!r}: expected names, or options by name, such as "
        "dict(wandb=dict(project='cartpole'))"
    )


def _build(name: str, folder: str, options: dict[str, Any]) -> Tracker:
    import_module(list(options.pop("import_names", [])))
    try:
        return TRACKER_REGISTRY.build(name, folder, **options)
    except ImportError as error:
        raise ConfigError(
            f"trackers.{name} needs a package that is not there ({error}): "
            f"pip install 'ding[{name}]'"
        ) from error
    except TypeError as error:
        raise ConfigError(f"trackers.{name} = {options}: {error}") from error

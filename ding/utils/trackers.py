"""Trackers: programs or custom classes that get a run's scalars in addition to its files."""

import contextlib
import itertools
import math
import os
import queue
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import TypeVar

from ding.utils import durations
from ding.utils.default_helper import flatten_dict
from ding.utils.errors import ConfigError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import TRACKER_REGISTRY
from ding.utils.run_files import METRICS_FILE, parse_row, read_metrics
from ding.utils.types import Config, Json, Settings

Answer = TypeVar("Answer")


class Tracker:
    """Base class for trackers. Override the methods you need; all of them do nothing here.

    A tracker is made and called in its own thread, which may wait for a service: training
    does not wait for it. Scalars arrive about every two seconds. One that raises, or that does not
    return within `durations.TRACKER_CALL` seconds, is reported once and called no more; the run
    continues.

    Args:
        folder: The run's folder.
        options: The tracker's value in the config's ``trackers``.
    """

    def __init__(self, folder: str, **options: object) -> None:
        self.folder = folder

    def config(self, config: Settings) -> None:
        """Take the run's completed config, plain JSON; once, when the run begins."""

    def scalars(self, values: Mapping[str, float], step: int | None, time: float) -> None:
        """Take the scalars of one group (the part of a tag before the slash) at one step.

        Args:
            values: By tag, such as ``evaluator_step/reward_mean``.
            step: Updates for groups that end in ``_iter``, env steps for those in ``_step``.
            time: Seconds since 1970.
        """

    def end(self, status: str, reason: str, facts: Mapping[str, Json]) -> None:
        """Take how the run ended; the last call. The run waits for it for a few seconds at most.

        Args:
            status: ``converged``, ``finished``, ``interrupted`` or ``failed``.
            reason: One line for a human.
            facts: Entries of ``run.json``, such as ``best_return``.
        """


class Trackers:
    """The trackers that a config names, fed from the run's ``metrics.jsonl``.

    They read the file because the learners of a parallel run are separate processes, whose
    figures meet there; and because it is a queue that holds no memory, however slow a tracker is.

    Args:
        given: Options by name, or names alone.
        folder: The run's folder; rows that its ``metrics.jsonl`` holds already are of an earlier
            run.

    Raises:
        ConfigError: ``given`` is something else, or a tracker does not take its options.
        UnknownTypeError: No tracker is registered under a name.
    """

    def __init__(self, given: object, folder: str) -> None:
        self._feeds = [_Feed(name, folder, own) for name, own in _options(given).items()]
        self._left: list[_Feed] = []
        self._lock = threading.Lock()
        deadline = time.monotonic() + durations.TRACKER_START
        for feed in self._feeds:
            if not feed.is_made.wait(max(0.0, deadline - time.monotonic())):
                _warn(f"tracker {feed.tracker!r} has not started yet; the run begins without it")
            elif isinstance(feed.error, ConfigError):
                for one in self._feeds:
                    one.leave()
                raise feed.error

    def config(self, config: Settings) -> None:
        """Pass the run's config to the trackers."""
        for feed in self._feeds:
            feed.put("config", config)
        self.feed()

    def feed(self) -> None:
        """Pass the new rows to the trackers; report trackers that failed or hang."""
        for feed in list(self._feeds):
            feed.put("scalars")
            if feed.error is not None or feed.seconds_in_call > durations.TRACKER_CALL:
                self._leave(feed)

    def end(self, status: str, reason: str, facts: Mapping[str, Json]) -> None:
        """Pass the last rows and the run's end to the trackers; returns within a few seconds."""
        hurried = status == "interrupted"
        limit = durations.TRACKER_HASTE if hurried else durations.TRACKER_END
        deadline = time.monotonic() + limit
        for feed in self._feeds:
            feed.put("end", status, reason, facts)
        for feed in list(self._feeds):
            feed.join(max(0.0, deadline - time.monotonic()))
            if feed.error is not None or feed.is_alive():
                self._leave(feed)
        for feed in self._left:
            if rows := feed.count_left():
                _warn(f"tracker {feed.tracker!r} did not get {rows} rows of {METRICS_FILE}")
        self._feeds, self._left = [], []

    def _leave(self, feed: "_Feed") -> None:
        with self._lock:
            if feed not in self._feeds:
                return
            self._feeds.remove(feed)
            self._left.append(feed)
        _warn(f"tracker {feed.tracker!r} gets nothing more: {feed.leave()}")


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=4)


class _Feed(threading.Thread):
    """The thread that makes and calls one tracker.

    Args:
        tracker: Its name in the config.
        folder: The run's folder.
        options: Of the tracker.

    Attributes:
        is_made: Set when the tracker was made, or could not be.
        error: What it raised.
    """

    def __init__(self, tracker: str, folder: str, options: Config) -> None:
        super().__init__(name=f"tracker-{tracker}", daemon=True)
        self.tracker = tracker
        self.is_made = threading.Event()
        self.error: BaseException | None = None
        self._folder = folder
        path = os.path.join(folder, METRICS_FILE)
        self._offset = os.path.getsize(path) if os.path.exists(path) else 0
        self._is_left = self._rows_called = False
        self._calls: queue.SimpleQueue[tuple[str, tuple[object, ...]]] = queue.SimpleQueue()
        self._call: tuple[str, float] | None = None
        import_module(list(options.pop("import_names", [])))
        TRACKER_REGISTRY.get(tracker)  # an unknown name is an error of the caller's thread
        self._options = options
        self.start()

    @property
    def seconds_in_call(self) -> float:
        """Since when the tracker is at one call, 0 if it is at none."""
        call = self._call
        return 0.0 if call is None else time.monotonic() - call[1]

    def put(self, method: str, *arguments: object) -> None:
        """Have a method called; of ``scalars`` and before ``end`` with the rows that are new."""
        if method == "scalars":
            if self._rows_called:  # one call brings all rows
                return
            self._rows_called = True
        self._calls.put((method, arguments))

    def leave(self) -> str:
        """Call it no more; why."""
        self._is_left = True
        self.put("scalars")
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        call = self._call
        if call is None:
            return "it is too slow for the rows of this run"
        return f"no answer to {call[0]} for {time.monotonic() - call[1]:.0f} s"

    def count_left(self) -> int:
        """Number of rows that the tracker did not get."""
        count, offset = 0, self._offset
        with contextlib.suppress(OSError):
            while True:
                piece = read_metrics(self._folder, offset)
                count += piece.content.count(b"\n")
                if piece.offset == offset:
                    break
                offset = piece.offset
        return count

    def run(self) -> None:
        try:
            tracker: Tracker = self._called(
                "its start", _build, self.tracker, self._folder, self._options
            )
            self.is_made.set()
            method = ""
            while method != "end" and not self._is_left:
                method, arguments = self._calls.get()
                if method == "scalars":
                    self._rows_called = False
                if method in ("scalars", "end"):
                    self._hand_on_rows(tracker)
                if method != "scalars":
                    self._called(method, getattr(tracker, method), *arguments)
        except _Left:
            pass
        except BaseException as error:  # the edge of a thread: of a user's class, too
            self.error = error
        finally:
            self.is_made.set()

    def _hand_on_rows(self, tracker: Tracker) -> None:
        while True:
            try:
                piece = read_metrics(self._folder, self._offset)
            except OSError:
                return  # nothing was written yet
            done = piece.offset - len(piece.content)
            for line in piece.content.splitlines(keepends=True):
                done += len(line)
                with contextlib.suppress(ValueError):  # torn, by a process that was killed
                    row = parse_row(line)
                    values = {t: float("nan") if v is None else v for t, v in row.values.items()}
                    self._called("scalars", tracker.scalars, values, row.step, row.time)
                self._offset = done
            if piece.offset == self._offset and not piece.content:
                return
            self._offset = piece.offset

    def _called(self, what: str, method: Callable[..., Answer], *arguments: object) -> Answer:
        if self._is_left:
            raise _Left
        self._call = what, time.monotonic()
        try:
            return method(*arguments)
        finally:
            self._call = None


class _Left(Exception):
    """The tracker is called no more."""


def _options(given: object) -> dict[str, Config]:
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


def _build(name: str, folder: str, options: Config) -> Tracker:
    try:
        return TRACKER_REGISTRY.build(name, folder, **options)
    except ImportError as error:
        raise ConfigError(
            f"trackers.{name} needs a package that is not there ({error}): "
            f"pip install 'ding[{name}]'"
        ) from error
    except (TypeError, ValueError) as error:
        raise ConfigError(f"trackers.{name} = {options}: {error}") from error


@TRACKER_REGISTRY.register("wandb")
class WandbTracker(Tracker):
    """Logs to a run of Weights & Biases; ``mode="offline"`` needs no network.

    Each group has its own x axis, ``<group>/step``: updates or env steps.

    Args:
        folder: The run's folder; wandb's own files go there, unless ``dir`` says where.
        options: Arguments of ``wandb.init``, such as ``project``. A run that is open already is
            taken as it is, and left open.
    """

    def __init__(self, folder: str, **options: object) -> None:
        import wandb  # an extra

        super().__init__(folder)
        self._owned = wandb.run is None
        self._run = wandb.run or wandb.init(**{"dir": folder, **options})
        self._groups: set[str] = set()

    def config(self, config: Settings) -> None:
        self._run.config.update(dict(config), allow_val_change=True)

    def scalars(self, values: Mapping[str, float], step: int | None, time: float) -> None:
        row = dict(values)
        if step is not None:
            group = next(iter(values)).partition("/")[0]
            if group not in self._groups:
                self._groups.add(group)
                self._run.define_metric(f"{group}/*", step_metric=f"{group}/step")
            row[f"{group}/step"] = step
        self._run.log(row)

    def end(self, status: str, reason: str, facts: Mapping[str, Json]) -> None:
        self._run.summary.update({"status": status, "reason": reason, **facts})
        if self._owned:
            self._run.finish(exit_code=int(status in ("failed", "interrupted")))


_ENDS = {"failed": "FAILED", "interrupted": "KILLED"}
#: What MLflow takes in one call, and the length of one parameter.
_PARAMS, _LONGEST = 100, 500


@TRACKER_REGISTRY.register("mlflow")
class MlflowTracker(Tracker):
    """Logs to a run of MLflow.

    Args:
        folder: The run's folder; its name becomes the name of MLflow's run.
        tracking_uri: Where to, such as ``sqlite:///mlflow.db``; by default what the variable
            ``MLFLOW_TRACKING_URI`` says, or a place in the working folder.
        experiment: MLflow's experiment, created if it does not exist.
    """

    def __init__(
        self, folder: str, tracking_uri: str | None = None, experiment: str = "ding"
    ) -> None:
        import mlflow.entities  # an extra

        super().__init__(folder)
        self._entities = mlflow.entities
        self._client = mlflow.MlflowClient(tracking_uri)
        found = self._client.get_experiment_by_name(experiment)
        home = found.experiment_id if found else self._client.create_experiment(experiment)
        name = os.path.basename(os.path.abspath(folder))
        self._run_id = self._client.create_run(home, run_name=name).info.run_id

    def config(self, config: Settings) -> None:
        flat = flatten_dict(dict(config), delimiter=".")
        params = (self._entities.Param(key, str(value)[:_LONGEST]) for key, value in flat.items())
        while some := list(itertools.islice(params, _PARAMS)):
            self._client.log_batch(self._run_id, params=some)

    def scalars(self, values: Mapping[str, float], step: int | None, time: float) -> None:
        make, at = self._entities.Metric, (int(time * 1000), step or 0)
        metrics = [make(tag, v, *at) for tag, v in values.items() if math.isfinite(v)]
        self._client.log_batch(self._run_id, metrics=metrics)

    def end(self, status: str, reason: str, facts: Mapping[str, Json]) -> None:
        words = {"status": status, "reason": reason, **facts}
        tags = [self._entities.RunTag(key, str(value)) for key, value in words.items()]
        self._client.log_batch(self._run_id, tags=tags)
        self._client.set_terminated(self._run_id, _ENDS.get(status, "FINISHED"))

"""Trackers: services such as wandb, or custom classes, to which a run's scalars are passed."""

import contextlib
import itertools
import math
import os
import queue
import threading
import warnings
from collections.abc import Mapping

from ding.utils import durations
from ding.utils.default_helper import flatten_dict
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import TRACKER_REGISTRY
from ding.utils.run_files import METRICS_FILE, metrics_from, parse_row
from ding.utils.types import Config, Json, Settings


class Tracker:
    """Base class for trackers. Override the methods you need; all methods are no-ops here.

    All trackers are called in one thread, which may wait for a service; training does not wait for
    it. Scalars are passed about every two seconds. A tracker that raises is reported once and not
    called again; the run continues.

    Args:
        folder: The run's folder.
        options: The tracker's value in the config's ``trackers``.
    """

    def __init__(self, folder: str, **options: object) -> None:
        self.folder = folder

    def config(self, config: Settings) -> None:
        """Called once, when the run begins, with its completed config (plain JSON)."""

    def scalars(self, values: Mapping[str, float], step: int | None, time: float) -> None:
        """Called with the scalars of one group (the part of a tag before the slash) at one step.

        Args:
            values: Values by tag, such as ``evaluator_step/reward_mean``.
            step: Updates for groups that end with ``_iter``, env steps for ``_step``.
            time: Seconds since 1970.
        """

    def end(self, status: str, reason: str, facts: Mapping[str, Json]) -> None:
        """Called when the run has ended; the last call. The run waits a few seconds for it.

        Args:
            status: ``converged``, ``finished``, ``interrupted`` or ``failed``.
            reason: Readable reason, one line.
            facts: Entries of ``run.json``, such as ``best_return``.
        """


class Trackers:
    """The trackers of a config; one thread passes them the rows of the run's ``metrics.jsonl``.

    They read the file because the separate processes of a parallel run write their scalars to it,
    and because it is a queue that needs no memory, however slow a tracker is.

    Args:
        given: Options by name, or only names.
        folder: The run's folder; existing rows of its ``metrics.jsonl`` are from an earlier run and
            are skipped.

    Raises:
        ConfigError: ``given`` has another form, or a tracker does not accept its options.
        UnknownTypeError: A name is not registered.
    """

    def __init__(self, given: object, folder: str) -> None:
        self._folder = folder
        path = os.path.join(folder, METRICS_FILE)
        self._offset = os.path.getsize(path) if os.path.exists(path) else 0
        self._failed: dict[str, Exception] = {}
        self._trackers: dict[str, Tracker] = {}
        for name, own in _options(given).items():
            try:
                self._trackers[name] = _build(name, folder, own)
            except (ConfigError, UnknownTypeError, ImportError):
                raise
            except Exception as error:  # an error of a user's class or a service; the run continues
                self._failed[name] = error
        self._calls: queue.SimpleQueue[tuple[str, tuple[object, ...]]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="trackers", daemon=True)
        self._thread.start()

    def config(self, config: Settings) -> None:
        """Pass the run's config to the trackers."""
        self._calls.put(("config", (config,)))

    def feed(self) -> None:
        """Pass the new rows to the trackers; report those that failed."""
        # One call passes all new rows: calls must not pile up behind a slow tracker.
        if self._calls.empty():
            self._calls.put(("scalars", ()))
        for name, error in list(self._failed.items()):
            del self._failed[name]
            _warn(f"tracker {name!r} gets nothing more: {type(error).__name__}: {error}")

    def end(self, status: str, reason: str, facts: Mapping[str, Json]) -> None:
        """Pass the last rows and the run's end to the trackers; returns within a few seconds."""
        self._calls.put(("end", (status, reason, facts)))
        hurried = status == "interrupted"
        self._thread.join(durations.TRACKER_HASTE if hurried else durations.TRACKER_END)
        self.feed()
        if self._thread.is_alive():
            _warn(f"the trackers did not get all rows of {METRICS_FILE}: one takes too long")

    def _run(self) -> None:
        method = ""
        while method != "end":
            method, arguments = self._calls.get()
            if method in ("scalars", "end"):
                self._pass_rows()
            if method != "scalars":
                self._call(method, *arguments)

    def _pass_rows(self) -> None:
        with contextlib.suppress(OSError):  # the file does not exist yet
            for piece in metrics_from(self._folder, self._offset):
                self._offset = piece.offset
                for line in piece.content.splitlines():
                    self._pass_row(line)

    def _pass_row(self, line: bytes) -> None:
        with contextlib.suppress(ValueError):  # an incomplete line of a killed process
            row = parse_row(line)
            values = {t: float("nan") if v is None else v for t, v in row.values.items()}
            self._call("scalars", values, row.step, row.time)

    def _call(self, method: str, *arguments: object) -> None:
        for name, tracker in list(self._trackers.items()):
            try:
                getattr(tracker, method)(*arguments)
            except Exception as error:  # as in the constructor
                del self._trackers[name]
                self._failed[name] = error


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=4)


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
    import_module(list(options.pop("import_names", [])))
    TRACKER_REGISTRY.get(name)  # raises for an unknown name, before the errors of `build`
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
    """Logs to Weights & Biases; ``mode="offline"`` needs no network.

    Each group has a separate x axis, ``<group>/step``: updates or env steps.

    Args:
        folder: The run's folder; also wandb's folder, unless ``dir`` is set.
        options: Arguments of ``wandb.init``, such as ``project``. A wandb run that is already
            active is used without them, and not finished.
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
#: Maximum number of parameters per call of MLflow, and maximum length of a parameter.
_PARAMS, _LONGEST = 100, 500


@TRACKER_REGISTRY.register("mlflow")
class MlflowTracker(Tracker):
    """Logs to MLflow.

    Args:
        folder: The run's folder; its name becomes the name of MLflow's run.
        tracking_uri: Tracking URI, such as ``sqlite:///mlflow.db``; by default the environment
            variable ``MLFLOW_TRACKING_URI``, or MLflow's default in the working directory.
        experiment: MLflow's experiment, which is created if it does not exist.
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

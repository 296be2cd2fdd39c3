"""Trackers of services: Weights & Biases and MLflow; the package of each is an extra."""

import itertools
import math
import os
from collections.abc import Mapping
from typing import Any

from ding.utils.default_helper import flatten_dict
from ding.utils.registry_factory import TRACKER_REGISTRY

from .base import Tracker


@TRACKER_REGISTRY.register("wandb")
class WandbTracker(Tracker):
    """Logs to a run of Weights & Biases; ``mode="offline"`` needs no network.

    Each group has its own x axis, ``<group>/step``: updates or env steps.

    Args:
        folder: The run's folder; wandb's own files go there, unless ``dir`` says where.
        options: Arguments of ``wandb.init``, such as ``project``. A run that is open already is
            taken as it is, and left open.
    """

    def __init__(self, folder: str, **options: Any) -> None:
        import wandb  # an extra

        super().__init__(folder)
        self._owned = wandb.run is None
        self._run: Any = wandb.run or wandb.init(**{"dir": folder, **options})
        self._groups: set[str] = set()

    def config(self, config: Mapping[str, Any]) -> None:
        self._run.config.update(dict(config), allow_val_change=True)

    def scalars(self, values: Mapping[str, float], step: int | None, time: float) -> None:
        row: dict[str, Any] = dict(values)
        if step is not None:
            group = next(iter(values)).partition("/")[0]
            if group not in self._groups:
                self._groups.add(group)
                self._run.define_metric(f"{group}/*", step_metric=f"{group}/step")
            row[f"{group}/step"] = step
        self._run.log(row)

    def end(self, status: str, reason: str, facts: Mapping[str, Any]) -> None:
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

    def config(self, config: Mapping[str, Any]) -> None:
        flat = flatten_dict(dict(config), delimiter=".")
        params = (self._entities.Param(key, str(value)[:_LONGEST]) for key, value in flat.items())
        while some := list(itertools.islice(params, _PARAMS)):
            self._client.log_batch(self._run_id, params=some)

    def scalars(self, values: Mapping[str, float], step: int | None, time: float) -> None:
        make, at = self._entities.Metric, (int(time * 1000), step or 0)
        metrics = [make(tag, v, *at) for tag, v in values.items() if math.isfinite(v)]
        self._client.log_batch(self._run_id, metrics=metrics)

    def end(self, status: str, reason: str, facts: Mapping[str, Any]) -> None:
        words = {"status": status, "reason": reason, **facts}
        tags = [self._entities.RunTag(key, str(value)) for key, value in words.items()]
        self._client.log_batch(self._run_id, tags=tags)
        self._client.set_terminated(self._run_id, _ENDS.get(status, "FINISHED"))

"""MLflow."""

import itertools
import math
import os
from collections.abc import Mapping
from typing import Any

from ding.utils.default_helper import flatten_dict
from ding.utils.registry_factory import TRACKER_REGISTRY

from .base import Tracker

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

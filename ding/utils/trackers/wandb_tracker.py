"""Weights & Biases."""

from collections.abc import Mapping
from typing import Any

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

"""The collector that puts samples into a sample store and takes policies from a weight store."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ding.data import Columns
from ding.data.tree import tree_leaves
from ding.utils import get_data_decompressor
from ding.utils.errors import DataError, DingError
from ding.worker.collector.comm.base_comm_collector import BaseCommCollector
from ding.worker.collector.comm.collect_task import CollectTask
from ding.worker.messages import Json, TaskReport
from ding.worker.seams import SampleStore, WeightStore

_logger = logging.getLogger(__name__)

#: Bytes of a stored chunk beside the samples, generously.
HEADER_SIZE = 4096


class CollectorService(BaseCommCollector):
    """Works on collector tasks over the stores of an engine.

    Args:
        cfg: ``name``; perhaps ``resource``.
        samples: Where samples go.
        weights: Where policies come from.
    """

    has_own_samples = False

    def __init__(
        self, cfg: Mapping[str, object], samples: SampleStore, weights: WeightStore
    ) -> None:
        super().__init__(cfg)
        self._sample_store, self._weights = samples, weights
        self._versions: dict[str, object] = {}  # of policies when they were looked at last
        self._sample_size = 0.0
        self._kept_policy: str | None = None  # a copy of the weights that are evaluated

    # ------------------------------------------------------------------ tasks

    def _report(self, task: CollectTask) -> TaskReport:
        report, kept = task.report(), self._kept_policy
        if kept is None or task.single:
            return report
        self._kept_policy = None  # the coordinator's now
        facts: dict[str, Json] = {"eval_policy": kept, "policy_iter": report.info["train_iter"]}
        return replace(report, info={**report.info, **facts})

    def end_task(self) -> None:
        super().end_task()
        self._drop_kept_policy()

    # ------------------------------------------------------------------ policies

    def policy_changed(self, path: str) -> bool:
        version = self._weights.version(path)
        if version is None or version == self._versions.get(path):
            return False
        self._versions[path] = version
        return True

    def get_policy_update_info(self, path: str) -> dict[str, object]:
        """The weights published under the name, with ``iter``.

        Raises:
            CheckpointError: There are none (then it is a `FileNotFoundError`, too), or they cannot
                be read.
        """
        self.policy_changed(path)  # what is read now is not new any more
        kept = self._keep(path)
        try:
            found = self._weights.newest(kept or path)
        except DingError:
            self._drop_kept_policy()
            raise
        policy_iter = found.facts.get("policy_iter", found.state.get("iter", 0))
        return {**found.state, "iter": int(str(policy_iter))}

    def _keep(self, path: str) -> str | None:
        """Give the weights that an evaluation is of a name of their own; the best will be kept."""
        task = self._task
        if task is None or task.single or not task.collector_cfg.get("eval_flag"):
            return None
        if self._kept_policy is not None or path != _first_policy(task.collector_cfg):
            return None
        name = f"{path}.{self._next_serial()}"
        if not self._weights.keep(path, name):
            return None
        self._kept_policy = name
        return name

    def _drop_kept_policy(self) -> None:
        kept, self._kept_policy = self._kept_policy, None
        if kept is not None:
            _or_warn(self._weights.remove, kept)

    # ------------------------------------------------------------------ samples

    def send_stepdata(self, path: str, stepdata: Any) -> None:  # type: ignore[override]
        """Put samples into the store.

        Args:
            path: Their name.
            stepdata: Columns, a list of rows, or one row; or these as the collector's
                ``compressor`` packed them.

        Raises:
            CheckpointWriteError: The store cannot take them.
            DataError: It is something else.
        """
        task = self._task
        if isinstance(stepdata, bytes) and task is not None:
            # Learners map files as they are; and what they load, they check no less than this.
            stepdata = get_data_decompressor(task.collector.compressor)(stepdata)
        rows: Any = [stepdata] if isinstance(stepdata, Mapping) else stepdata
        if not isinstance(rows, list):
            raise DataError(
                f"send_stepdata({path!r}) got a {type(stepdata).__name__}; expected samples: "
                "columns, a list of dicts, or a dict"
            )
        put = partial(self._sample_store.put, path, rows)
        size = put() if task is None else task.write(path, self._expected_size(rows), put)
        self._sample_size = size / len(rows)

    def send_metadata(self, metadata: Mapping[str, Json]) -> None:
        """Leave a message for the coordinator.

        Args:
            metadata: ``data_id`` and more; task, buffer and size are added.
        """
        super().send_metadata(metadata)

    def chunk_rows(self, samples: Sequence[object]) -> int:
        """One for a coordinator that takes them one by one; what there is room for else."""
        if self._task is None:
            return len(samples)
        return self._task.chunk_rows(len(samples), self._expected_size(samples) / len(samples))

    def _expected_size(self, rows: Sequence[object]) -> int:
        columns = rows.columns_or_none() if isinstance(rows, Columns) else None
        if columns is None:
            return int(self._sample_size * len(rows)) + HEADER_SIZE
        size: int = sum(leaf.nbytes for leaf in tree_leaves(columns))
        return size + HEADER_SIZE

    def _drop(self, data_id: str) -> None:
        _or_warn(self._sample_store.remove, data_id)


def _or_warn(remove: Callable[[str], None], name: str) -> None:
    try:
        remove(name)
    except DingError as err:
        _logger.warning("%s is left behind: %s", name, err)


def _first_policy(collector_cfg: Mapping[str, object]) -> object:
    """Name of the first player's policy."""
    path = collector_cfg.get("policy_update_path")
    return path[0] if isinstance(path, list | tuple) and path else path

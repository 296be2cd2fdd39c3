"""The serial evaluator that computes a metric over a data set."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np
import torch

from ding.torch_utils import to_device, to_item, to_tensor
from ding.utils import SERIAL_EVALUATOR_REGISTRY, get_rank
from ding.utils.errors import DataError
from ding.utils.types import Tree
from ding.worker.collector.base_serial_evaluator import SerialEvaluator
from ding.worker.collector.steps import Result, SaveFn


class IMetric(ABC):
    """A metric of outputs, given labels."""

    @abstractmethod
    def eval(self, inputs: Tree, label: Tree) -> dict[str, Result]:
        """Compute the metric of one batch of the policy's outputs."""

    @abstractmethod
    def reduce_mean(self, inputs: list[Result]) -> Result:
        """Average results; those of larger batches are repeated, so that each item counts once."""

    @abstractmethod
    def gt(self, metric1: Result, metric2: Result) -> bool:
        """Whether ``metric1`` is at least as good as ``metric2``; true if that is ``None``."""


@SERIAL_EVALUATOR_REGISTRY.register("metric")
class MetricSerialEvaluator(SerialEvaluator):
    """Evaluates a policy on data; ``env`` is a pair of a data loader and an `IMetric`.

    The loader yields batches ``(inputs, label)``.
    """

    config: dict[str, Result] = dict(eval_freq=50)

    def eval(  # type: ignore[override]  # a data set has no episodes to count
        self, save_ckpt_fn: SaveFn = None, train_iter: int = -1, envstep: int = -1
    ) -> tuple[bool, Result]:
        """Evaluate on the whole data set, and save a checkpoint if it is the best so far.

        Returns:
            Whether the metric reaches ``stop_value`` (never at iteration 0), and the metric.
        """
        stop, result = False, None
        if get_rank() == 0:
            self._require_parts()
            loader, metric = cast("tuple[Iterable[Tree], IMetric]", self._env)
            start = time.perf_counter()
            device = self._policies[0].get_attribute("device")
            results, sizes = [], []
            for batch in loader:
                if self.before_step is not None:
                    self.before_step()
                inputs, label = to_device(to_tensor(batch), device)
                results.append(metric.eval(self._policies[0].forward(inputs), label))
                sizes.append(_item_count(label))
            if not results:
                raise DataError(
                    f"{self._instance_name}: the data loader gave no batch: there is nothing to "
                    "judge the policy by"
                )
            # Repeat each batch's result as often as the mean over all items requires.
            unit = math.gcd(*sizes)
            repeated = [one for one, size in zip(results, sizes) for _ in range(size // unit)]
            result = metric.reduce_mean(repeated)
            duration = max(time.perf_counter() - start, 1e-9)
            row = {
                "train_iter": train_iter,
                "data_length": sum(sizes),
                "evaluate_time": duration,
                "avg_time_per_data": duration / sum(sizes),
                **({k: to_item(v) for k, v in result.items()} if isinstance(result, dict) else {}),
            }
            self._log_row("evaluation", row, train_iter, envstep)
            self._keep_best(result, metric.gt(result, self.best), save_ckpt_fn)
            stop = metric.gt(result, self._stop_value) and train_iter > 0
        return self._share(bool(stop), result)


def _item_count(label: Tree) -> int:
    """Number of items in a batch, by its labels; 1 if they have no length."""
    while isinstance(label, Mapping | list | tuple) and label:
        first = next(iter(label.values())) if isinstance(label, Mapping) else label[0]
        if not isinstance(first, torch.Tensor | np.ndarray | Mapping | list | tuple):
            break  # a list of numbers or strings
        label = first
    has_items = not isinstance(label, torch.Tensor | np.ndarray) or label.ndim > 0
    return max(len(label), 1) if has_items and hasattr(label, "__len__") else 1

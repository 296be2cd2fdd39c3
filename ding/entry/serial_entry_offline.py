"""Training from a data set, in one process."""

import math
from typing import Any

import numpy as np
import torch

from ding.config.compile import Strict
from ding.config.notes import Notes
from ding.data import Columns, create_dataset
from ding.data.offline.transition_dataset import transitions_of
from ding.entry.components import Components, InputConfig, load_config
from ding.entry.serial_entry import IN_MEMORY, train
from ding.entry.training_run import TrainingRun
from ding.policy import Policy
from ding.utils.errors import ConfigError, DataError


def serial_pipeline_offline(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: list[Any] | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    strict: Strict = False,
) -> Policy:
    """Train a policy on a data set until it is good enough or a limit is reached.

    The data set is that of ``policy.collect.data_path`` (or ``policy.learn.data_path``), of the
    registered type ``policy.collect.data_type``. ``naive`` (the default) is what
    `ding.entry.collect_demo_data` or a replay buffer's ``save_data`` has saved, or the folder of a
    run, whose replay buffer is taken.
    It is gone through ``policy.learn.train_epoch`` times, in another order each time.
    Environments serve evaluation alone.

    The other arguments, the return value and the errors are those of
    :func:`ding.entry.serial_pipeline`.

    Raises:
        DataError: The data set is empty, or not of transitions.
    """
    notes = Notes()
    cfg = load_config(
        *(input_cfg, seed, env_setting, model),
        on_policy=False,
        notes=notes,
        strict=strict,
        collects=False,
        **IN_MEMORY,
    )
    _adapt(cfg.policy, notes)
    batches = Batches(create_dataset(cfg), cfg.policy.learn.batch_size, cfg.seed)
    epochs = cfg.policy.learn.get("train_epoch")
    limits = [max_train_iter, None if epochs is None else epochs * len(batches)]
    return train(
        *(cfg, notes, batches.learn_once, env_setting, model),
        *(min((limit for limit in limits if limit is not None), default=None), None, True),
        mode="serial_offline",
    )


def _adapt(policy: Any, notes: Notes) -> None:
    """Nothing is collected and nothing drawn: each sample has its turn."""
    policy.random_collect_size = 0
    if policy.get("priority"):
        policy.priority = False
        if "priority_IS_weight" in policy:
            policy.priority_IS_weight = False
        notes.adapt(
            "policy.priority=True: a data set is gone through in turn, so there are no priorities"
        )


class Batches:
    """The batches of a data set, epoch after epoch; which comes depends on its number alone.

    Args:
        dataset: Transitions: ``len`` and items by number.
        batch_size: Samples of a batch; the last one of an epoch may have fewer.
        seed: Of the order of the transitions.

    Raises:
        DataError: No transitions, or items of other kinds.
        ConfigError: A batch size that is none.
    """

    def __init__(self, dataset: Any, batch_size: int, seed: int) -> None:
        if not isinstance(batch_size, int) or batch_size < 1:
            raise ConfigError(f"policy.learn.batch_size is {batch_size!r}; expected a number > 0")
        rows = transitions_of(dataset)
        if not isinstance(rows, Columns) and not all(isinstance(row, dict) for row in rows or [0]):
            what = f"a {type(rows[0]).__name__}" if rows else "nothing"
            raise DataError(
                f"the data set holds {what}; expected transitions, dicts such as "
                "ding.entry.collect_demo_data saves"
            )
        self._length = len(rows)
        self._rows = rows
        self._batch_size = batch_size
        self._seed = seed
        self._epoch = -1
        self._order = np.arange(0)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return math.ceil(self._length / self._batch_size)

    def __getitem__(self, number: int) -> Any:
        """A batch: columns where the transitions have one shape, otherwise rows."""
        epoch, at = divmod(number, len(self))
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = np.random.default_rng([self._seed, epoch]).permutation(self._length)
        index = self._order[at * self._batch_size : (at + 1) * self._batch_size]
        if isinstance(self._rows, Columns):
            return self._rows.take(index)
        return [self._rows[i] for i in index.tolist()]

    def learn_once(self, parts: Components, run: TrainingRun) -> None:
        """One update, on the batch whose turn it is."""
        run.learn(self[parts.learner.train_iter])

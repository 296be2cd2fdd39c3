"""Training from a data set, in one process."""

from typing import Any

import numpy as np
import torch

from ding.config.compile import Strict
from ding.data import Columns
from ding.entry.components import Components, InputConfig
from ding.entry.offline_data import Batches, load_samples
from ding.entry.serial_entry import load_training, priority_info, train_to_end
from ding.entry.serial_run import SerialRun
from ding.policy import Policy
from ding.utils.callbacks import GivenCallbacks
from ding.utils.errors import DataError


def serial_pipeline_offline(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: list[Any] | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy on a data set until it is good enough or a limit is reached.

    The data set is that of ``policy.collect.data_path`` (or ``policy.learn.data_path``), of the
    registered type ``policy.collect.data_type``. ``naive`` (the default) is what
    `ding.entry.collect_demo_data` or a replay buffer's ``save_data`` has saved, or the folder of a
    run, whose replay buffer is taken.

    It is gone through ``policy.learn.train_epoch`` times, in another order each time; with
    ``policy.priority`` as many samples are drawn by their priorities. With ``policy.nstep``
    transitions that follow each other become those of n steps; with
    ``policy.collect.normalize_states`` observations are normalised, here and in the environments,
    which serve evaluation alone.

    The other arguments, the return value and the errors are those of
    `ding.entry.serial_pipeline`.

    Raises:
        DataError: The data set is empty, or not of what the policy learns from.
    """
    return train_offline(
        *(input_cfg, seed, env_setting, model, max_train_iter, strict),
        mode="serial_offline",
        callbacks=callbacks,
    )[0]


def serial_pipeline_bc(
    input_cfg: InputConfig,
    seed: int = 0,
    data_path: str | None = None,
    model: torch.nn.Module | None = None,
    max_iter: int | None = int(1e6),
    env_setting: list[Any] | None = None,
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> tuple[Policy, bool]:
    """Train a policy to act as the demonstrator of a data set did.

    Args:
        data_path: The data set: see `ding.entry.serial_pipeline_offline`. By default that of
            the config.
        max_iter: Updates after which the run ends, if ``policy.learn.train_epoch`` allows as many.

    The other arguments and the errors are those of `ding.entry.serial_pipeline`.

    Returns:
        The policy, and whether it has reached ``env.stop_value``.
    """
    return train_offline(
        *(input_cfg, seed, env_setting, model, max_iter, strict),
        mode="serial_bc",
        data_path=data_path,
        callbacks=callbacks,
    )


def train_offline(
    input_cfg: InputConfig,
    seed: int,
    env_setting: list[Any] | None,
    model: torch.nn.Module | None,
    max_train_iter: int | None,
    strict: Strict,
    mode: str,
    data_path: str | None = None,
    callbacks: GivenCallbacks = None,
) -> tuple[Policy, bool]:
    """What the pipelines that learn from a data set do.

    Args:
        mode: Name of the pipeline on the command line.
        data_path: Instead of that of the config.
        callbacks: Beside those of the config.

    Returns:
        The policy, and whether it has reached its goal.
    """
    cfg, notes = load_training(input_cfg, seed, env_setting, model, strict, collects=False)
    if data_path is not None:
        cfg.policy.collect.data_path = data_path
    cfg.policy.random_collect_size = 0  # nothing is collected
    samples = load_samples(cfg, notes)
    learn = cfg.policy.learn
    batches = Batches(samples, learn.batch_size, cfg.seed, cfg.policy.get("multi_gpu", False))
    epochs = learn.get("train_epoch")
    limits = [max_train_iter, None if epochs is None else epochs * len(batches)]
    source: InTurn = InTurn(batches)
    if cfg.policy.get("priority"):
        cfg.policy.other.replay_buffer.replay_buffer_size = len(samples)
        source = ByPriority(batches, learn.batch_size)
    return train_to_end(
        *(cfg, notes, source.learn_once, env_setting, model),
        *(min((limit for limit in limits if limit is not None), default=None), None, True),
        mode=mode,
        prepare=source.prepare,
        callbacks=callbacks,
    )


class InTurn:
    """Updates on one batch after the other.

    Args:
        batches: Those of the data set.
    """

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def prepare(self, parts: Components) -> None:
        """Nothing has to be done before the first update."""

    def learn_once(self, parts: Components, run: SerialRun) -> None:
        """One update, on the batch whose turn it is."""
        number = parts.learner.train_iter
        # Learning rates may follow the epochs.
        parts.learner.policy.set_attribute("epoch", self._batches.epoch_of(number))
        self._update(parts, run, number)

    def _update(self, parts: Components, run: SerialRun, number: int) -> None:
        run.learn(self._batches[number])


class ByPriority(InTurn):
    """Updates on samples that are drawn by their priorities, which each update renews.

    The run's replay buffer holds the samples' numbers and priorities, so that a resumed run has
    them; the samples themselves stay here.
    """

    def __init__(self, batches: Batches, batch_size: int) -> None:
        super().__init__(batches)
        self._batch_size = batch_size
        if not isinstance(batches.samples, Columns):
            raise DataError(
                "policy.priority=True needs transitions of one shape, and those of the data set "
                "differ in theirs"
            )

    def prepare(self, parts: Components) -> None:
        """Let the buffer know of all samples, unless it does."""
        assert parts.replay_buffer is not None
        if parts.replay_buffer.count() == 0:
            numbers = np.arange(len(self._batches.samples))
            parts.replay_buffer.push(Columns({"sample": numbers}), cur_collector_envstep=0)

    def _update(self, parts: Components, run: SerialRun, number: int) -> None:
        buffer = parts.replay_buffer
        assert buffer is not None
        drawn = buffer.sample(self._batch_size, number)
        assert isinstance(drawn, Columns)
        facts = drawn.columns
        batch = self._batches.take(np.asarray(facts.pop("sample")))
        run.learn(batch.with_columns(**facts))
        buffer.update(priority_info(parts.learner))

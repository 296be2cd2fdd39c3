"""Training from a data set, in one process."""

from typing import Any

import numpy as np
import torch

from ding.config.compile import Strict
from ding.data import Columns
from ding.entry.components import Components, InputConfig
from ding.entry.offline_data import Batches, load_samples
from ding.entry.serial_entry import SerialPipeline, priority_info
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
    pipeline = OfflinePipeline(input_cfg, seed, env_setting, model, strict)
    return pipeline.train(max_train_iter, callbacks=callbacks)[0]


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
    pipeline = CloningPipeline(input_cfg, seed, env_setting, model, strict)
    if data_path is not None:
        pipeline.cfg.policy.collect.data_path = data_path
    return pipeline.train(max_iter, callbacks=callbacks)


class OfflinePipeline(SerialPipeline):
    """Trains on a data set, which is read when training is asked for.

    By priorities, the run's replay buffer holds the samples' numbers and priorities, so that a
    resumed run has them; the samples themselves stay here.
    """

    mode = "serial_offline"
    collects = False

    def train(
        self,
        max_train_iter: int | None,
        max_env_step: int | None = None,
        dynamic_seed: bool | None = True,
        callbacks: GivenCallbacks = None,
    ) -> tuple[Policy, bool]:
        policy = self.cfg.policy
        policy.random_collect_size = 0  # nothing is collected
        samples = load_samples(self.cfg, self.notes)
        several = policy.get("multi_gpu", False)
        self._batches = Batches(samples, policy.learn.batch_size, self.cfg.seed, several)
        if policy.get("priority"):
            policy.other.replay_buffer.replay_buffer_size = len(samples)
            if not isinstance(samples, Columns):
                raise DataError(
                    "policy.priority=True needs transitions of one shape, and those of the data "
                    "set differ in theirs"
                )
        epochs = policy.learn.get("train_epoch")
        limits = [max_train_iter, None if epochs is None else epochs * len(self._batches)]
        most = min((limit for limit in limits if limit is not None), default=None)
        return super().train(most, max_env_step, dynamic_seed, callbacks)

    def prepare(self, parts: Components) -> None:
        """Let a buffer that draws by priority know of all samples, unless it does."""
        if parts.replay_buffer is not None and parts.replay_buffer.count() == 0:
            numbers = np.arange(len(self._batches.samples))
            parts.replay_buffer.push(Columns({"sample": numbers}), cur_collector_envstep=0)

    def round(self, parts: Components, run: SerialRun) -> None:
        """One update: on the batch whose turn it is, or on samples drawn by their priorities."""
        number, buffer = parts.learner.train_iter, parts.replay_buffer
        # Learning rates may follow the epochs.
        parts.learner.policy.set_attribute("epoch", self._batches.epoch_of(number))
        if buffer is None:
            run.learn(self._batches[number])
            return
        drawn = buffer.sample(self.cfg.policy.learn.batch_size, number)
        assert isinstance(drawn, Columns)
        facts = drawn.columns
        batch = self._batches.take(np.asarray(facts.pop("sample")))
        run.learn(batch.with_columns(**facts))
        buffer.update(priority_info(parts.learner))


class CloningPipeline(OfflinePipeline):
    """The same to act as a demonstrator did."""

    mode = "serial_bc"

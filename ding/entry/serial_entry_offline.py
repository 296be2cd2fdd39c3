"""Training from a data set, in one process."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from easydict import EasyDict

from ding.config.check import Notes
from ding.config.complete import Strict
from ding.data import Columns, create_dataset
from ding.data.offline.checks import check_transitions
from ding.data.offline.trajectories import TrajectoryPieces, trajectories
from ding.data.offline.transition_dataset import (
    TransitionDataset,
    moments_of,
    normalised,
    path_key,
    transitions_of,
)
from ding.entry.components import Components, InputConfig
from ding.entry.run.serial import SerialRun
from ding.entry.serial_entry import SerialPipeline, priority_info
from ding.policy import DTPolicy, Policy
from ding.policy.base_policy import get_policy_cls
from ding.policy.common_utils import nstep_train_columns
from ding.utils import get_rank, get_world_size
from ding.utils.callbacks import GivenCallbacks
from ding.utils.errors import ConfigError, DataError
from ding.utils.settings import EnvSetting, at
from ding.utils.types import Settings
from ding.worker.collector.steps import Samples
from ding.worker.replay_buffer.advanced_buffer import without_limits


def serial_pipeline_offline(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy on a data set until its goal or a limit is reached.

    The data set is ``policy.collect.data_path`` (or ``policy.learn.data_path``), of the registered
    type ``policy.collect.data_type``. ``naive`` (the default) is a file of
    `ding.entry.collect_demo_data` or of a replay buffer's ``save_data``, or the folder of a run,
    whose replay buffer is used.

    It is used for ``policy.learn.train_epoch`` epochs and reshuffled for each; with
    ``policy.priority`` as many samples are drawn by their priorities. A run that begins with a
    checkpoint trains for as many epochs more, whereas its updates count for ``max_train_iter``; a
    resumed run trains for those that are left. With ``policy.nstep`` transitions that follow each
    other become those of n steps; with ``policy.collect.normalize_states`` observations are
    normalised, here and in the environments, which serve evaluation alone.

    The other arguments, the return value and the errors are those of
    `ding.entry.serial_pipeline`.

    Raises:
        DataError: The data set is empty, or does not fit the policy.

    Example:

        >>> from ding.entry import collect_demo_data, serial_pipeline_offline
        >>> from ding.entry.quick_config import quick_config
        >>> from ding.model import DQN
        >>> main, create = quick_config("CartPole-v1", "dqn")
        >>> collect_demo_data((main, create), 0, 64, "demo.pkl", model=DQN(4, 2))
        >>> main["policy"].update(collect=dict(data_type="naive", data_path="demo.pkl"))
        >>> policy = serial_pipeline_offline((main, create), seed=0, max_train_iter=1)
    """
    pipeline = OfflinePipeline(input_cfg, seed, env_setting, model, strict)
    return pipeline.train(max_train_iter, callbacks=callbacks)[0]


def serial_pipeline_bc(
    input_cfg: InputConfig,
    seed: int = 0,
    data_path: str | None = None,
    model: torch.nn.Module | None = None,
    max_iter: int | None = int(1e6),
    env_setting: EnvSetting | None = None,
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> tuple[Policy, bool]:
    """Train a policy to imitate the demonstrator of a data set (behaviour cloning).

    Args:
        data_path: The data set: see `ding.entry.serial_pipeline_offline`. By default the config's.
        max_iter: Updates after which the run ends, if ``policy.learn.train_epoch`` allows that
            many.

    The other arguments and the errors are those of `ding.entry.serial_pipeline`.

    Returns:
        The policy, and whether it has reached ``env.stop_value``.
    """
    pipeline = CloningPipeline(input_cfg, seed, env_setting, model, strict)
    if data_path is not None:
        pipeline.cfg.policy.collect.data_path = data_path
    return pipeline.train(max_iter, callbacks=callbacks)


def serial_pipeline_dt(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a decision transformer on the trajectories of a data set (Chen et al. 2021).

    The data set is that of `ding.entry.serial_pipeline_offline`, or ``dataset.data_dir_prefix``;
    transitions are joined to trajectories by their observations. States are normalised by
    ``policy.state_mean`` and ``policy.state_std``, and the policy acts with the target return
    ``policy.rtg_target``: if the config lacks them, they are computed from the data set, and saved
    with the config.

    The arguments, the return value and the errors are those of
    `ding.entry.serial_pipeline_offline`.
    """
    pipeline = TrajectoryPipeline(input_cfg, seed, env_setting, model, strict)
    return pipeline.train(max_train_iter, callbacks=callbacks)[0]


#: Transitions as columns or rows, or segments of trajectories.
DataSet = Samples | TrajectoryPieces


class OfflinePipeline(SerialPipeline):
    """Trains on a data set, which is read when training starts.

    With priorities, the run's replay buffer contains the samples' numbers and priorities, so that a
    resumed run has these, but not the samples.
    """

    mode = "serial_offline"
    collects = False

    @property
    def replays(self) -> bool:
        return bool(self.cfg.policy.get("priority"))

    def train(
        self,
        max_train_iter: int | None,
        max_env_step: int | None = None,
        dynamic_seed: bool | None = True,
        callbacks: GivenCallbacks = None,
    ) -> tuple[Policy, bool]:
        policy = self.cfg.policy
        policy.random_collect_size = 0  # nothing is collected
        samples = self.samples()
        several = policy.get("multi_gpu", False)
        self._batches = Batches(samples, policy.learn.batch_size, self.cfg.seed, several)
        if policy.get("priority"):
            # With room for all: an evicted sample could not be drawn again.
            policy.other.replay_buffer = without_limits(policy.other.replay_buffer, len(samples))
            if not isinstance(samples, Columns):
                raise DataError(
                    "policy.priority=True needs transitions of one shape, and those of the data "
                    "set differ in theirs"
                )
        epochs = policy.learn.get("train_epoch")
        if epochs is not None:
            self.max_own_iter = epochs * len(self._batches)
        return super().train(max_train_iter, max_env_step, dynamic_seed, callbacks)

    def samples(self) -> DataSet:
        """The data set as samples; facts about it may be written into the config."""
        return load_samples(self.cfg, self.notes)

    def prepare(self, parts: Components) -> None:
        """Add all samples to a buffer with priorities, unless it has them: the data set of a
        resumed run may have changed."""
        buffer, count = parts.replay_buffer, len(self._batches.samples)
        # From a state with more samples, the buffer has only loaded the last ones.
        if buffer is not None and getattr(buffer, "push_count", buffer.count()) != count:
            buffer.clear()
            buffer.push(Columns({"sample": np.arange(count)}), cur_collector_envstep=0)

    def round(self, parts: Components, run: SerialRun) -> None:
        """One update: on the batch whose turn it is, or on samples drawn by their priorities."""
        train_iter, buffer = parts.learner.train_iter, parts.replay_buffer
        number = train_iter - parts.first_iter
        # Learning rates may follow the epochs.
        parts.learner.policy.set_attribute("epoch", number // len(self._batches))
        if buffer is None:
            run.learn(self._batches[number])
            return
        size = min(self.cfg.policy.learn.batch_size, len(self._batches.samples))
        drawn = buffer.sample(size, train_iter)
        assert isinstance(drawn, Columns)
        facts = drawn.columns
        batch = self._batches.take(np.asarray(facts.pop("sample")))
        assert isinstance(batch, Columns)  # `train` has checked this
        run.learn(batch.with_columns(**facts))
        buffer.update(priority_info(parts.learner))


class CloningPipeline(OfflinePipeline):
    """As `OfflinePipeline`, for behaviour cloning."""

    mode = "serial_bc"


class TrajectoryPipeline(OfflinePipeline):
    """As `OfflinePipeline`, with segments of trajectories as samples."""

    mode = "serial_dt"

    def samples(self) -> TrajectoryPieces:
        policy, source = self.cfg.policy, _source(self.cfg)
        policy.pop("nstep", None)  # from configs that other policies share
        for name in ("batch_size", "learning_rate"):
            policy.learn[name] = policy[name] = policy[name] or policy.learn[name]
        data, model = load_samples(self.cfg, self.notes), policy.model
        if not isinstance(data, Columns):
            raise DataError(f"{source} holds observations of different shapes; expected one shape")
        shapes = {"obs_shape": model.state_dim, "action_shape": model.act_dim}
        facts = {"continuous": model.continuous, "action_space": "discrete", "model": shapes}
        check_transitions(data, DTPolicy.data_columns, facts, source)
        if policy.state_mean is None or policy.state_std is None:
            policy.state_mean, policy.state_std = (one.tolist() for one in moments_of(data, source))
        pieces = TrajectoryPieces(data, model.context_len)
        if policy.rtg_target is None:
            policy.rtg_target = float(pieces.returns.max())
        return pieces


_TRANSITION = ("obs", "action", "reward", "next_obs", "done")


def load_samples(cfg: EasyDict, notes: Notes) -> Samples:
    """The data set of a config as samples: columns if all have the same shapes, otherwise rows.

    Args:
        cfg: A compiled config; ``policy.nstep`` applies. If it asks for normalised observations
            (``policy.collect.normalize_states`` or ``env.norm_obs.offline_stats``), their mean and
            deviation are written into it.
        notes: Receives notes on changes of the data.

    Raises:
        ConfigError: There is no path, or the type is unknown.
        CheckpointError: The file cannot be read.
        DataError: The data does not fit the policy; contains the reason.
    """
    source = _source(cfg)
    dataset = create_dataset(cfg)
    if isinstance(dataset, TransitionDataset) and dataset.adapted:
        notes.adapt(dataset.adapted)
    data = transitions_of(dataset)
    if not isinstance(data, Columns) and not all(isinstance(row, dict) for row in data or [0]):
        what = f"a {type(data[0]).__name__}" if len(data) else "nothing"
        raise DataError(
            f"{source} holds {what}; expected transitions, dicts such as "
            "ding.entry.collect_demo_data saves"
        )
    policy_class = get_policy_cls(cfg.policy)
    # Columns that the policy learns from; unknown for a custom policy.
    is_ours = policy_class.__module__.startswith("ding.policy.")
    usual: Sequence[str] = _TRANSITION if is_ours else ()
    required = usual if policy_class.data_columns is None else policy_class.data_columns
    check_transitions(data, required, cfg.policy, source)
    if isinstance(data, Columns) and "obs" in data.columns:
        data = _normalised(data, cfg, notes, source)
    nstep = cfg.policy.get("nstep") or 1
    # In data of a team or for a custom policy, rewards with several numbers may mean anything.
    one_reward = "reward" in required and not cfg.policy.get("multi_agent")
    if isinstance(data, Columns) and (nstep > 1 or one_reward):
        learn = policy_class.default_config().learn
        section = cfg.policy.learn if "discount_factor" in learn else cfg.policy
        data = with_nstep(data, nstep, section.get("discount_factor", 0.99), source)
    return data


def _source(cfg: Settings) -> str:
    key = path_key(cfg)
    if key is None:
        return "the data set"
    return f"the data set {at(cfg, key)!r} ({key})"


def _normalised(data: Columns, cfg: EasyDict, notes: Notes, source: str) -> Columns:
    """Normalise the data and the environments in the same way, if the config asks for it."""
    given = (cfg.env.get("norm_obs") or {}).get("offline_stats") or {}
    if not given.get("use_offline_stats") and not cfg.policy.collect.get("normalize_states"):
        return data
    mean, std = given.get("mean"), given.get("std")
    if mean is None or std is None:
        mean, std = moments_of(data, source)
        notes.adapt(
            "env.norm_obs.offline_stats has the mean and standard deviation of the data set's "
            "observations: environments normalise theirs as the data is normalised. A custom "
            "environment class has to read this key to do so"
        )
    cfg.env.norm_obs = {
        **(cfg.env.get("norm_obs") or {}),
        "offline_stats": {
            "use_offline_stats": True,
            "mean": np.asarray(mean).tolist(),
            "std": np.asarray(std).tolist(),
        },
    }
    return normalised(data, mean, std)


def with_nstep(data: Columns, nstep: int, gamma: float, source: str = "the data set") -> Columns:
    """n-step transitions, joined from transitions that are consecutive by their observations.

    Data whose rewards already have n steps is not changed.

    Args:
        data: With ``reward`` ``[N]``, ``[N, 1]`` or ``[N, n]``.

    Raises:
        DataError: Rewards have another number of steps.
    """
    if "reward" not in data.columns:
        raise DataError(f"{source} has no 'reward', which policy.nstep={nstep} needs")
    reward = np.asarray(data.column("reward"))
    steps = math.prod(reward.shape[1:])
    if steps == nstep:
        return data
    if steps != 1:
        raise DataError(
            f"the rewards of {source} are of {steps} steps, and policy.nstep={nstep}: expected 1 "
            f"or {nstep}. Set policy.nstep={steps}, or make it with "
            f"ding.entry.episode_to_transitions(..., nstep={nstep})"
        )
    order, lengths = trajectories(data)
    columns = data.take(order).columns
    columns["reward"] = np.asarray(columns["reward"], np.float32).reshape(-1)
    columns["done"] = np.asarray(columns["done"]).reshape(-1)
    return Columns(nstep_train_columns(columns, lengths, nstep, gamma))


class Batches:
    """The batches of a data set over all epochs; a batch depends only on its number.

    With several learners, each has its share of an epoch.

    Args:
        samples: Columns, or a list of rows.
        batch_size: Number of samples in a batch; the last one of an epoch may have fewer.
        seed: Seed of the order of the samples.

    Raises:
        DataError: There are no samples.
        ConfigError: The batch size is invalid.
    """

    def __init__(self, samples: DataSet, batch_size: int, seed: int, several: bool = False) -> None:
        if not isinstance(batch_size, int) or batch_size < 1:
            raise ConfigError(f"policy.learn.batch_size is {batch_size!r}; expected a number > 0")
        if not len(samples):
            raise DataError("the data set holds nothing; expected transitions")
        self.samples = samples
        self._batch_size = batch_size
        self._seed = seed
        self._rank, self._ranks = (get_rank(), get_world_size()) if several else (0, 1)
        self._epoch = -1
        self._order = np.arange(0)

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        share = math.ceil(len(self.samples) / self._ranks)
        return math.ceil(share / self._batch_size)

    def __getitem__(self, number: int) -> Samples:
        """A batch: columns if all samples have the same shapes, otherwise rows."""
        epoch, at = divmod(number, len(self))
        if epoch != self._epoch:
            order = np.random.default_rng([self._seed, epoch]).permutation(len(self.samples))
            # Repeat the first samples, so that all learners have the same number.
            share = math.ceil(len(order) / self._ranks)
            self._order = np.resize(order, share * self._ranks)[self._rank :: self._ranks]
            self._epoch = epoch
        return self.take(self._order[at * self._batch_size : (at + 1) * self._batch_size])

    def take(self, index: np.ndarray) -> Samples:
        """Samples by number."""
        if isinstance(self.samples, Columns | TrajectoryPieces):
            return self.samples.take(index)
        return [self.samples[i] for i in index.tolist()]

"""Off-policy training with additional demonstrations: DQfD, R2D3 and SQIL, in one process."""

import numpy as np
import torch
from easydict import EasyDict

from ding.config.complete import Strict
from ding.data import Columns
from ding.data.arrays import Item, Items
from ding.entry.components import Components, InputConfig
from ding.entry.expert import ExpertPipeline, as_samples
from ding.entry.run.serial import SerialRun
from ding.entry.serial_entry import priority_info
from ding.policy import Policy
from ding.utils.callbacks import GivenCallbacks
from ding.utils.errors import ConfigError
from ding.utils.settings import EnvSetting
from ding.utils.types import Tree
from ding.worker import create_buffer
from ding.worker.collector.steps import Mode
from ding.worker.replay_buffer.advanced_buffer import AdvancedReplayBuffer, without_limits
from ding.worker.replay_buffer.demonstrations import DemonstrationBuffer


def serial_pipeline_dqfd(
    input_cfg: InputConfig,
    expert_cfg: InputConfig | None = None,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    expert_model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy from its own experience and an expert's (Hester et al. 2018).

    The expert plays ``policy.learn.expert_replay_buffer_size`` samples in the environments of
    ``input_cfg``; they are kept for the whole run. The first ``policy.learn.per_train_iter_k``
    updates use only these, later batches the fraction ``policy.collect.pho`` of them.

    Args:
        input_cfg: Config of the trained policy; ``policy.collect.model_path`` is the expert's
            checkpoint, the folder of its run, or ``zoo:NAME``.
        expert_cfg: The expert's config; only its policy is used, of any type with the same
            actions. By default the config of the run to which the checkpoint belongs.
        expert_model: The expert's network; with it no checkpoint is needed.

    The other arguments, the return value and the errors are those of
    `ding.entry.serial_pipeline`.
    """
    pipeline = DemonstrationPipeline(input_cfg, seed, env_setting, model, strict)
    pipeline.find_expert(expert_cfg, expert_model)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


#: R2D3's pipeline (Paine et al. 2019) is that of DQfD, with sequences of steps as samples.
serial_pipeline_r2d3 = serial_pipeline_dqfd


def serial_pipeline_sqil(
    input_cfg: InputConfig,
    expert_cfg: InputConfig | None = None,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    expert_model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Imitate an expert by Q-learning with constant rewards (SQIL, Reddy et al. 2019).

    Half of each batch are demonstrations, whose steps get the reward 1; the other half is the
    policy's own experience, with the reward 0. The environments' rewards are not used.

    The expert plays ``policy.expert_random_collect_size`` steps; if ``policy.collect.data_path``
    names a file of transitions, these are the demonstrations.

    The arguments, the return value and the errors are those of `serial_pipeline_dqfd`.

    Raises:
        DataError: The file's transitions lack a column, contain NaN, or do not fit the policy.
    """
    pipeline = SQILPipeline(input_cfg, seed, env_setting, model, strict)
    pipeline.find_expert(expert_cfg, expert_model)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


class DemonstrationPipeline(ExpertPipeline):
    """Trains off-policy with additional demonstrations."""

    mode = "serial_dqfd"

    def settle(self) -> None:
        other = self.cfg.policy.other
        if (kind := other.replay_buffer.get("type")) in ("naive", "deque"):
            own = AdvancedReplayBuffer.default_config()
            kept = {name: value for name, value in other.replay_buffer.items() if name in own}
            other.replay_buffer = EasyDict({**own, **kept, "type": "advanced"})
            self.notes.adapt(
                f"create_config.replay_buffer.type={kind!r}: demonstrations need 'advanced', which "
                "is used"
            )

    def found(
        self, expert_cfg: InputConfig | None, model: torch.nn.Module | None
    ) -> Columns | Mode:
        self.check()
        return super().found(expert_cfg, model)

    def check(self) -> None:
        """Reject settings that this pipeline cannot use."""
        cfg = self.cfg.policy
        if "expert_replay_buffer_size" not in cfg.learn:
            raise ConfigError(
                f"policy {cfg.type.removesuffix('_command')!r} does not learn from demonstrations: "
                "use 'dqfd' or 'r2d3', or another pipeline"
            )
        if not 0 <= cfg.collect.pho <= 1:
            raise ConfigError(f"policy.collect.pho is {cfg.collect.pho}; it must be from 0 to 1")

    def outfit(self, parts: Components) -> None:
        super().outfit(parts)
        own, cfg = parts.replay_buffer, parts.cfg.policy.other.replay_buffer
        if not isinstance(own, AdvancedReplayBuffer):
            raise ConfigError(
                f"create_config.replay_buffer.type is {cfg.type!r}; demonstrations need 'advanced'"
            )
        demonstrations = create_buffer(
            without_limits(cfg, self.count),
            tb_logger=None,
            exp_name=parts.cfg.exp_name,
            instance_name="demonstrations",
        )
        assert isinstance(demonstrations, AdvancedReplayBuffer)
        parts.replay_buffer = self.mixed(own, demonstrations)

    @property
    def count(self) -> int:
        """Number of demonstrations."""
        return self.cfg.policy.learn.expert_replay_buffer_size

    def mixed(
        self, own: AdvancedReplayBuffer, demonstrations: AdvancedReplayBuffer
    ) -> DemonstrationBuffer:
        """The buffer from which batches are drawn."""
        return DemonstrationBuffer(own, demonstrations, self.cfg.policy.collect.pho)

    def prepare(self, parts: Components) -> None:
        """Let the expert play before own samples are collected, unless it has already."""
        buffer = parts.replay_buffer
        assert isinstance(buffer, DemonstrationBuffer)
        if not buffer.demonstrations.count():
            buffer.demonstrations.push(self.demonstrations(parts))
        super().prepare(parts)

    def demonstrations(self, parts: Components) -> Columns:
        """The expert's samples."""
        policy = parts.policy
        writer = parts.learner.tb_logger
        samples = self.play(self.expert, policy.collect_mode, self.count, writer=writer)
        return samples.with_columns(is_expert=torch.ones(len(samples)))

    def round(self, parts: Components, run: SerialRun) -> None:
        """Learn from demonstrations alone at first, then as in other off-policy runs."""
        buffer, learner = parts.replay_buffer, parts.learner
        assert isinstance(buffer, DemonstrationBuffer)
        if learner.train_iter >= parts.cfg.policy.learn.get("per_train_iter_k", 0):
            super().round(parts, run)
            return
        batch_size = learner.policy.get_attribute("batch_size")
        batch = buffer.sample_demonstrations(batch_size, learner.train_iter)
        if batch is None:
            raise ConfigError(
                "policy.learn.expert_replay_buffer_size is too small for a batch of "
                f"policy.learn.batch_size={batch_size} demonstrations"
            )
        run.learn(batch)
        if learner.policy.get_attribute("priority"):
            buffer.update(priority_info(learner))


class SQILPipeline(DemonstrationPipeline):
    """Trains on demonstrations with reward 1 and own steps with reward 0."""

    mode, columns = "serial_sqil", ("obs", "action", "next_obs", "done")
    count = ExpertPipeline.count

    def check(self) -> None:
        if self.cfg.policy.get("multi_agent"):
            raise ConfigError("serial_pipeline_sqil trains one agent; policy.multi_agent is True")

    def mixed(
        self, own: AdvancedReplayBuffer, demonstrations: AdvancedReplayBuffer
    ) -> DemonstrationBuffer:
        return _UnrewardedBuffer(own, demonstrations, 0.5)

    def demonstrations(self, parts: Components) -> Columns:
        collect_mode: Mode = parts.policy.collect_mode
        if collect_mode.batched is None:
            raise ConfigError(
                f"{type(parts.policy).__name__} makes its samples row by row; SQIL needs a policy "
                "with _get_train_columns"
            )

        def rewarded(columns: dict[str, Tree], lengths: np.ndarray) -> dict[str, Tree]:
            # Before n-step samples are made: steps after an episode's end have no reward.
            ones = np.ones(int(lengths.sum()), np.float32)
            return collect_mode.batched.get_train_columns({**columns, "reward": ones}, lengths)

        if isinstance(self.expert, Columns):
            return as_samples(self.expert, rewarded)
        writer = parts.learner.tb_logger
        return self.play(self.expert, collect_mode, self.count, rewarded, writer=writer)


class _UnrewardedBuffer(DemonstrationBuffer):
    """Stores own experience with the reward 0."""

    def push(self, data: Items | Item, cur_collector_envstep: int = -1) -> None:
        rows: Items = data if isinstance(data, list) else [data]
        samples = rows if isinstance(rows, Columns) else Columns.from_rows(rows)
        reward = samples.column("reward")
        if isinstance(reward, torch.Tensor):
            zeros = samples.with_columns(reward=torch.zeros_like(reward))
        else:
            zeros = samples.with_columns(reward=np.zeros_like(np.asarray(reward)))
        super().push(zeros, cur_collector_envstep)

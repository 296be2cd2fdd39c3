"""Off-policy training that begins with an expert's demonstrations, in one process."""

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from easydict import EasyDict

from ding.config.complete import Strict
from ding.data import Columns
from ding.entry.components import (
    Components,
    InputConfig,
    load_config,
    load_weights,
    make_env_manager,
    seed_envs,
)
from ding.entry.serial_entry import SerialPipeline
from ding.entry.serial_run import SerialRun
from ding.policy import Policy, create_policy
from ding.utils import read_file
from ding.utils.callbacks import GivenCallbacks
from ding.utils.errors import ConfigError
from ding.worker import SampleSerialCollector, create_buffer
from ding.worker.replay_buffer.advanced_buffer import AdvancedReplayBuffer
from ding.worker.replay_buffer.demonstrations import DemonstrationBuffer


def serial_pipeline_dqfd(
    input_cfg: InputConfig,
    expert_cfg: InputConfig,
    seed: int = 0,
    env_setting: list[Any] | None = None,
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
    updates are from them alone, later batches have ``policy.collect.pho`` of them.

    Args:
        input_cfg: Of the policy that is trained; ``policy.collect.model_path`` is the expert's
            checkpoint.
        expert_cfg: Of the expert, of which the policy alone is used: of any type that chooses the
            same actions.
        expert_model: The expert's network; with it a checkpoint is not needed.

    The other arguments, the return value and the errors are those of
    `ding.entry.serial_pipeline`.
    """
    pipeline = DemonstrationPipeline(input_cfg, seed, env_setting, model, strict)
    _check(pipeline.cfg.policy)
    pipeline.expert = _expert(pipeline.cfg, expert_cfg, env_setting, expert_model)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


#: R2D3's pipeline (Paine et al. 2019) is that of DQfD, where samples are sequences of steps.
serial_pipeline_r2d3 = serial_pipeline_dqfd


class DemonstrationPipeline(SerialPipeline):
    """Trains off-policy, on demonstrations as well.

    Attributes:
        expert: Who gives them; set before it trains.
    """

    expert: Any

    def outfit(self, parts: Components) -> None:
        cfg = parts.cfg.policy
        room = cfg.learn.expert_replay_buffer_size
        demonstrations = create_buffer(
            EasyDict(cfg.other.replay_buffer, replay_buffer_size=room, max_use=float("inf")),
            tb_logger=None,
            exp_name=parts.cfg.exp_name,
            instance_name="demonstrations",
        )
        own = parts.replay_buffer
        if not (
            isinstance(own, AdvancedReplayBuffer)
            and isinstance(demonstrations, AdvancedReplayBuffer)
        ):
            raise ConfigError(
                f"policy.other.replay_buffer.type={cfg.other.replay_buffer.type!r}: demonstrations "
                "need an 'advanced' buffer, which keeps priorities"
            )
        parts.replay_buffer = DemonstrationBuffer(own, demonstrations, cfg.collect.pho)
        parts.mode = ""

    def prepare(self, parts: Components) -> None:
        """Let the expert play, unless it has."""
        buffer, cfg = parts.replay_buffer, parts.cfg
        policy: Any = parts.policy
        assert isinstance(buffer, DemonstrationBuffer)
        if buffer.demonstrations.count():
            return
        with contextlib.ExitStack() as stack:
            env = make_env_manager(cfg, self.env_setting, evaluate=False)
            stack.callback(env.close)
            seed_envs(env, cfg.seed, "expert")
            collector = SampleSerialCollector(
                EasyDict({**SampleSerialCollector.default_config(), "collect_print_freq": 10**9}),
                env,
                _played_by(self.expert.eval_mode, policy.collect_mode),
                tb_logger=parts.learner.tb_logger,
                exp_name=cfg.exp_name,
                instance_name="demonstrations",
            )
            stack.callback(collector.close)
            samples = collector.collect(cfg.policy.learn.expert_replay_buffer_size)
            policy.collect_mode.reset()
        if not isinstance(samples, Columns):
            samples = Columns.from_rows(samples)
        samples = samples.with_columns(is_expert=torch.ones(len(samples)))
        buffer.demonstrations.push(samples)

    def round(self, parts: Components, run: SerialRun) -> None:
        """From demonstrations alone at first, then as ever."""
        buffer, learner = parts.replay_buffer, parts.learner
        assert isinstance(buffer, DemonstrationBuffer)
        if learner.train_iter >= parts.cfg.policy.learn.per_train_iter_k:
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
            buffer.update(learner.priority_info)


def _check(cfg: Any) -> None:
    if "expert_replay_buffer_size" not in cfg.learn:
        raise ConfigError(
            f"policy {cfg.type.removesuffix('_command')!r} does not learn from demonstrations: "
            "use 'dqfd' or 'r2d3', or another pipeline"
        )
    if cfg.other.replay_buffer.type != "advanced":
        raise ConfigError(
            f"create_config.replay_buffer.type is {cfg.other.replay_buffer.type!r}; "
            "demonstrations need 'advanced'"
        )
    if not 0 <= cfg.collect.pho <= 1:
        raise ConfigError(f"policy.collect.pho is {cfg.collect.pho}; it must be from 0 to 1")


def _expert(
    cfg: EasyDict,
    expert_cfg: InputConfig,
    env_setting: list[Any] | None,
    model: torch.nn.Module | None,
) -> Any:
    """The expert, with its weights."""
    path = cfg.policy.collect.model_path
    if not path and model is None:
        raise ConfigError(
            "policy.collect.model_path is missing: name the expert's checkpoint, such as "
            "'<run>/ckpt/ckpt_best.pth.tar', or pass expert_model"
        )
    compiled = load_config(expert_cfg, cfg.seed, env_setting, model, command=False, collects=False)
    expert: Any = create_policy(compiled.policy, model=model, enable_field=["eval"])
    if expert.eval_mode.batched is None:
        raise ConfigError(
            f"{type(expert).__name__} acts in one environment at a time; demonstrations need an "
            "expert with _forward_eval_batch"
        )
    if path:
        source = f"policy.collect.model_path={path!r}"
        load_weights(expert.eval_mode, read_file(path), source, "the expert's config")
    return expert


def _played_by(expert: Any, policy: Any) -> Any:
    """A collect mode that makes the samples of ``policy`` from what the expert does."""

    def act(obs: Any, env_ids: Any = None) -> dict[str, Any]:
        ids = {"env_ids": env_ids}
        outputs = {}
        if policy.batched.transition_outputs:
            own = ids if policy.batched.recurrent else {}
            outputs = policy.batched.forward(obs, eps=0.0, **own)
        its = ids if expert.batched.recurrent else {}
        return {**outputs, "action": expert.batched.forward(obs, **its)["action"]}

    def act_rows(data: Mapping[int, Any]) -> dict[int, Any]:
        outputs = policy.forward(data, eps=0.0)
        return {
            i: {**outputs[i], "action": one["action"]} for i, one in expert.forward(data).items()
        }

    def reset(data_id: Any = None) -> None:
        policy.reset(data_id)
        expert.reset(data_id)

    mode = policy._replace(forward=act_rows, reset=reset)
    mode.batched = dataclasses.replace(
        policy.batched,
        forward=act,
        resets=True,
        recurrent=policy.batched.recurrent or expert.batched.recurrent,
    )
    return mode

"""Training with the rewards of a reward model, in one process."""

from typing import Any

import torch

from ding.config.complete import Strict
from ding.entry.components import InputConfig
from ding.entry.serial_entry import SerialPipeline
from ding.entry.serial_entry_onpolicy import OnPolicyPipeline
from ding.policy import Policy
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.callbacks import GivenCallbacks
from ding.utils.errors import ConfigError


def serial_pipeline_reward_model_offpolicy(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: list[Any] | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy from a replay buffer, with the rewards of the config's ``reward_model``.

    Arguments, return value and errors are those of `ding.entry.serial_pipeline`.
    """
    pipeline = RewardModelPipeline(input_cfg, seed, env_setting, model, strict)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


def serial_pipeline_reward_model_onpolicy(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: list[Any] | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy on what it has just collected, with the rewards of the ``reward_model``.

    Arguments, return value and errors are those of `ding.entry.serial_pipeline`.
    """
    pipeline = OnPolicyRewardModelPipeline(input_cfg, seed, env_setting, model, strict)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


class _WithRewardModel(SerialPipeline):
    """Refuses a config without a reward model; every serial pipeline uses the one of its config."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.cfg.get("reward_model"):
            known = ", ".join(sorted(REWARD_MODEL_REGISTRY.query()))
            raise ConfigError(f"missing section reward_model: its type is one of {known}")


class RewardModelPipeline(_WithRewardModel):
    """Trains off-policy with a reward model."""

    mode = "serial_reward_model"


class OnPolicyRewardModelPipeline(_WithRewardModel, OnPolicyPipeline):
    """Trains on-policy with a reward model."""

    mode = "serial_reward_model_onpolicy"

"""On-policy training in one process."""

from typing import Any

import torch

from ding.config.complete import Strict
from ding.entry.components import Components, InputConfig
from ding.entry.run.serial import SerialRun
from ding.entry.serial_entry import SerialPipeline, players_data
from ding.policy import Policy
from ding.utils.callbacks import GivenCallbacks


def serial_pipeline_onpolicy(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: list[Any] | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy on what it has just collected, until it is good enough or a limit is reached.

    Arguments, return value and errors are those of `ding.entry.serial_pipeline`.

    Example:

        >>> from ding.entry import serial_pipeline_onpolicy
        >>> from ding.entry.quick_config import quick_config
        >>> config = quick_config("CartPole-v1", "ppo")
        >>> config[0]["policy"]["collect"]["n_sample"] = 64
        >>> policy = serial_pipeline_onpolicy(config, seed=0, max_env_step=64)
    """
    pipeline = OnPolicyPipeline(input_cfg, seed, env_setting, model, strict)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


#: PPG's policy keeps what its auxiliary phases need itself.
serial_pipeline_onpolicy_ppg = serial_pipeline_onpolicy


class OnPolicyPipeline(SerialPipeline):
    """Trains on what was just collected."""

    mode = "serial_onpolicy"
    on_policy = True

    def round(self, parts: Components, run: SerialRun) -> None:
        on_policy_round(parts, run)


def on_policy_round(parts: Components, run: SerialRun) -> None:
    """Collect, then learn from all of it once."""
    data = run.collect(parts.commander.step())
    run.learn(players_data(data))

"""On-policy training in one process."""

from typing import Any

import torch

from ding.config.compile import Strict
from ding.entry.components import Components, InputConfig
from ding.entry.serial_entry import load_training, players_data, train_to_end
from ding.entry.serial_run import SerialRun
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
    """
    cfg, notes = load_training(input_cfg, seed, env_setting, model, strict, on_policy=True)
    return train_to_end(
        *(cfg, notes, on_policy_round, env_setting, model, max_train_iter, max_env_step, True),
        mode="serial_onpolicy",
        callbacks=callbacks,
    )[0]


def serial_pipeline_onpolicy_ppg(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: list[Any] | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """`serial_pipeline_onpolicy`: the policy keeps what its auxiliary phases need itself."""
    return serial_pipeline_onpolicy(
        input_cfg, seed, env_setting, model, max_train_iter, max_env_step, strict, callbacks
    )


def on_policy_round(parts: Components, run: SerialRun) -> None:
    """Collect, then learn from all of it once."""
    data = run.collect(parts.commander.step())
    run.learn(players_data(data))

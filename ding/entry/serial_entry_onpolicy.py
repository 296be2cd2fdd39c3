"""On-policy training in one process."""

from typing import Any

import torch

from ding.config.compile import Strict
from ding.config.notes import Notes
from ding.entry.components import Components, InputConfig, load_config
from ding.entry.serial_entry import IN_MEMORY, players_data, train
from ding.entry.serial_run import SerialRun
from ding.policy import Policy


def serial_pipeline_onpolicy(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: list[Any] | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
) -> Policy:
    """Train a policy on what it has just collected, until it is good enough or a limit is reached.

    Arguments, return value and errors are those of :func:`ding.entry.serial_pipeline`.
    """
    notes = Notes()
    cfg = load_config(
        *(input_cfg, seed, env_setting, model),
        on_policy=True,
        notes=notes,
        strict=strict,
        **IN_MEMORY,
    )
    return train(
        *(cfg, notes, on_policy_round, env_setting, model, max_train_iter, max_env_step, True),
        mode="serial_onpolicy",
    )


def on_policy_round(parts: Components, run: SerialRun) -> None:
    """Collect, then learn from all of it once."""
    data = run.collect(parts.commander.step())
    run.learn(players_data(data))

"""On-policy training with phasic policy gradient, by the name that scripts know."""

from typing import Any

import torch

from ding.config.compile import Strict
from ding.entry.components import InputConfig
from ding.entry.serial_entry_onpolicy import serial_pipeline_onpolicy
from ding.policy import Policy


def serial_pipeline_onpolicy_ppg(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: list[Any] | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
) -> Policy:
    """:func:`serial_pipeline_onpolicy`: the policy keeps what its auxiliary phases need itself."""
    return serial_pipeline_onpolicy(
        input_cfg, seed, env_setting, model, max_train_iter, max_env_step, strict
    )

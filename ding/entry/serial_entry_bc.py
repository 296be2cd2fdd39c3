"""Behaviour cloning, in one process."""

from typing import Any

import torch

from ding.config.compile import Strict
from ding.entry.components import InputConfig
from ding.entry.serial_entry_offline import train_offline
from ding.policy import Policy


def serial_pipeline_bc(
    input_cfg: InputConfig,
    seed: int = 0,
    data_path: str | None = None,
    model: torch.nn.Module | None = None,
    max_iter: int | None = int(1e6),
    env_setting: list[Any] | None = None,
    strict: Strict = False,
) -> tuple[Policy, bool]:
    """Train a policy to act as the demonstrator of a data set did.

    Args:
        data_path: The data set: see :func:`ding.entry.serial_pipeline_offline`. By default that of
            the config.
        max_iter: Updates after which the run ends, if ``policy.learn.train_epoch`` allows as many.

    The other arguments and the errors are those of :func:`ding.entry.serial_pipeline`.

    Returns:
        The policy, and whether it has reached ``env.stop_value``.
    """
    return train_offline(
        *(input_cfg, seed, env_setting, model, max_iter, strict), "serial_bc", data_path
    )

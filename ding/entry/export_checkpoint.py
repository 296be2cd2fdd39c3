"""Checkpoints for programs written for DI-engine."""

from typing import Any

import torch

from ding.entry.components import InputConfig, load_config, load_weights
from ding.policy import create_policy, in_old_form
from ding.torch_utils import to_device
from ding.utils import read_file, save_file


def export_checkpoint(
    input_cfg: InputConfig,
    load_path: str,
    save_path: str,
    env_setting: list[Any] | None = None,
    model: torch.nn.Module | None = None,
) -> None:
    """Write a checkpoint under the names of parameters that DI-engine gives them.

    Args:
        input_cfg: The run's config, as the other entries take it.
        load_path: A checkpoint of the run.
        save_path: Where to write the other. It loads here as well as there.

    Raises:
        CheckpointError: The file cannot be read, or does not fit the config.
    """
    cfg = load_config(input_cfg, 0, env_setting, model, command=False)
    state = read_file(load_path)
    mode: Any = create_policy(cfg.policy, model=model, enable_field=["eval"]).eval_mode
    load_weights(mode, state, load_path)
    save_file(save_path, to_device(in_old_form(mode, state), "cpu"))

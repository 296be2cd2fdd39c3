"""What a policy's command mode says of collecting and evaluating, such as how much it explores."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from easydict import EasyDict

from ding.policy import create_policy
from ding.worker.coordinator._task_builder import section

#: Settings by ``learner_step`` and ``envstep``.
Settings = Callable[[Mapping[str, int]], dict[str, Any]]


def command_settings(cfg: Mapping[str, Any]) -> tuple[Settings, Settings]:
    """What gives the settings of collecting and of evaluating.

    Args:
        cfg: The main config.
    """
    policy_cfg = EasyDict(copy.deepcopy(dict(section(cfg, "policy"))))
    if not str(policy_cfg.type).endswith("_command"):
        policy_cfg.type = f"{policy_cfg.type}_command"
    policy_cfg.cuda = policy_cfg.multi_gpu = False
    # No network is needed to tell settings.
    policy: Any = create_policy(policy_cfg, model=torch.nn.Identity(), enable_field=["command"])
    mode = policy.command_mode
    return mode.get_setting_collect, mode.get_setting_eval

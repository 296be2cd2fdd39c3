"""Helpers around configs that scripts import from here."""

from ding.config.hosts import (
    parallel_transform,
    parallel_transform_k8s,
    parallel_transform_slurm,
    set_collector_interaction_for_coordinator,
    set_host_port,
    set_host_port_k8s,
    set_host_port_slurm,
    set_learner_interaction_for_coordinator,
    set_system_cfg,
)
from ding.config.parallel_test_config import (
    parallel_test_create_config,
    parallel_test_main_config,
    parallel_test_system_config,
)
from ding.config.save import save_config_formatted

__all__ = [
    "parallel_test_create_config",
    "parallel_test_main_config",
    "parallel_test_system_config",
    "parallel_transform",
    "parallel_transform_k8s",
    "parallel_transform_slurm",
    "save_config_formatted",
    "set_collector_interaction_for_coordinator",
    "set_host_port",
    "set_host_port_k8s",
    "set_host_port_slurm",
    "set_learner_interaction_for_coordinator",
    "set_system_cfg",
]

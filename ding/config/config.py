"""The public names of this package, in one place."""

from ding.config.compile import compile_buffer_config, compile_collector_config, compile_config
from ding.config.compile_parallel import compile_config_parallel
from ding.config.read import (
    Config,
    read_config,
    read_config_directly,
    read_config_with_system,
    read_config_yaml,
)
from ding.config.save import save_config, save_config_py, save_config_yaml, save_project_state

__all__ = [
    "Config",
    "compile_buffer_config",
    "compile_collector_config",
    "compile_config",
    "compile_config_parallel",
    "read_config",
    "read_config_directly",
    "read_config_with_system",
    "read_config_yaml",
    "save_config",
    "save_config_py",
    "save_config_yaml",
    "save_project_state",
]

from ding.envs.env.base_env import (
    BaseEnv,
    BaseEnvTimestep,
    get_env_cls,
    get_vec_env_setting,
    is_truncated,
)
from ding.envs.env.ding_env_wrapper import DingEnvWrapper
from ding.envs.env.env_implementation_check import (
    check_all,
    check_array_space,
    check_different_memory,
    demonstrate_correct_procedure,
)
from ding.envs.env.gymnasium_env import GymnasiumEnv

__all__ = [
    "BaseEnv",
    "BaseEnvTimestep",
    "DingEnvWrapper",
    "GymnasiumEnv",
    "check_all",
    "check_array_space",
    "check_different_memory",
    "demonstrate_correct_procedure",
    "get_env_cls",
    "get_vec_env_setting",
    "is_truncated",
]

from .base_env import (
    BaseEnv as BaseEnv,
    BaseEnvTimestep as BaseEnvTimestep,
    get_env_cls as get_env_cls,
    get_vec_env_setting as get_vec_env_setting,
    is_truncated as is_truncated,
)
from .ding_env_wrapper import (
    DingEnvWrapper as DingEnvWrapper,
)
from .env_implementation_check import (
    check_all as check_all,
    check_array_space as check_array_space,
    check_different_memory as check_different_memory,
    demonstrate_correct_procedure as demonstrate_correct_procedure,
)
from .gymnasium_env import (
    GymnasiumEnv as GymnasiumEnv,
)

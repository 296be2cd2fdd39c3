from .base_env_manager import (
    BaseEnvManager as BaseEnvManager,
    BaseEnvManagerV2 as BaseEnvManagerV2,
    EnvState as EnvState,
    create_env_manager as create_env_manager,
    get_env_manager_cls as get_env_manager_cls,
    timeout_wrapper as timeout_wrapper,
)
from .envpool_env_manager import (
    PoolEnvManager as PoolEnvManager,
)
from .gym_vector_env_manager import (
    GymVectorEnvManager as GymVectorEnvManager,
)
from .subprocess_env_manager import (
    AsyncSubprocessEnvManager as AsyncSubprocessEnvManager,
    EnvSupervisor as EnvSupervisor,
    SubprocessEnvManagerV2 as SubprocessEnvManagerV2,
    SyncSubprocessEnvManager as SyncSubprocessEnvManager,
)

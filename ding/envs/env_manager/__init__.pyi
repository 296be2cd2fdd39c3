from .base_env_manager import (
    BaseEnvManager as BaseEnvManager,
)
from .base_env_manager import (
    BaseEnvManagerV2 as BaseEnvManagerV2,
)
from .base_env_manager import (
    EnvState as EnvState,
)
from .base_env_manager import (
    create_env_manager as create_env_manager,
)
from .base_env_manager import (
    get_env_manager_cls as get_env_manager_cls,
)
from .base_env_manager import (
    timeout_wrapper as timeout_wrapper,
)
from .env_supervisor import (
    EnvSupervisor as EnvSupervisor,
)
from .envpool_env_manager import (
    PoolEnvManager as PoolEnvManager,
)
from .gym_vector_env_manager import (
    GymVectorEnvManager as GymVectorEnvManager,
)
from .subprocess_env_manager import (
    AsyncSubprocessEnvManager as AsyncSubprocessEnvManager,
)
from .subprocess_env_manager import (
    SubprocessEnvManagerV2 as SubprocessEnvManagerV2,
)
from .subprocess_env_manager import (
    SyncSubprocessEnvManager as SyncSubprocessEnvManager,
)

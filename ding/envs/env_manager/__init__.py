"""What steps many environments as one: in this process, in worker processes, natively."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "base_env_manager": [
            "BaseEnvManager",
            "BaseEnvManagerV2",
            "EnvState",
            "create_env_manager",
            "get_env_manager_cls",
            "timeout_wrapper",
        ],
        "gym_vector_env_manager": ["GymVectorEnvManager"],
        "subprocess_env_manager": [
            "AsyncSubprocessEnvManager",
            "SubprocessEnvManagerV2",
            "SyncSubprocessEnvManager",
        ],
    },
)

"""Environments, what wraps them, and what runs many of them."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "env": [
            "BaseEnv",
            "BaseEnvTimestep",
            "DingEnvWrapper",
            "GymnasiumEnv",
            "get_env_cls",
            "get_vec_env_setting",
            "is_truncated",
        ],
        "env_manager": [
            "AsyncSubprocessEnvManager",
            "BaseEnvManager",
            "BaseEnvManagerV2",
            "EnvSupervisor",
            "GymVectorEnvManager",
            "SubprocessEnvManagerV2",
            "SyncSubprocessEnvManager",
            "create_env_manager",
            "get_env_manager_cls",
        ],
        "env_wrappers": [
            "AllinObsWrapper",
            "ClipRewardWrapper",
            "DelayRewardWrapper",
            "EpisodicLifeWrapper",
            "EvalEpisodeReturnWrapper",
            "FireResetWrapper",
            "FrameStackWrapper",
            "GymToGymnasiumWrapper",
            "MaxAndSkipWrapper",
            "NoopResetWrapper",
            "ObsNormWrapper",
            "ObsPlusPrevActRewWrapper",
            "RewardNormWrapper",
            "ScaledFloatFrameWrapper",
            "TimeLimitWrapper",
            "WarpFrameWrapper",
            "create_env_wrapper",
            "update_shape",
        ],
        "vector_step": ["VectorStep"],
    },
)

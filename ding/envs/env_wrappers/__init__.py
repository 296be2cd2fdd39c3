from ding.envs.env_wrappers.atari import (
    EpisodicLifeWrapper,
    FireResetWrapper,
    MaxAndSkipWrapper,
    NoopResetWrapper,
    WarpFrameWrapper,
)
from ding.envs.env_wrappers.build import (
    apply_env_wrappers,
    create_env_wrapper,
    preset_wrappers,
    stateful_wrappers,
    update_shape,
)
from ding.envs.env_wrappers.discrete import DiscretizeActionWrapper
from ding.envs.env_wrappers.gym_to_gymnasium import (
    GymToGymnasiumWrapper,
    as_gymnasium,
    as_gymnasium_space,
    convert_space,
)
from ding.envs.env_wrappers.observations import (
    AllinObsWrapper,
    FrameStackWrapper,
    MaskObsWrapper,
    ObsNormWrapper,
    ObsPlusPrevActRewWrapper,
    RamWrapper,
    ScaledFloatFrameWrapper,
    StaticObsNormWrapper,
)
from ding.envs.env_wrappers.record_replay import RecordReplayWrapper
from ding.envs.env_wrappers.rewards import (
    ClipRewardWrapper,
    DelayRewardWrapper,
    EvalEpisodeReturnWrapper,
    RawRewards,
    RewardNormWrapper,
    raw_rewards,
)
from ding.envs.env_wrappers.time_limit import ActionRepeatWrapper, TimeLimitWrapper

__all__ = [
    "ActionRepeatWrapper",
    "AllinObsWrapper",
    "ClipRewardWrapper",
    "DelayRewardWrapper",
    "DiscretizeActionWrapper",
    "EpisodicLifeWrapper",
    "EvalEpisodeReturnWrapper",
    "FireResetWrapper",
    "FrameStackWrapper",
    "GymToGymnasiumWrapper",
    "MaskObsWrapper",
    "MaxAndSkipWrapper",
    "NoopResetWrapper",
    "ObsNormWrapper",
    "ObsPlusPrevActRewWrapper",
    "RamWrapper",
    "RawRewards",
    "RecordReplayWrapper",
    "RewardNormWrapper",
    "ScaledFloatFrameWrapper",
    "StaticObsNormWrapper",
    "TimeLimitWrapper",
    "WarpFrameWrapper",
    "apply_env_wrappers",
    "as_gymnasium",
    "as_gymnasium_space",
    "convert_space",
    "create_env_wrapper",
    "preset_wrappers",
    "raw_rewards",
    "stateful_wrappers",
    "update_shape",
]

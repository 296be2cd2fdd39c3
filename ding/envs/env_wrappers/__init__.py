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
    stateful_wrappers,
    update_shape,
)
from ding.envs.env_wrappers.gym_to_gymnasium import (
    GymToGymnasiumWrapper,
    as_gymnasium,
    convert_space,
)
from ding.envs.env_wrappers.observations import (
    AllinObsWrapper,
    FrameStackWrapper,
    ObsNormWrapper,
    ObsPlusPrevActRewWrapper,
    ScaledFloatFrameWrapper,
)
from ding.envs.env_wrappers.raw_rewards import RawRewards, raw_rewards
from ding.envs.env_wrappers.record_replay import RecordReplayWrapper
from ding.envs.env_wrappers.rewards import (
    ClipRewardWrapper,
    DelayRewardWrapper,
    EvalEpisodeReturnWrapper,
    RewardNormWrapper,
)
from ding.envs.env_wrappers.time_limit import TimeLimitWrapper

__all__ = [
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
    "RawRewards",
    "RecordReplayWrapper",
    "RewardNormWrapper",
    "ScaledFloatFrameWrapper",
    "TimeLimitWrapper",
    "WarpFrameWrapper",
    "apply_env_wrappers",
    "as_gymnasium",
    "convert_space",
    "create_env_wrapper",
    "raw_rewards",
    "stateful_wrappers",
    "update_shape",
]

from .atari import (
    EpisodicLifeWrapper as EpisodicLifeWrapper,
    FireResetWrapper as FireResetWrapper,
    MaxAndSkipWrapper as MaxAndSkipWrapper,
    NoopResetWrapper as NoopResetWrapper,
    WarpFrameWrapper as WarpFrameWrapper,
)
from .build import (
    WRAPPER_KEYS as WRAPPER_KEYS,
    apply_env_wrappers as apply_env_wrappers,
    config_wrappers as config_wrappers,
    create_env_wrapper as create_env_wrapper,
    preset_wrappers as preset_wrappers,
    stateful_wrappers as stateful_wrappers,
    update_shape as update_shape,
)
from .gym_to_gymnasium import (
    GymToGymnasiumWrapper as GymToGymnasiumWrapper,
    as_gymnasium as as_gymnasium,
    as_gymnasium_space as as_gymnasium_space,
    convert_space as convert_space,
)
from .observations import (
    AllinObsWrapper as AllinObsWrapper,
    FrameStackWrapper as FrameStackWrapper,
    MaskObsWrapper as MaskObsWrapper,
    ObsNormWrapper as ObsNormWrapper,
    ObsPlusPrevActRewWrapper as ObsPlusPrevActRewWrapper,
    RamWrapper as RamWrapper,
    ScaledFloatFrameWrapper as ScaledFloatFrameWrapper,
    StaticObsNormWrapper as StaticObsNormWrapper,
)
from .record_replay import (
    RecordReplayWrapper as RecordReplayWrapper,
)
from .rewards import (
    ClipRewardWrapper as ClipRewardWrapper,
    DelayRewardWrapper as DelayRewardWrapper,
    EvalEpisodeReturnWrapper as EvalEpisodeReturnWrapper,
    RawRewards as RawRewards,
    RewardNormWrapper as RewardNormWrapper,
    raw_rewards as raw_rewards,
)
from .steps import (
    ActionRepeatWrapper as ActionRepeatWrapper,
    DiscretizeActionWrapper as DiscretizeActionWrapper,
    TimeLimitWrapper as TimeLimitWrapper,
)

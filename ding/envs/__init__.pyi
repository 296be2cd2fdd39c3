from .common import (
    EnvElement as EnvElement,
)
from .common import (
    EnvElementInfo as EnvElementInfo,
)
from .common import (
    EnvElementRunner as EnvElementRunner,
)
from .common import (
    affine_transform as affine_transform,
)
from .common import (
    div_func as div_func,
)
from .common import (
    div_one_hot as div_one_hot,
)
from .common import (
    save_frames_as_gif as save_frames_as_gif,
)
from .env import (
    BaseEnv as BaseEnv,
)
from .env import (
    BaseEnvTimestep as BaseEnvTimestep,
)
from .env import (
    DingEnvWrapper as DingEnvWrapper,
)
from .env import (
    GymnasiumEnv as GymnasiumEnv,
)
from .env import (
    get_env_cls as get_env_cls,
)
from .env import (
    get_vec_env_setting as get_vec_env_setting,
)
from .env import (
    is_truncated as is_truncated,
)
from .env_manager import (
    AsyncSubprocessEnvManager as AsyncSubprocessEnvManager,
)
from .env_manager import (
    BaseEnvManager as BaseEnvManager,
)
from .env_manager import (
    BaseEnvManagerV2 as BaseEnvManagerV2,
)
from .env_manager import (
    EnvState as EnvState,
)
from .env_manager import (
    EnvSupervisor as EnvSupervisor,
)
from .env_manager import (
    GymVectorEnvManager as GymVectorEnvManager,
)
from .env_manager import (
    PoolEnvManager as PoolEnvManager,
)
from .env_manager import (
    SubprocessEnvManagerV2 as SubprocessEnvManagerV2,
)
from .env_manager import (
    SyncSubprocessEnvManager as SyncSubprocessEnvManager,
)
from .env_manager import (
    create_env_manager as create_env_manager,
)
from .env_manager import (
    get_env_manager_cls as get_env_manager_cls,
)
from .env_wrappers import (
    ActionRepeatWrapper as ActionRepeatWrapper,
)
from .env_wrappers import (
    AllinObsWrapper as AllinObsWrapper,
)
from .env_wrappers import (
    ClipRewardWrapper as ClipRewardWrapper,
)
from .env_wrappers import (
    DelayRewardWrapper as DelayRewardWrapper,
)
from .env_wrappers import (
    DiscretizeActionWrapper as DiscretizeActionWrapper,
)
from .env_wrappers import (
    EpisodicLifeWrapper as EpisodicLifeWrapper,
)
from .env_wrappers import (
    EvalEpisodeReturnWrapper as EvalEpisodeReturnWrapper,
)
from .env_wrappers import (
    FireResetWrapper as FireResetWrapper,
)
from .env_wrappers import (
    FrameStackWrapper as FrameStackWrapper,
)
from .env_wrappers import (
    GymToGymnasiumWrapper as GymToGymnasiumWrapper,
)
from .env_wrappers import (
    MaskObsWrapper as MaskObsWrapper,
)
from .env_wrappers import (
    MaxAndSkipWrapper as MaxAndSkipWrapper,
)
from .env_wrappers import (
    NoopResetWrapper as NoopResetWrapper,
)
from .env_wrappers import (
    ObsNormWrapper as ObsNormWrapper,
)
from .env_wrappers import (
    ObsPlusPrevActRewWrapper as ObsPlusPrevActRewWrapper,
)
from .env_wrappers import (
    RamWrapper as RamWrapper,
)
from .env_wrappers import (
    RewardNormWrapper as RewardNormWrapper,
)
from .env_wrappers import (
    ScaledFloatFrameWrapper as ScaledFloatFrameWrapper,
)
from .env_wrappers import (
    StaticObsNormWrapper as StaticObsNormWrapper,
)
from .env_wrappers import (
    TimeLimitWrapper as TimeLimitWrapper,
)
from .env_wrappers import (
    WarpFrameWrapper as WarpFrameWrapper,
)
from .env_wrappers import (
    create_env_wrapper as create_env_wrapper,
)
from .env_wrappers import (
    update_shape as update_shape,
)
from .seeds import (
    env_seeds as env_seeds,
)
from .vector_step import (
    PlayerActions as PlayerActions,
)
from .vector_step import (
    VectorStep as VectorStep,
)
from .vector_step import (
    WholeAction as WholeAction,
)
from .vector_step import (
    composite_actions as composite_actions,
)

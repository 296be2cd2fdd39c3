from .base_reward_model import (
    BaseRewardModel as BaseRewardModel,
    Shapes as Shapes,
    create_reward_model as create_reward_model,
)
from .curiosity import CuriosityRewardModel as CuriosityRewardModel
from .rnd_reward_model import RndRewardModel as RndRewardModel

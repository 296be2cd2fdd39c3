from .base_reward_model import (
    BaseRewardModel as BaseRewardModel,
    Shapes as Shapes,
    create_reward_model as create_reward_model,
)
from .curiosity import (
    CuriosityRewardModel as CuriosityRewardModel,
    ICMRewardModel as ICMRewardModel,
    RndRewardModel as RndRewardModel,
)
from .demonstrated import DemonstratedRewardModel as DemonstratedRewardModel
from .gail_reward_model import (
    GailRewardModel as GailRewardModel,
    GuidedCostRewardModel as GuidedCostRewardModel,
)
from .her_reward_model import HerRewardModel as HerRewardModel
from .pwil_reward_model import PWILRewardModel as PWILRewardModel
from .trex_reward_model import (
    DrexRewardModel as DrexRewardModel,
    TrexRewardModel as TrexRewardModel,
)

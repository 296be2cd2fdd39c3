from .bc import (
    ContinuousBC as ContinuousBC,
    DiscreteBC as DiscreteBC,
)
from .bcq import (
    BCQ as BCQ,
)
from .collaq import (
    CollaQ as CollaQ,
)
from .coma import (
    COMA as COMA,
)
from .decision_transformer import (
    DecisionTransformer as DecisionTransformer,
)
from .mavac import (
    HAVAC as HAVAC,
    MAVAC as MAVAC,
)
from .pdqn import (
    PDQN as PDQN,
)
from .q_learning import (
    BDQ as BDQ,
    C51DQN as C51DQN,
    DQN as DQN,
    DRQN as DRQN,
    FQF as FQF,
    IQN as IQN,
    QRDQN as QRDQN,
    RainbowDQN as RainbowDQN,
)
from .qac import (
    ContinuousMAQAC as ContinuousMAQAC,
    ContinuousQAC as ContinuousQAC,
    ContinuousQVAC as ContinuousQVAC,
    DiscreteMAQAC as DiscreteMAQAC,
    DiscreteQAC as DiscreteQAC,
)
from .qac_dist import (
    EDAC as EDAC,
    QACDIST as QACDIST,
)
from .qmix import (
    MADQN as MADQN,
    Mixer as Mixer,
    QMix as QMix,
    QTran as QTran,
    WQMix as WQMix,
)
from .vac import (
    ACER as ACER,
    PG as PG,
    PPG as PPG,
    VAC as VAC,
)

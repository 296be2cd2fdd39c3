from .acer import ACER as ACER
from .bc import ContinuousBC as ContinuousBC, DiscreteBC as DiscreteBC
from .bcq import BCQ as BCQ
from .collaq import CollaQ as CollaQ
from .coma import COMA as COMA
from .decision_transformer import DecisionTransformer as DecisionTransformer
from .edac import EDAC as EDAC
from .havac import HAVAC as HAVAC
from .madqn import MADQN as MADQN
from .maqac import ContinuousMAQAC as ContinuousMAQAC, DiscreteMAQAC as DiscreteMAQAC
from .mavac import MAVAC as MAVAC
from .pdqn import PDQN as PDQN
from .pg import PG as PG
from .ppg import PPG as PPG
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
    ContinuousQAC as ContinuousQAC,
    ContinuousQVAC as ContinuousQVAC,
    DiscreteQAC as DiscreteQAC,
)
from .qac_dist import QACDIST as QACDIST
from .qmix import Mixer as Mixer, QMix as QMix
from .qtran import QTran as QTran
from .vac import VAC as VAC
from .wqmix import WQMix as WQMix

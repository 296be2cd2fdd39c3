"""Whole models, by the kind of policy that they serve."""

from ding.model.template.acer import ACER
from ding.model.template.bc import ContinuousBC, DiscreteBC
from ding.model.template.bcq import BCQ
from ding.model.template.collaq import CollaQ
from ding.model.template.coma import COMA
from ding.model.template.edac import EDAC
from ding.model.template.havac import HAVAC
from ding.model.template.madqn import MADQN
from ding.model.template.maqac import ContinuousMAQAC, DiscreteMAQAC
from ding.model.template.mavac import MAVAC
from ding.model.template.pdqn import PDQN
from ding.model.template.pg import PG
from ding.model.template.ppg import PPG
from ding.model.template.q_learning import BDQ, C51DQN, DQN, DRQN, FQF, IQN, QRDQN, RainbowDQN
from ding.model.template.qac import ContinuousQAC, DiscreteQAC
from ding.model.template.qac_dist import QACDIST
from ding.model.template.qmix import Mixer, QMix
from ding.model.template.qtran import QTran
from ding.model.template.qvac import ContinuousQVAC
from ding.model.template.vac import VAC
from ding.model.template.wqmix import WQMix

__all__ = [
    "ACER",
    "BCQ",
    "BDQ",
    "C51DQN",
    "COMA",
    "DQN",
    "DRQN",
    "EDAC",
    "FQF",
    "HAVAC",
    "IQN",
    "MADQN",
    "MAVAC",
    "PDQN",
    "PG",
    "PPG",
    "QACDIST",
    "QRDQN",
    "VAC",
    "CollaQ",
    "ContinuousBC",
    "ContinuousMAQAC",
    "ContinuousQAC",
    "ContinuousQVAC",
    "DiscreteBC",
    "DiscreteMAQAC",
    "DiscreteQAC",
    "Mixer",
    "QMix",
    "QTran",
    "RainbowDQN",
    "WQMix",
]

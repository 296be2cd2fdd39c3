"""Networks for policies, and wrappers that make actions of what they say."""

from ding.model.common import (
    ConvEncoder,
    DiscreteHead,
    DuelingHead,
    FCEncoder,
    IMPALACnnDownStack,
    IMPALACnnResidualBlock,
    IMPALAConvEncoder,
    MultiHead,
    RegressionHead,
    ReparameterizationHead,
    build_encoder,
    create_model,
    with_old_names,
)
from ding.model.template import (
    ACER,
    C51DQN,
    DQN,
    DRQN,
    IQN,
    MAVAC,
    QRDQN,
    VAC,
    ContinuousBC,
    ContinuousMAQAC,
    ContinuousQAC,
    DiscreteBC,
    DiscreteMAQAC,
    DiscreteQAC,
    RainbowDQN,
)
from ding.model.wrapper import IModelWrapper, model_wrap, register_wrapper, wrapper_name_map
from ding.utils.planned_names import with_planned

__all__ = [
    "ACER",
    "C51DQN",
    "DQN",
    "DRQN",
    "IQN",
    "MAVAC",
    "QRDQN",
    "VAC",
    "ContinuousBC",
    "ContinuousMAQAC",
    "ContinuousQAC",
    "ConvEncoder",
    "DiscreteBC",
    "DiscreteHead",
    "DiscreteMAQAC",
    "DiscreteQAC",
    "DuelingHead",
    "FCEncoder",
    "IMPALACnnDownStack",
    "IMPALACnnResidualBlock",
    "IMPALAConvEncoder",
    "IModelWrapper",
    "MultiHead",
    "RainbowDQN",
    "RegressionHead",
    "ReparameterizationHead",
    "build_encoder",
    "create_model",
    "model_wrap",
    "register_wrapper",
    "with_old_names",
    "wrapper_name_map",
]

_PLANNED = (
    *("BCQ", "BDQ", "COMA", "CollaQ", "DecisionTransformer"),
    *("FQF", "HPT", "MAQAC", "Mixer", "PDQN", "PG", "PPG", "QACDIST", "QMix"),
    *("QTran", "WQMix"),
)
__getattr__ = with_planned(__name__, _PLANNED)

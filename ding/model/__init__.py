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
)
from ding.model.template import (
    C51DQN,
    DQN,
    DRQN,
    QRDQN,
    VAC,
    ContinuousQAC,
    DiscreteQAC,
    RainbowDQN,
)
from ding.model.wrapper import IModelWrapper, model_wrap, register_wrapper, wrapper_name_map

__all__ = [
    "C51DQN",
    "DQN",
    "DRQN",
    "QRDQN",
    "VAC",
    "ContinuousQAC",
    "ConvEncoder",
    "DiscreteHead",
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
    "wrapper_name_map",
]

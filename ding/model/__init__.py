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
from ding.model.template import DQN, VAC
from ding.model.wrapper import IModelWrapper, model_wrap, register_wrapper, wrapper_name_map

__all__ = [
    "DQN",
    "VAC",
    "ConvEncoder",
    "DiscreteHead",
    "DuelingHead",
    "FCEncoder",
    "IMPALACnnDownStack",
    "IMPALACnnResidualBlock",
    "IMPALAConvEncoder",
    "IModelWrapper",
    "MultiHead",
    "RegressionHead",
    "ReparameterizationHead",
    "build_encoder",
    "create_model",
    "model_wrap",
    "register_wrapper",
    "wrapper_name_map",
]

"""Parts of models."""

from ding.model.common.distributional_head import DistributionHead, QuantileHead, RainbowHead
from ding.model.common.encoder import (
    ConvEncoder,
    FCEncoder,
    IMPALACnnDownStack,
    IMPALACnnResidualBlock,
    IMPALAConvEncoder,
    build_encoder,
)
from ding.model.common.head import (
    DiscreteHead,
    DuelingHead,
    MultiHead,
    RegressionHead,
    ReparameterizationHead,
)
from ding.model.common.old_names import with_old_names
from ding.model.common.utils import create_model

__all__ = [
    "ConvEncoder",
    "DiscreteHead",
    "DistributionHead",
    "DuelingHead",
    "FCEncoder",
    "IMPALACnnDownStack",
    "IMPALACnnResidualBlock",
    "IMPALAConvEncoder",
    "MultiHead",
    "QuantileHead",
    "RainbowHead",
    "RegressionHead",
    "ReparameterizationHead",
    "build_encoder",
    "create_model",
    "with_old_names",
]

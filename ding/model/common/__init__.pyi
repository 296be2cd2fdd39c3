from .distributional_head import (
    DistributionHead as DistributionHead,
    QuantileHead as QuantileHead,
    RainbowHead as RainbowHead,
)
from .encoder import (
    ConvEncoder as ConvEncoder,
    FCEncoder as FCEncoder,
    IMPALACnnDownStack as IMPALACnnDownStack,
    IMPALACnnResidualBlock as IMPALACnnResidualBlock,
    IMPALAConvEncoder as IMPALAConvEncoder,
    build_encoder as build_encoder,
)
from .head import (
    DiscreteHead as DiscreteHead,
    DuelingHead as DuelingHead,
    MultiHead as MultiHead,
    RegressionHead as RegressionHead,
    ReparameterizationHead as ReparameterizationHead,
)
from .utils import create_model as create_model

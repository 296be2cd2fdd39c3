from .learner_aggregator import (
    LearnerAggregator as LearnerAggregator,
)
from .learner_aggregator import (
    LearnerAggregatorSlave as LearnerAggregatorSlave,
)

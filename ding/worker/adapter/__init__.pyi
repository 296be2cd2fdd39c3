from .learner_aggregator import (
    LearnerAggregator as LearnerAggregator,
    LearnerAggregatorSlave as LearnerAggregatorSlave,
)

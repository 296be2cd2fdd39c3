from .base_comm_learner import (
    BaseCommLearner as BaseCommLearner,
    create_comm_learner as create_comm_learner,
)
from .flask_fs_learner import (
    FlaskFileSystemLearner as FlaskFileSystemLearner,
    LearnerSlave as LearnerSlave,
    SendLearnInfoHook as SendLearnInfoHook,
    SendPolicyHook as SendPolicyHook,
)
from .utils import (
    NaiveLearner as NaiveLearner,
)

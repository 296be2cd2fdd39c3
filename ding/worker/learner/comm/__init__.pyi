from .base_comm_learner import (
    BaseCommLearner as BaseCommLearner,
)
from .base_comm_learner import (
    create_comm_learner as create_comm_learner,
)
from .flask_fs_learner import (
    FlaskFileSystemLearner as FlaskFileSystemLearner,
)
from .flask_fs_learner import (
    LearnerSlave as LearnerSlave,
)
from .flask_fs_learner import (
    SendLearnInfoHook as SendLearnInfoHook,
)
from .flask_fs_learner import (
    SendPolicyHook as SendPolicyHook,
)
from .utils import (
    NaiveLearner as NaiveLearner,
)

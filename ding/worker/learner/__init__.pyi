from .base_learner import (
    BaseLearner as BaseLearner,
)
from .base_learner import (
    TickMonitor as TickMonitor,
)
from .base_learner import (
    create_learner as create_learner,
)
from .base_learner import (
    get_simple_monitor_type as get_simple_monitor_type,
)
from .comm import (
    BaseCommLearner as BaseCommLearner,
)
from .comm import (
    FlaskFileSystemLearner as FlaskFileSystemLearner,
)
from .comm import (
    NaiveLearner as NaiveLearner,
)
from .comm import (
    create_comm_learner as create_comm_learner,
)
from .learner_hook import (
    Hook as Hook,
)
from .learner_hook import (
    LearnerHook as LearnerHook,
)
from .learner_hook import (
    LoadCkptHook as LoadCkptHook,
)
from .learner_hook import (
    LogReduceHook as LogReduceHook,
)
from .learner_hook import (
    LogShowHook as LogShowHook,
)
from .learner_hook import (
    SaveCkptHook as SaveCkptHook,
)
from .learner_hook import (
    add_learner_hook as add_learner_hook,
)
from .learner_hook import (
    build_learner_hook_by_cfg as build_learner_hook_by_cfg,
)
from .learner_hook import (
    find_char as find_char,
)
from .learner_hook import (
    merge_hooks as merge_hooks,
)
from .learner_hook import (
    register_learner_hook as register_learner_hook,
)
from .learner_hook import (
    show_hooks as show_hooks,
)

from .base_learner import (
    BaseLearner as BaseLearner,
    TickMonitor as TickMonitor,
    create_learner as create_learner,
    get_simple_monitor_type as get_simple_monitor_type,
)
from .comm import (
    BaseCommLearner as BaseCommLearner,
    FlaskFileSystemLearner as FlaskFileSystemLearner,
    NaiveLearner as NaiveLearner,
    create_comm_learner as create_comm_learner,
)
from .learner_hook import (
    Hook as Hook,
    LearnerHook as LearnerHook,
    LoadCkptHook as LoadCkptHook,
    LogReduceHook as LogReduceHook,
    LogShowHook as LogShowHook,
    SaveCkptHook as SaveCkptHook,
    add_learner_hook as add_learner_hook,
    build_learner_hook_by_cfg as build_learner_hook_by_cfg,
    find_char as find_char,
    merge_hooks as merge_hooks,
    register_learner_hook as register_learner_hook,
    show_hooks as show_hooks,
)

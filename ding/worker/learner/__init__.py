"""Learners and their hooks."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "base_learner": [
            *("BaseLearner", "create_learner", "TickMonitor", "get_simple_monitor_type"),
        ],
        "learner_hook": [
            *("Hook", "LearnerHook", "LoadCkptHook", "SaveCkptHook", "LogShowHook"),
            *("LogReduceHook", "register_learner_hook", "build_learner_hook_by_cfg"),
            *("add_learner_hook", "merge_hooks", "show_hooks", "find_char"),
        ],
    },
)

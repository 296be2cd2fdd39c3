"""The worker layer: collectors, evaluators, learners, buffers and commanders."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "collector": [
            *("ISerialCollector", "create_serial_collector", "get_serial_collector_cls"),
            *("SampleSerialCollector", "EpisodeSerialCollector"),
            *("BattleSampleSerialCollector", "BattleEpisodeSerialCollector"),
            *("CachePool", "TrajBuffer", "to_tensor_transitions"),
            *("ISerialEvaluator", "create_serial_evaluator", "VectorEvalMonitor"),
            *("InteractionSerialEvaluator", "BattleInteractionSerialEvaluator"),
            *("IMetric", "MetricSerialEvaluator"),
        ],
        "learner": [
            *("BaseLearner", "create_learner", "TickMonitor", "get_simple_monitor_type"),
            *("Hook", "LearnerHook", "LoadCkptHook", "SaveCkptHook", "LogShowHook"),
            *("LogReduceHook", "register_learner_hook", "build_learner_hook_by_cfg"),
            *("add_learner_hook", "merge_hooks", "show_hooks", "find_char"),
        ],
        "replay_buffer": [
            *("IBuffer", "create_buffer", "get_buffer_cls", "AdvancedReplayBuffer"),
            *("NaiveReplayBuffer", "SequenceReplayBuffer", "ElasticReplayBuffer"),
            *("EpisodeReplayBuffer", "DequeBufferWrapper"),
        ],
        "coordinator": ["BaseSerialCommander"],
    },
)

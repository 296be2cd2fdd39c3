"""Collectors and evaluators."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "base_serial_collector": [
            *("ISerialCollector", "create_serial_collector", "get_serial_collector_cls"),
            *("CachePool", "TrajBuffer", "to_tensor_transitions", "INF"),
        ],
        "sample_serial_collector": ["SampleSerialCollector"],
        "episode_serial_collector": ["EpisodeSerialCollector"],
        "battle_sample_serial_collector": ["BattleSampleSerialCollector"],
        "battle_episode_serial_collector": ["BattleEpisodeSerialCollector"],
        "base_serial_evaluator": ["ISerialEvaluator", "create_serial_evaluator"],
        "vector_eval_monitor": ["VectorEvalMonitor"],
        "interaction_serial_evaluator": ["InteractionSerialEvaluator"],
        "battle_interaction_serial_evaluator": ["BattleInteractionSerialEvaluator"],
        "metric_serial_evaluator": ["IMetric", "MetricSerialEvaluator"],
    },
)

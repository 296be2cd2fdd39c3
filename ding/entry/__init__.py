"""Pipelines: whole trainings, evaluations and collections from a config."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "serial_entry": ["serial_pipeline"],
        "serial_entry_onpolicy": ["serial_pipeline_onpolicy"],
        "application_entry": ["eval", "collect_demo_data", "collect_episodic_demo_data"],
        "utils": ["AccMetric", "mark_not_expert", "mark_warm_up", "random_collect"],
    },
)

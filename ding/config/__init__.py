"""Reading, checking, completing and saving configs."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "config": [
            *("Config", "read_config", "read_config_directly", "read_config_yaml"),
            *("save_config", "save_config_py", "save_config_yaml", "save_project_state"),
            *("compile_config", "compile_buffer_config", "compile_collector_config"),
        ],
        "utils": ["save_config_formatted"],
    },
)

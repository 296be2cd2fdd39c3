from .compile import (
    compile_buffer_config as compile_buffer_config,
    compile_collector_config as compile_collector_config,
    compile_config as compile_config,
    compile_config_parallel as compile_config_parallel,
)
from .read import (
    Config as Config,
    read_config as read_config,
    read_config_directly as read_config_directly,
    read_config_with_system as read_config_with_system,
    read_config_yaml as read_config_yaml,
)
from .save import (
    save_config as save_config,
    save_config_formatted as save_config_formatted,
    save_config_py as save_config_py,
    save_config_yaml as save_config_yaml,
    save_project_state as save_project_state,
)
from .utils import parallel_transform as parallel_transform

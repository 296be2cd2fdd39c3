from .config import (
    Config as Config,
)
from .config import (
    compile_buffer_config as compile_buffer_config,
)
from .config import (
    compile_collector_config as compile_collector_config,
)
from .config import (
    compile_config as compile_config,
)
from .config import (
    compile_config_parallel as compile_config_parallel,
)
from .config import (
    read_config as read_config,
)
from .config import (
    read_config_directly as read_config_directly,
)
from .config import (
    read_config_with_system as read_config_with_system,
)
from .config import (
    read_config_yaml as read_config_yaml,
)
from .config import (
    save_config as save_config,
)
from .config import (
    save_config_py as save_config_py,
)
from .config import (
    save_config_yaml as save_config_yaml,
)
from .config import (
    save_project_state as save_project_state,
)
from .utils import (
    parallel_transform as parallel_transform,
)
from .utils import (
    parallel_transform_k8s as parallel_transform_k8s,
)
from .utils import (
    parallel_transform_slurm as parallel_transform_slurm,
)
from .utils import (
    save_config_formatted as save_config_formatted,
)

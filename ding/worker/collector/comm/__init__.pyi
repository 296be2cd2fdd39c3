from .base_comm_collector import (
    BaseCommCollector as BaseCommCollector,
)
from .base_comm_collector import (
    create_comm_collector as create_comm_collector,
)
from .collect_task import (
    CollectTask as CollectTask,
)
from .flask_fs_collector import (
    CollectorSlave as CollectorSlave,
)
from .flask_fs_collector import (
    FlaskFileSystemCollector as FlaskFileSystemCollector,
)
from .utils import (
    NaiveCollector as NaiveCollector,
)

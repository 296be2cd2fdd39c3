from .base_comm_collector import (
    BaseCommCollector as BaseCommCollector,
    create_comm_collector as create_comm_collector,
)
from .collect_task import (
    CollectTask as CollectTask,
)
from .flask_fs_collector import (
    CollectorSlave as CollectorSlave,
    FlaskFileSystemCollector as FlaskFileSystemCollector,
)
from .utils import (
    NaiveCollector as NaiveCollector,
)

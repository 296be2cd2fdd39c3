from .base_parallel_commander import (
    BaseCommander as BaseCommander,
    NaiveCommander as NaiveCommander,
    create_parallel_commander as create_parallel_commander,
    get_parallel_commander_cls as get_parallel_commander_cls,
)
from .base_serial_commander import (
    BaseSerialCommander as BaseSerialCommander,
)
from .comm_coordinator import (
    CommCoordinator as CommCoordinator,
)
from .coordinator import (
    Coordinator as Coordinator,
    TaskState as TaskState,
)
from .one_vs_one_parallel_commander import (
    OneVsOneCommander as OneVsOneCommander,
)
from .operator_server import (
    OperatorServer as OperatorServer,
)
from .resource_manager import (
    NaiveResourceManager as NaiveResourceManager,
)
from .solo_parallel_commander import (
    SoloCommander as SoloCommander,
)

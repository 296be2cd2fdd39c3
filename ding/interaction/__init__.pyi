from .master import Master as Master
from .slave import ConnectionRefuse as ConnectionRefuse
from .slave import DisconnectionRefuse as DisconnectionRefuse
from .slave import Slave as Slave
from .slave import TaskFail as TaskFail
from .slave import TaskRefuse as TaskRefuse

from .master import Master as Master
from .slave import (
    ConnectionRefuse as ConnectionRefuse,
    DisconnectionRefuse as DisconnectionRefuse,
    Slave as Slave,
    TaskFail as TaskFail,
    TaskRefuse as TaskRefuse,
)

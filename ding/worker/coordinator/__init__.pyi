from .base_serial_commander import (
    BaseSerialCommander as BaseSerialCommander,
)

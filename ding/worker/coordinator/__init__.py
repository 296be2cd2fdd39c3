"""Commanders: what tells the other parts how to go on."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(globals(), {"base_serial_commander": ["BaseSerialCommander"]})

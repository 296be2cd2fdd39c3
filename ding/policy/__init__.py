"""Policies: they choose actions and learn from collected data."""

import lazy_loader

from ding.utils.import_helper import with_planned

_find, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_PLANNED = ("NGUPolicy",)
__getattr__ = with_planned(__name__, _PLANNED, _find)

"""Pipelines: training, evaluation and data collection from a config."""

import lazy_loader

from ding.utils.import_helper import with_planned

_find, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_PLANNED = (
    *("serial_pipeline_dream", "serial_pipeline_dreamer", "serial_pipeline_dyna"),
    *("serial_pipeline_ngu", "serial_pipeline_pc", "serial_pipeline_plr"),
    "serial_pipeline_td3_vae",
)
__getattr__ = with_planned(__name__, _PLANNED, _find)

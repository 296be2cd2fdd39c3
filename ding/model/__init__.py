"""Networks for policies, and wrappers that turn their outputs into actions."""

from ding.model import common, template
from ding.model.common import *  # noqa: F403
from ding.model.template import *  # noqa: F403
from ding.model.wrapper import IModelWrapper, model_wrap, register_wrapper, wrapper_name_map
from ding.utils.import_helper import with_planned

__all__ = ["IModelWrapper", "model_wrap", "register_wrapper", "wrapper_name_map"]
__all__ += dir(common)
__all__ += dir(template)

_PLANNED = ("HPT", "MAQAC")
__getattr__ = with_planned(__name__, _PLANNED)

"""Where scripts import wrappers from."""

from ding.envs.env_wrappers import *  # noqa: F403
from ding.envs.env_wrappers import __all__ as __all__

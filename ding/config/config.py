"""The public names of this package under the module that scripts import them from."""

from ding.config import *  # noqa: F403

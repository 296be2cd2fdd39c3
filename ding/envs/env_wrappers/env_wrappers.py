"""The path at which scripts import wrappers."""

from ding.envs.env_wrappers import *  # noqa: F403

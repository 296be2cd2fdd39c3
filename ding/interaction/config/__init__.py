"""Defaults of masters and slaves."""

from .base import *  # noqa: F403

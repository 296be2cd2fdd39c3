"""Servers, clients and helpers for masters and slaves."""

from .app import *  # noqa: F403
from .common import *  # noqa: F403
from .network import *  # noqa: F403
from .threading import *  # noqa: F403

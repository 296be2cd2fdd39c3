"""Servers, clients and helpers that masters and slaves are made of."""

from .app import *  # noqa: F403
from .common import *  # noqa: F403
from .network import *  # noqa: F403
from .threading import *  # noqa: F403

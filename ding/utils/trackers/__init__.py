"""Where a run's figures go beside its own files: to other programs, or to a class of one's own."""

from .base import Tracker

__all__ = ["Tracker"]

"""Trackers: programs or custom classes that get a run's scalars in addition to its files."""

from .base import Tracker

__all__ = ["Tracker"]

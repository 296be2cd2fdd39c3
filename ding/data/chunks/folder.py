"""The folder that chunks are in; it is also the one that weights are in."""

from ding.utils.shared_folder import SharedFolder

__all__ = ["SharedFolder"]

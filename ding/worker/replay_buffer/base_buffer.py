"""Builds a replay buffer from its config."""

from collections.abc import Mapping
from typing import Any

from easydict import EasyDict

from ding.data.buffer.deque_buffer_wrapper import DequeBufferWrapper as DequeBufferWrapper
from ding.data.buffer.ring_buffer import IBuffer as IBuffer
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import BUFFER_REGISTRY, component


def create_buffer(cfg: Mapping[str, Any], *args: object, **kwargs: object) -> IBuffer:
    """Build the registered buffer ``cfg.type``; ``cfg.import_names`` are imported first.

    With ``cfg.multi_buffer``, a `MultiBuffer` is built: a buffer for each section of ``cfg`` that
    has a ``replay_buffer_size``.

    Args:
        cfg: The buffer's ``type``, and its keys that differ from the defaults.
        args: Passed to the class, as are ``kwargs``: ``tb_logger``, ``exp_name``.

    Example:

        >>> from ding.worker import create_buffer
        >>> type(create_buffer({"type": "naive", "replay_buffer_size": 1000})).__name__
        'NaiveReplayBuffer'
    """
    several = isinstance(cfg, Mapping) and cfg.get("multi_buffer", False)
    cls, cfg = component(BUFFER_REGISTRY, cfg, "multi" if several else None)
    buffer: IBuffer = cls(cfg, *args, **kwargs)
    return buffer


def get_buffer_cls(cfg: EasyDict) -> type[IBuffer]:
    """The registered buffer class ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    return BUFFER_REGISTRY.get(cfg.type)  # type: ignore[return-value]

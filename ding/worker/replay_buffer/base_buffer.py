"""How a config becomes a replay buffer."""

from easydict import EasyDict

from ding.data.buffer.deque_buffer_wrapper import DequeBufferWrapper as DequeBufferWrapper
from ding.data.buffer.ring_buffer import IBuffer as IBuffer
from ding.utils.import_helper import import_module
from ding.utils.registry_factory import BUFFER_REGISTRY


def create_buffer(cfg: EasyDict, *args: object, **kwargs: object) -> IBuffer:
    """Build the registered buffer ``cfg.type``; ``cfg.import_names`` are imported first.

    With ``cfg.multi_buffer`` there is one of them for each section of ``cfg`` that has a
    ``replay_buffer_size``.

    Args:
        cfg: The buffer's complete config.
        args: Passed on to the class, as are ``kwargs``: ``tb_logger``, ``exp_name``.

    Example:

        >>> from ding.worker import NaiveReplayBuffer, create_buffer
        >>> type(create_buffer(NaiveReplayBuffer.default_config())).__name__
        'NaiveReplayBuffer'
    """
    import_module(cfg.get("import_names", []))
    kind = "multi" if cfg.get("multi_buffer", False) else cfg.type
    buffer: IBuffer = BUFFER_REGISTRY.build(kind, cfg, *args, **kwargs)
    return buffer


def get_buffer_cls(cfg: EasyDict) -> type[IBuffer]:
    """The registered buffer class ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    return BUFFER_REGISTRY.get(cfg.type)  # type: ignore[return-value]

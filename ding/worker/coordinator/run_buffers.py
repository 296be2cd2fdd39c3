"""The buffers of a parallel run, and the folder that their data are in."""

from collections.abc import Mapping
from typing import Any

from ding.utils.errors import ConfigError, DingError
from ding.utils.shared_folder import SharedFolder

from .chunk_buffer import ChunkBuffer
from .space_quota import SpaceQuota


class RunBuffers:
    """One buffer for each id that learners' tasks name. Threads may share it.

    Args:
        folder: Where collectors write; ``None``: not where the coordinator can see it.
        limit: Bytes that the data of all buffers together may take.
        exp_name: The run's folder.
        tb_logger: Where buffers write scalars.
    """

    def __init__(
        self, folder: SharedFolder | None, limit: int, exp_name: str, tb_logger: Any = None
    ) -> None:
        self._folder, self._space = folder, SpaceQuota(limit)
        self._exp_name, self._tb_logger = exp_name, tb_logger
        self._buffers: dict[str, ChunkBuffer] = {}
        self._cfgs: dict[str, Any] = {}

    def get(self, buffer_id: str | None) -> ChunkBuffer | None:
        return self._buffers.get(buffer_id) if isinstance(buffer_id, str) else None

    def all(self) -> dict[str, ChunkBuffer]:
        return dict(self._buffers)

    def open(self, buffer_id: Any, cfg: Mapping[str, Any]) -> None:
        """Make a buffer unless there is one of that id."""
        if not isinstance(buffer_id, str) or buffer_id in self._buffers:
            return
        self._cfgs[buffer_id] = _plain(cfg)
        self._buffers[buffer_id] = ChunkBuffer(
            cfg, self._folder, self._space, self._exp_name, buffer_id, self._tb_logger
        )

    def close(self, buffer_id: str | None = None) -> None:
        """Close a buffer, or all of them, and remove their files."""
        for name in [*self._buffers] if buffer_id is None else [buffer_id]:
            buffer = self._buffers.pop(name, None)
            if buffer is not None:
                buffer.close(remove_files=True)

    def forget_worker(self, worker: str) -> None:
        """Remove what a collector has written and not told of."""
        for buffer in self.all().values():
            buffer.forget_worker(worker)

    def discard(self, data_id: str) -> None:
        """Remove data that no buffer wants.

        Raises:
            OSError: It cannot be removed.
        """
        if self._folder is not None:
            self._folder.remove(data_id)

    def state_dict(self) -> dict[str, Any]:
        buffers = self.all()
        return {
            name: {"cfg": self._cfgs[name], "state": buffer.state_dict()}
            for name, buffer in buffers.items()
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> list[str]:
        """Go on with those buffers; returns lines about what is missing."""
        lines = []
        for name, saved in state_dict.items():
            self.open(name, saved["cfg"])
            gone = self._buffers[name].load_state_dict(saved["state"])
            if gone:
                lines.append(f"{name}: the files of {len(gone)} chunks are gone, first {gone[0]}")
        return lines


def shared_folder(system: Mapping[str, Any], key: str) -> SharedFolder | None:
    """The folder that the workers share, if the config names one.

    Raises:
        ConfigError: It is no path, or cannot be used.
    """
    sections = [system["coordinator"], system, *system.values()]
    named = [part[key] for part in sections if isinstance(part, Mapping) and part.get(key)]
    if not named:
        return None
    try:
        return SharedFolder(named[0])
    except (DingError, TypeError) as err:
        raise ConfigError(f"system.{key} is {named[0]!r}, expected a folder: {err}") from err


def _plain(cfg: Any) -> Any:
    """Config as plain data, which can be stored."""
    if isinstance(cfg, Mapping):
        return {str(key): _plain(value) for key, value in cfg.items()}
    if isinstance(cfg, list | tuple):
        return [_plain(value) for value in cfg]
    return cfg if isinstance(cfg, bool | int | float | str | None) else str(cfg)

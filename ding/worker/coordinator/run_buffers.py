"""The buffers of a parallel run."""

from collections.abc import Callable, Mapping

from ding.worker.messages import Json
from ding.worker.seams import SampleStore

from ._types import Config, StateDict
from .chunk_buffer import ChunkBuffer


class RunBuffers:
    """One buffer for each id that learners' tasks name. Threads may share it.

    Args:
        make: Makes a `ChunkBuffer` of its config and its ``name``.
        store: Where collectors put samples; ``None``: not where the coordinator can see it.
    """

    def __init__(self, make: Callable[..., ChunkBuffer], store: SampleStore | None):
        self._make, self._store = make, store
        self._buffers: dict[str, ChunkBuffer] = {}
        self._cfgs: dict[str, Json] = {}

    def get(self, buffer_id: str | None) -> ChunkBuffer | None:
        return self._buffers.get(buffer_id) if isinstance(buffer_id, str) else None

    def all(self) -> dict[str, ChunkBuffer]:
        return dict(self._buffers)

    def open(self, buffer_id: str, cfg: Config) -> None:
        """Make a buffer unless there is one of that id."""
        if buffer_id in self._buffers:
            return
        self._cfgs[buffer_id] = _plain(cfg)
        self._buffers[buffer_id] = self._make(cfg, name=buffer_id)

    def take_out(self, buffer_id: str) -> ChunkBuffer | None:
        """Forget a buffer; its files stay until it is closed."""
        return self._buffers.pop(buffer_id, None)

    def close(self) -> None:
        """Close all buffers, and remove their files."""
        while self._buffers:
            self._buffers.popitem()[1].close(remove_files=True)

    def forget_worker(self, worker: str) -> None:
        """Remove what a collector has written and not reported."""
        for buffer in self.all().values():
            buffer.forget_worker(worker)

    def discard(self, data_id: str) -> None:
        """Remove data that no buffer wants.

        Raises:
            OSError: It cannot be removed.
        """
        if self._store is not None:
            self._store.remove(data_id)

    def state_dict(self) -> StateDict:
        buffers = self.all()
        return {
            name: {"cfg": self._cfgs[name], "state": buffer.state_dict()}
            for name, buffer in buffers.items()
        }

    def load_state_dict(self, state_dict: StateDict) -> list[str]:
        """Go on with those buffers; returns lines about what is missing."""
        lines = []
        for name, saved in state_dict.items():
            self.open(name, saved["cfg"])
            gone = self._buffers[name].load_state_dict(saved["state"])
            if gone:
                lines.append(f"{name}: the files of {len(gone)} chunks are gone, first {gone[0]}")
        return lines


def _plain(cfg: object) -> Json:
    """Config as plain data, which can be stored."""
    if isinstance(cfg, Mapping):
        return {str(key): _plain(value) for key, value in cfg.items()}
    if isinstance(cfg, list | tuple):
        return [_plain(value) for value in cfg]
    return cfg if isinstance(cfg, bool | int | float | str | None) else str(cfg)

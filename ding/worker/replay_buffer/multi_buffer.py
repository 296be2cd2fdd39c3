"""Several replay buffers of the same data, for learners that need several kinds of batches."""

import os
from collections.abc import Mapping
from typing import Any

from easydict import EasyDict

from ding.data.arrays import Item, Items, State
from ding.utils.default_helper import deep_merge_dicts
from ding.utils.errors import require_entries
from ding.utils.registry_factory import BUFFER_REGISTRY
from ding.worker.replay_buffer.base_buffer import IBuffer


class BufferGroup(IBuffer):
    """Several buffers behind one interface."""

    _buffers: Mapping[str, Any]

    def state_dict(self) -> State:
        return {name: buffer.state_dict() for name, buffer in self._buffers.items()}

    def load_state_dict(self, _state_dict: State) -> None:
        require_entries("a buffer of several", _state_dict, self._buffers)
        for name, buffer in self._buffers.items():
            buffer.load_state_dict(_state_dict[name])

    def start(self) -> None:
        for buffer in self._buffers.values():
            buffer.start()

    def close(self) -> None:
        for buffer in self._buffers.values():
            buffer.close()


@BUFFER_REGISTRY.register("multi")
class MultiBuffer(BufferGroup):
    """Adds all data to every buffer, and draws a batch from each.

    Args:
        cfg: The common settings of all buffers, including ``type``, and a section by the name of
            each buffer with its own settings.
        args: Passed to each buffer after its config.
    """

    def __init__(self, cfg: EasyDict, *args: object, **kwargs: object) -> None:
        own = {
            name: part
            for name, part in cfg.items()
            if isinstance(part, dict) and "replay_buffer_size" in part
        }
        common = {name: part for name, part in cfg.items() if name not in own}
        self._buffers = buffers = dict[str, Any]()
        for name, part in own.items():
            merged = EasyDict(deep_merge_dicts(common, part))
            options = {**kwargs, "instance_name": f"{name}_buffer"}
            kind = part.get("type", cfg.type)
            buffers[name] = BUFFER_REGISTRY.build(kind, merged, *args, **options)

    @property
    def replay_buffer_size(self) -> int:
        """The size of the largest buffer."""
        return max(buffer.replay_buffer_size for buffer in self._buffers.values())

    @property
    def push_count(self) -> int:
        """Number of items ever pushed."""
        return max(buffer.push_count for buffer in self._buffers.values())

    def push(self, data: Items | Item, cur_collector_envstep: int) -> None:
        for buffer in self._buffers.values():
            buffer.push(data, cur_collector_envstep)

    def update(self, info: Mapping[str, Mapping[str, Any]]) -> None:
        """Pass each buffer the information under its name."""
        for name, part in info.items():
            self._buffers[name].update(part)

    def sample(  # type: ignore[override]
        self, batch_size: int | Mapping[str, int], cur_learner_iter: int
    ) -> dict[str, Items] | None:
        """A batch of each buffer by name; ``None`` if one of them yields none.

        Args:
            batch_size: One size for all buffers, or the size for each.
        """
        one = None if isinstance(batch_size, Mapping) else dict.fromkeys(self._buffers, batch_size)
        sizes = one or batch_size
        assert isinstance(sizes, Mapping)
        # Check all buffers first: a batch that is discarded would still count as use.
        if any(buffer.count() < sizes[name] for name, buffer in self._buffers.items()):
            return None
        batches: dict[str, Items] = {}
        for name, buffer in self._buffers.items():
            batch = buffer.sample(sizes[name], cur_learner_iter)
            if batch is None:  # it has evicted stale items, or its limits forbid sampling
                return None
            batches[name] = batch
        return batches

    def count(self) -> int:
        """The number of items in the smallest buffer."""
        return min(buffer.count() for buffer in self._buffers.values())

    def save_data(self, file_name: str) -> None:
        """Write one file per buffer: ``data.pkl`` becomes ``data_policy.pkl`` and so on."""
        for name, buffer in self._buffers.items():
            buffer.save_data(_named(file_name, name))

    def load_data(self, file_name: str) -> None:
        for name, buffer in self._buffers.items():
            buffer.load_data(_named(file_name, name))

    def clear(self) -> None:
        for buffer in self._buffers.values():
            buffer.clear()


def _named(file_name: str, name: str) -> str:
    stem, end = os.path.splitext(file_name)
    return f"{stem}_{name}{end}"

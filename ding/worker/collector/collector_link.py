"""What connects a parallel collector to the worker that it runs in."""

import itertools
from collections.abc import Callable
from typing import Protocol

from ding.worker.collector._parts_cache import PartsCache
from ding.worker.collector.steps import Samples, State


class CollectorLink(Protocol):
    """What a collector needs of its worker to reach learner and coordinator."""

    parts: PartsCache

    def get_policy_update_info(self, path: str) -> State | None:
        """The published state of a policy, with ``iter`` of its training; ``None`` if there is
        none yet."""

    @property
    def send_stepdata(self) -> Callable[..., None]:
        """Brings samples to where learners find them: ``send_stepdata(path, samples)``."""

    def send_metadata(self, metadata: State) -> None:
        """Tell the coordinator of samples that were sent: ``data_id`` is their name."""

    def policy_changed(self, path: str) -> bool:
        """Whether a policy may have been published since it was last asked for; cheap."""

    def new_data_id(self) -> str:
        """A name that no other samples of the run have."""

    def backlog(self) -> int:
        """Messages that the coordinator has not asked for yet."""

    def chunk_rows(self, samples: Samples) -> int:
        """How many of the samples to send at once; at least one."""


class LinkDefaults:
    """The part of a link that need not know what the data travels by.

    Args:
        uid: Unlike that of any other link of the run.
        name: Of the worker; its environments' seeds depend on it.
    """

    def __init__(self, uid: str, name: str) -> None:
        self._collector_uid = uid
        self._numbers = itertools.count()
        self.parts = PartsCache(name)

    def policy_changed(self, path: str) -> bool:
        """Whether a policy may have been published since it was last asked for; cheap."""
        return True

    def new_data_id(self) -> str:
        """A name that no other samples of the run have."""
        return self._next_serial()

    def _next_serial(self) -> str:
        """Unlike any other of the run."""
        return f"{self._collector_uid}_{next(self._numbers)}"

    def backlog(self) -> int:
        """Messages that the coordinator has not asked for yet."""
        return 0

    def chunk_rows(self, samples: Samples) -> int:
        """How many of the samples to send at once; at least one."""
        return len(samples)


class MethodLink(LinkDefaults):
    """A link of three functions that somebody gave a collector one by one."""

    def __init__(
        self,
        uid: str,
        get_policy_update_info: Callable[[str], State | None],
        send_stepdata: Callable[..., None],
        send_metadata: Callable[[State], None],
    ) -> None:
        super().__init__(uid, uid)
        self.get_policy_update_info = get_policy_update_info
        self.send_stepdata = send_stepdata
        self.send_metadata = send_metadata

"""The ``torch.distributed`` group of one learner's processes, and their rendezvous."""

import socket
from datetime import timedelta
from typing import Any

from ding.interaction.base import random_token
from ding.interaction.slave import TaskFail
from ding.utils import dist_finalize, dist_init, durations
from ding.utils.pytorch_ddp_dist_helper import listen_at, tcp_store
from ding.worker.error_report import ErrorReport
from ding.worker.messages import Meeting


class LearnerGroup:
    """A ``torch.distributed`` group of processes on any hosts, formed again for each task.

    A group with a failed process cannot be repaired; a new one may include a restarted process.
    Each method raises a `TaskFail` that names what was expected.
    """

    def __init__(self) -> None:
        self._listener: socket.socket | None = None
        self._store: Any = None  # rank 0's store serves the others

    def open(self, host: str) -> Meeting:
        """As rank 0, listen for the other ranks at an address of this host."""
        # The address is chosen at run time: processes may be started one by one, on any host that
        # can reach it.
        if self._listener is not None:
            self._listener.close()
        try:
            self._listener = listen_at(host)
        except OSError as error:
            raise _failure(f"cannot listen for the others at {host}: {error}") from error
        return Meeting(host, self._listener.getsockname()[1], random_token())

    def meet(self, meeting: Meeting) -> None:
        """Wait for the other ranks and form a group with them."""
        dist_finalize()
        self._store = self._reach_store(meeting)
        self._wait_for_others(meeting)
        place = meeting.rank, len(meeting.learners)
        limit = timedelta(seconds=durations.GROUP_REDUCTION)
        dist_init("nccl", meeting.host, str(meeting.port), *place, limit, self._store)

    @staticmethod
    def leave() -> None:
        """Leave the group; ranks that wait for this one get an error."""
        dist_finalize()

    def close(self) -> None:
        self.leave()
        if self._listener is not None:
            self._listener.close()
        self._store = self._listener = None

    def _reach_store(self, meeting: Meeting) -> Any:
        from torch.distributed import PrefixStore

        listener, self._listener = self._listener, None
        at, limit = (meeting.host, meeting.port), timedelta(seconds=durations.GROUP_MEET)
        try:
            store = tcp_store(*at, meeting.rank, len(meeting.learners), limit, listener)
        except RuntimeError as error:
            cause = str(error).partition("\n")[0]
            raise _failure(
                f"cannot reach {meeting.learners[0]} (rank 0) at {at[0]}:{at[1]} within "
                f"{durations.GROUP_MEET:g} s; this host needs a way to that address ({cause})"
            ) from error
        return PrefixStore(meeting.name, store)

    def _wait_for_others(self, meeting: Meeting) -> None:
        from torch.distributed import DistStoreError

        store, keys = self._store, [f"here_{name}" for name in meeting.learners]
        store.set(keys[meeting.rank], "")
        try:
            store.wait(keys, timedelta(seconds=durations.GROUP_MEET))
        except DistStoreError as error:
            missing = [
                f"{name} (rank {rank})"
                for rank, name in enumerate(meeting.learners)
                if not store.check([keys[rank]])
            ]
            raise _failure(
                f"of {len(keys)} processes that train together, {', '.join(missing)} did not come "
                f"to {meeting.host}:{meeting.port} within {durations.GROUP_MEET:g} s",
                of_group=True,
            ) from error


def _failure(cause: str, of_group: bool = False) -> TaskFail:
    return ErrorReport("MeetingFailed", cause, of_group=of_group).task_fail()

"""The process group of the learners that train one policy together."""

import datetime
import os
from typing import Any

from ding.utils import dist_finalize, dist_init, durations, launched_as
from ding.utils.pytorch_ddp_dist_helper import tcp_store


class LearnerGroup:
    """A process group of ``torch.distributed`` that is made again for each task.

    A group in which one process failed cannot be repaired; a new one may include a restarted
    process. ``launched_as`` is rank and number of processes, from the environment.
    """

    def __init__(self) -> None:
        self.launched_as = launched_as()
        self._server: Any = None

    def meet(self, name: str) -> None:
        """Wait for the other ranks under a name that is used once.

        Raises:
            RuntimeError: They have not come in time.
        """
        from torch.distributed import PrefixStore

        dist_finalize()
        rank, size = self.launched_as
        if size > 1:
            store = PrefixStore(name, self._store())
            store.set(f"here_{rank}", "")
            everybody = [f"here_{other}" for other in range(size)]
            store.wait(everybody, datetime.timedelta(seconds=durations.GROUP_MEET))
            dist_init(timeout=datetime.timedelta(seconds=durations.GROUP_REDUCTION), store=store)

    @staticmethod
    def leave() -> None:
        """Leave the group; ranks that wait for this one get an error."""
        dist_finalize()

    def close(self) -> None:
        self.leave()
        self._server = None

    def _store(self) -> Any:
        if self._server is not None:
            return self._server
        rank, size = self.launched_as
        host = os.environ.get("MASTER_ADDR", "127.0.0.1")
        port = int(os.environ.get("MASTER_PORT", "10314"))
        timeout = datetime.timedelta(seconds=durations.GROUP_MEET)
        store = tcp_store(host, port, rank, size, timeout)
        if rank == 0:
            self._server = store  # it serves the others in later tasks as well
        return store

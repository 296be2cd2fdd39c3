"""The link of a parallel collector to its worker: it provides policies and takes samples."""

import itertools
import logging
import threading
import time
from collections.abc import Callable

from ding.data.buffer.prioritised_buffer import iters_of
from ding.utils import durations
from ding.utils.errors import CheckpointError, CheckpointNotFoundError
from ding.utils.types import State
from ding.worker.collector.parts_cache import LentPolicy, PartsCache
from ding.worker.collector.steps import Mode, Samples

_logger = logging.getLogger(__name__)

#: Minimum number of samples in a chunk, unless the oldest sample has waited too long.
MIN_SAMPLES = 16
#: Maximum factor by which size and age of a chunk grow while the coordinator is behind.
MAX_SCALE = 64

#: Functions of a `CollectorLink` that the transport defines.
LINK_FUNCTIONS = ("get_policy_update_info", "send_stepdata", "send_metadata")


class CollectorLink:
    """Connects a collector to the learner and the coordinator.

    The transport defines `LINK_FUNCTIONS`, as attributes or methods.

    Args:
        uid: An id that no other link of the run has.
        name: The worker's name; the seeds of its environments depend on it.
    """

    #: Returns the published state of the named policy, with its training iteration as ``iter``;
    #: ``None`` if none was published yet.
    get_policy_update_info: Callable[[str], State | None]
    #: Stores samples where learners find them: ``send_stepdata(path, samples)``.
    send_stepdata: Callable[..., None]
    #: Reports stored samples to the coordinator; ``data_id`` is their name.
    send_metadata: Callable[[State], None]

    def __init__(self, uid: str, name: str) -> None:
        self._collector_uid = uid
        self._numbers = itertools.count()
        self.parts = PartsCache(name)

    def policy_changed(self, path: str) -> bool:
        """Whether the policy may have been published again since the last call; cheap."""
        return True

    def new_data_id(self) -> str:
        """A name for samples that is unique in the run."""
        return self._next_serial()

    def _next_serial(self) -> str:
        return f"{self._collector_uid}_{next(self._numbers)}"

    def backlog(self) -> int:
        """Number of messages that the coordinator has not fetched yet."""
        return 0

    def chunk_rows(self, samples: Samples) -> int:
        """Number of samples to send at once; at least one."""
        return len(samples)


class PolicySource:
    """Keeps one policy up to date.

    Args:
        link: The worker.
        path: Name of the policy's published state.
        lent: The policy and the training iteration of its weights.
        mode: The policy's mode into which versions are loaded.
        period: Seconds between two checks for a new version.
    """

    def __init__(
        self, link: CollectorLink, path: str, lent: LentPolicy, mode: Mode, period: float
    ) -> None:
        self._link, self._path, self._lent, self._mode = link, path, lent, mode
        self._period = period
        self._looked = 0.0
        self._is_hasty = False
        self._warning: str | None = None
        self._noted = ""

    @property
    def iter(self) -> int:
        """Training iteration of the version in use."""
        return self._lent.iter or 0

    @property
    def is_missing(self) -> bool:
        """Whether no version was loaded yet."""
        return self._lent.iter is None

    def begin(self, ended: threading.Event, may_be_missing: bool) -> None:
        """Load the first version, waiting for it until ``ended`` is set.

        Args:
            may_be_missing: Begin with the initial policy if no version was published yet.

        Raises:
            CheckpointError: No version can be read in time, and none was loaded before.
        """
        deadline = time.monotonic() + durations.POLICY_FIRST_WAIT
        while (error := self._load()) is not None:
            missing = isinstance(error, FileNotFoundError)
            if not self.is_missing or (missing and may_be_missing):
                break
            if time.monotonic() >= deadline:
                raise CheckpointError(
                    f"no policy {self._path!r} to begin with for "
                    f"{durations.POLICY_FIRST_WAIT:g} s: {error}"
                ) from error
            if ended.wait(durations.POLICY_LOOK):
                return
        self._looked = time.monotonic()

    def look_soon(self) -> None:
        """Check earlier: the collector had to wait, so a new version is likely."""
        self._is_hasty = True

    def refresh(self) -> None:
        """Load a new version if a check is due; checks are more frequent until the first one."""
        is_soon = self._is_hasty or self.is_missing
        now, span = time.monotonic(), self._period
        if now - self._looked >= (min(span, durations.POLICY_LOOK) if is_soon else span):
            self._looked, self._is_hasty = now, False
            if self._link.policy_changed(self._path):
                self._load()

    def take_warning(self) -> str | None:
        """Why the newest version could not be loaded; returned once."""
        warning, self._warning = self._warning, None
        return warning

    def _load(self) -> Exception | None:
        """Load the newest version; returns the error if that fails."""
        try:
            info = self._link.get_policy_update_info(self._path)
            if info is None:
                raise CheckpointNotFoundError(f"no policy {self._path!r} was published yet")
            state = dict(info)
            train_iter = int(state.pop("iter", 0))
            self._mode.load_state_dict(state if "model" in state else {"model": state})
        except Exception as error:  # a damaged file may raise anything; the old policy is kept
            text = f"policy {self._path!r} not updated: {type(error).__name__}: {error}"
            is_early = isinstance(error, FileNotFoundError) and self.is_missing
            # Warn once per cause: loading is retried every few seconds.
            if not is_early and text != self._noted:
                _logger.warning("%s", text)
                self._warning = self._noted = text
            return error
        self._lent.iter, self._warning, self._noted = train_iter, None, ""
        return None


class SampleSender:
    """Decides when samples are sent: ``n_sample`` at once while the coordinator keeps up."""

    def __init__(self, link: CollectorLink, n_sample: int | None) -> None:
        self._link = link
        self._n_sample = max(n_sample or 0, MIN_SAMPLES)
        self._since: float | None = None  # some wait
        self._sent = 0.0

    def is_due(self, waiting: int) -> bool:
        """Whether it is time to send the waiting samples; called after each step."""
        if not waiting:
            return False
        now = time.monotonic()
        if self._since is None:
            self._since = now
        # Each message costs a busy coordinator the same, whatever its size: send fewer.
        scale = min((1 + self._link.backlog()) ** 2, MAX_SCALE)
        is_enough = waiting >= self._n_sample * scale
        if is_enough and now - self._sent >= durations.CHUNK_SPAN:
            return True
        return now - self._since >= durations.CHUNK_AGE * scale

    def send(self, samples: Samples, facts: Callable[[int], State]) -> int:
        """Send samples in chunks of the size that the worker requests; returns their number.

        ``facts(n)`` returns further fields of the message for ``n`` samples; its ``collect_iter``
        is used only if the samples have none.
        """
        self._sent, self._since = time.monotonic(), None
        start = 0
        while start < len(samples):
            chunk = samples[start : start + self._link.chunk_rows(samples[start:])]
            data_id = self._link.new_data_id()
            self._link.send_stepdata(data_id, chunk)
            metadata = {"data_id": data_id, "sample_num": len(chunk), **facts(len(chunk))}
            iters = iters_of(chunk)
            if iters is not None:
                same = (iters == iters[0]).all()
                metadata["collect_iter"] = int(iters[0]) if same else iters.tolist()
            self._link.send_metadata(metadata)
            start += len(chunk)
        return len(samples)

"""Where a collector's policy comes from: what the learner published last."""

import logging
import threading
import time

from ding.utils import durations
from ding.utils.errors import CheckpointError, CheckpointNotFoundError
from ding.worker.collector._parts_cache import LentPolicy
from ding.worker.collector.collector_link import CollectorLink
from ding.worker.collector.steps import Mode

_logger = logging.getLogger(__name__)


class PolicySource:
    """Keeps one policy up to date.

    Args:
        link: The worker; see `CollectorLink`.
        path: Name of the policy's published state.
        lent: The policy, and which version it holds.
        mode: The policy's mode to load it into.
        period: Seconds between two looks for a new version.
    """

    def __init__(
        self, link: CollectorLink, path: str, lent: LentPolicy, mode: Mode, period: float
    ) -> None:
        self._link, self._path, self._lent, self._mode = link, path, lent, mode
        self._period = period
        self._due = self._looked = 0.0
        self._warning: str | None = None
        self._noted = ""

    @property
    def iter(self) -> int:
        """Training iteration of the version in use."""
        return self._lent.iter or 0

    @property
    def _span(self) -> float:
        """Seconds until it is looked again: sooner while there was none."""
        if self._lent.iter is not None:
            return self._period
        return min(self._period, durations.POLICY_LOOK)

    def begin(self, ended: threading.Event, may_be_missing: bool) -> None:
        """Load the first version.

        Args:
            ended: Set when the collector is told to stop.
            may_be_missing: Begin with the initial policy if nothing was published yet.

        Raises:
            CheckpointError: There is none, or none that can be read, and never was.
        """
        deadline = time.monotonic() + durations.POLICY_FIRST_WAIT
        while (error := self._load()) is not None:
            missing = isinstance(error, FileNotFoundError)
            if self._lent.iter is not None or (missing and may_be_missing):
                break
            if time.monotonic() >= deadline:
                raise CheckpointError(
                    f"no policy {self._path!r} to begin with for "
                    f"{durations.POLICY_FIRST_WAIT:g} s: {error}"
                ) from error
            if ended.wait(durations.POLICY_LOOK):
                return
        self._due = time.monotonic() + self._span

    def look_soon(self) -> None:
        """The collector had to wait, and there may be a new version meanwhile."""
        self._due = min(self._due, self._looked + durations.POLICY_LOOK)

    def refresh(self) -> None:
        """Load a new version if it is time to look and there is one."""
        now = time.monotonic()
        if now < self._due:
            return
        self._looked = now
        if self._link.policy_changed(self._path):
            self._load()
        self._due = now + self._span

    def take_warning(self) -> str | None:
        """Why the newest version could not be loaded; told once."""
        warning, self._warning = self._warning, None
        return warning

    def _load(self) -> Exception | None:
        """Why there is no new version in use."""
        try:
            info = self._link.get_policy_update_info(self._path)
            if info is None:
                raise CheckpointNotFoundError(f"no policy {self._path!r} was published yet")
            state = dict(info)
            train_iter = int(state.pop("iter", 0))
            self._mode.load_state_dict(state if "model" in state else {"model": state})
        except Exception as error:  # whatever was published: the old policy is better than none
            self._note(error)
            return error
        self._lent.iter, self._warning, self._noted = train_iter, None, ""
        return None

    def _note(self, error: Exception) -> None:
        if isinstance(error, FileNotFoundError) and self._lent.iter is None:
            return
        text = f"policy {self._path!r} not updated: {type(error).__name__}: {error}"
        if text != self._noted:
            _logger.warning("%s", text)
            self._warning = self._noted = text

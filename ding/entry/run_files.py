"""Small files of facts in a run's folder."""

import os
import re
import time
from datetime import datetime, timezone
from typing import Any

from ding.utils.ending import Ending
from ding.utils.file_helper import read_facts, remove_unfinished, write_facts
from ding.utils.processes import still_runs
from ding.utils.run_log import RECORD_FILE

__all__ = [
    "COORDINATOR_FILE",
    "RECORD_FILE",
    "clean_run_folder",
    "coordinator_address",
    "read_record",
    "recorded_ending",
    "settle_record",
]

COORDINATOR_FILE = "coordinator.json"

_FACTS = re.compile(rf"{RECORD_FILE}|{COORDINATOR_FILE}|(formatted_)?total_config\.py")
_STATES = re.compile(r".+\.pth\.tar")


def coordinator_address(exp_name: str) -> dict[str, Any] | None:
    """``host``, ``port`` and ``pid`` of a run's coordinator.

    ``None`` if there is none: the file may have been left by one that was killed.
    """
    found = read_facts(os.path.join(exp_name, COORDINATOR_FILE))
    process = found.get("process")
    if not {"host", "port"} <= set(found):
        return None
    return None if isinstance(process, dict) and still_runs(process) is False else found


def read_record(exp_name: str) -> dict[str, Any]:
    """What ``run.json`` tells of a run; empty if there is none."""
    return read_facts(os.path.join(exp_name, RECORD_FILE))


def settle_record(exp_name: str, ending: Ending) -> None:
    """Write how a run ended into its ``run.json`` if no coordinator could, or if there was none."""
    record = read_record(exp_name) or {"status": "running", "began": False}
    if record.get("status") != "running" or not os.path.isdir(exp_name):
        return
    now = datetime.fromtimestamp(time.time(), timezone.utc).astimezone()
    record.update(
        status=ending.status, reason=ending.reason, ended=now.isoformat(timespec="seconds")
    )
    write_facts(os.path.join(exp_name, RECORD_FILE), record)


def recorded_ending(exp_name: str) -> Ending:
    """How a run ended whose coordinator has let its workers go."""
    record = read_record(exp_name)
    if record.get("status") in (None, "running"):
        return Ending("finished", "the coordinator has ended")
    return Ending(record["status"], record.get("reason", ""))


def clean_run_folder(exp_name: str) -> None:
    """Remove what killed processes have left of files that they were writing."""
    remove_unfinished(exp_name, _FACTS)
    remove_unfinished(os.path.join(exp_name, "ckpt"), _STATES)

"""Asking a run's coordinator how it is going."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import requests

from ding.entry.run_files import coordinator_address
from ding.interaction.base import HttpEngine
from ding.utils import durations
from ding.utils.errors import RunError
from ding.utils.process_identity import still_runs


def is_answering(address: Mapping[str, Any], exp_name: str) -> bool:
    """Whether it is that run's coordinator that has an address, and not another program by now.

    Args:
        address: A `coordinator_address`.
        exp_name: The run's folder.
    """
    process = address.get("process")
    if isinstance(process, dict) and still_runs(process):
        return True
    try:
        answering = ask_status(address).get("exp_name")
    except RunError:
        return False
    return _folder_name(answering) == _folder_name(exp_name)


def ask_status(address: Mapping[str, Any]) -> dict[str, Any]:
    """What a coordinator tells of its run.

    Raises:
        RunError: There is no answer, or it is none of a coordinator.
    """
    where = f"{address.get('host')}:{address.get('port')}"
    try:
        engine = HttpEngine(str(address["host"]), int(address["port"]))
        engine.timeout = durations.STATUS_TIMEOUT
        with contextlib.closing(engine):
            answer = engine.request("GET", "status", retries=0, raise_for_status=False)
        return dict(answer.json()["data"])
    except (requests.RequestException, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"the coordinator at {where} (process {address.get('pid')}) does not answer: "
            f"{type(error).__name__}"
        ) from error


def live_status(exp_name: str) -> dict[str, Any] | None:
    """What the coordinator of a run tells, ``None`` if there is none that answers."""
    address = coordinator_address(exp_name)
    if address is None:
        return None
    try:
        return ask_status(address)
    except RunError:
        return None


def _folder_name(exp_name: Any) -> str:
    return os.path.basename(os.path.normpath(str(exp_name)))

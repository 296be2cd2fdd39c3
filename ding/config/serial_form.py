"""The same experiment in one process."""

import copy
from collections.abc import Mapping
from typing import Any

from ding.config.check import at
from ding.utils import PARALLEL_COLLECTOR_REGISTRY

_PARALLEL_ONLY = ("collector", "commander", "comm_learner", "comm_collector", "league")


def is_parallel(create: Any) -> bool:
    """Whether a ``create_config`` names parts of parallel mode."""
    return isinstance(create, Mapping) and (
        "comm_collector" in create or at(create, "collector.type") in PARALLEL_COLLECTOR_REGISTRY
    )


def serial_form(main: Mapping[str, Any], create: Mapping[str, Any]) -> tuple[dict, dict]:
    """The configs of a parallel run for a serial one, or for evaluating what it trained.

    Parts and settings that only parallel mode has are left out.
    """
    serial_create = {key: value for key, value in create.items() if key not in _PARALLEL_ONLY}
    serial_main = copy.deepcopy(dict(main))
    for section, key in (("collect", "collector"), ("other", "commander")):
        (at(serial_main, f"policy.{section}") or {}).pop(key, None)
    return serial_main, serial_create

"""Checkpoints as programs written for DI-engine expect them."""

from collections.abc import Mapping
from typing import Any

from ding.model import with_old_names

#: The networks of a policy in its checkpoints; all have one structure.
_NETWORKS = ("model", "target_model")


def in_old_form(policy: Any, state: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint in which the parameters have all the names that DI-engine knows them by.

    It still is one that loads here.

    Args:
        policy: A policy, or one of its modes.
        state: A checkpoint of it: ``model``, and whatever else there is.
    """
    find = getattr(policy, "get_attribute", None) or policy._get_attribute
    named = {key: with_old_names(find("model"), state[key]) for key in _NETWORKS if key in state}
    return {**state, **named}

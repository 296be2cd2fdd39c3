"""Policies' states in the form of DI-engine, and those that earlier versions of ours wrote."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from ding.model import with_forms, with_old_names

#: The networks of a policy in its checkpoints; all have one structure.
_NETWORKS = ("model", "target_model")
#: Only states that were written here hold it, and those of every version do.
_OURS = "target_update_count"


def in_old_form(policy: Any, state: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint as programs written for DI-engine read it: names and values of parameters.

    It still is one that loads here.

    Args:
        policy: A policy, or one of its modes.
        state: A checkpoint of it: ``model``, and whatever else it holds.

    Raises:
        CheckpointError: The old form cannot hold what its networks compute.
    """
    find = getattr(policy, "get_attribute", None) or policy._get_attribute
    model = find("model")
    old = complete(model, state)
    old.pop(_OURS, None)
    return {**old, **{key: with_old_names(model, old[key]) for key in _NETWORKS if key in old}}


def complete(model: nn.Module, state: Mapping[str, Any]) -> dict[str, Any]:
    """A policy's state, with the forms of its networks if an earlier version of ours wrote it.

    States without forms that were not written here are in the old form, and stay as they are.
    """
    if _OURS not in state:
        return dict(state)
    networks = {
        key: with_forms(model, state[key])
        for key in _NETWORKS
        if isinstance(state.get(key), Mapping)
    }
    return {**state, **networks}

"""The checkpoint of the best evaluation, made of the weights that were evaluated."""

import os
from collections.abc import Mapping
from typing import Any

from ding.torch_utils.weights_file import read_weights
from ding.utils import save_file
from ding.utils.errors import DingError
from ding.utils.shared_folder import SharedFolder

from .reported_values import as_count

BEST_NAME = "ckpt_best.pth.tar"


class BestPolicy:
    """Turns the copies of evaluated weights into the best checkpoint, and removes them.

    Args:
        exp_name: The run's folder.
        folder: Where weights are published; ``None``: nowhere that the coordinator can read.
    """

    def __init__(self, exp_name: str, folder: SharedFolder | None) -> None:
        self._path = os.path.join(exp_name, "ckpt", BEST_NAME)
        self._folder = folder

    def take(self, info: Mapping[str, Any], is_best: bool) -> str | None:
        """Look at the closing words of an evaluation; returns what went wrong, if anything."""
        name = info.get("eval_policy")
        if self._folder is None or not isinstance(name, str) or not name:
            return None
        try:
            if is_best:
                state, facts = read_weights(self._folder, name)
                save_file(self._path, _checkpoint(state, {**facts, **info}))
            self._folder.remove(name)
        except (DingError, OSError) as err:
            return f"{BEST_NAME} was not saved: {err}"
        return None


def _checkpoint(state: dict[str, Any], info: Mapping[str, Any]) -> dict[str, Any]:
    state = state if "model" in state else {"model": state}
    return {
        **state,
        "last_iter": as_count(info.get("policy_iter")),
        "last_step": as_count(info.get("envstep")),
        "eval_result": info.get("reward_mean"),
    }

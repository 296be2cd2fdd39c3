"""The checkpoint of the best evaluation, made of the weights that were evaluated."""

from collections.abc import Mapping

from ding.utils.errors import DingError
from ding.worker.seams import Artifacts, State, WeightStore

from .reported_values import as_count

BEST_NAME = "ckpt_best.pth.tar"


class BestPolicy:
    """Turns the copies of evaluated weights into the best checkpoint, and removes them.

    Args:
        artifacts: Where the checkpoint goes.
        weights: Where weights are published; ``None``: nowhere that the coordinator can read.
    """

    def __init__(self, artifacts: Artifacts, weights: WeightStore | None) -> None:
        self._artifacts, self._weights = artifacts, weights

    def take(self, info: Mapping[str, object], is_best: bool) -> str | None:
        """Look at the report of an evaluation; returns what went wrong, if anything."""
        name = info.get("eval_policy")
        if self._weights is None or not isinstance(name, str) or not name:
            return None
        try:
            if is_best:
                found = self._weights.newest(name)
                checkpoint = _checkpoint(found.state, {**found.facts, **info})
                self._artifacts.save(f"ckpt/{BEST_NAME}", checkpoint)
            self._weights.remove(name)
        except (DingError, OSError) as err:
            return f"{BEST_NAME} was not saved: {err}"
        return None


def _checkpoint(state: State, info: Mapping[str, object]) -> State:
    state = state if "model" in state else {"model": state}
    return {
        **state,
        "last_iter": as_count(info.get("policy_iter")),
        "last_step": as_count(info.get("envstep")),
        "eval_result": info.get("reward_mean"),
    }

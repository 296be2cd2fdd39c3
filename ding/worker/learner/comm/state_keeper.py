"""Saves a learner's whole state as a run artifact, so that another worker can resume from it."""

import math
from collections.abc import Callable
from typing import Any, cast

import torch

from ding.torch_utils import to_device
from ding.utils import allreduce_data, durations, get_world_size
from ding.utils.errors import CheckpointError, DataError
from ding.utils.state_saver import StateSaver
from ding.utils.types import SavedState
from ding.worker.learner.base_learner import BaseLearner
from ding.worker.learner.learner_hook import LearnerHook
from ding.worker.seams import Artifacts

#: Maximum fraction of the time spent writing.
MAX_SHARE = 0.05


class StateKeeper(LearnerHook):
    """Saves the state periodically; as a hook (``before_run``) it restores it.

    Args:
        artifacts: The store of the state.
        path: The state's path there; ``None`` to save nothing.
        warn: Called with errors of reading and writing.
        writes: Whether this process saves.
        replay: Returns the state of the replay buffer, without its samples.

    Attributes:
        replay_state: The saved state of the replay buffer, if there is one.

    Raises:
        CheckpointError: The state is damaged.
        DataError: The path is not a valid artifact path.
    """

    def __init__(
        self,
        artifacts: Artifacts,
        path: str | None,
        warn: Callable[[str], object],
        writes: bool,
        replay: Callable[[], SavedState | None] = lambda: None,
    ) -> None:
        # After a checkpoint from the config is loaded, before the policy is published.
        super().__init__("restore_state", 50, position="before_run")
        self._artifacts, self._path, self._warn = artifacts, path, warn
        self._writes = writes and path is not None
        self._state = None if path is None else artifacts.load(path)
        self._replay = replay
        found = None if self._state is None else self._state.get("replay")
        self.replay_state = cast("SavedState | None", found)
        self._saver = StateSaver[SavedState](
            self._take,
            lambda state: artifacts.save(str(path), state),
            lambda error: warn(f"the learner's state cannot be saved: {error}"),
            durations.LEARNER_SAVE_INTERVAL,
            MAX_SHARE,
        )

    def save_if_due(self) -> None:
        """Save if the last save was long ago; between updates only."""
        if self._writes:
            self._saver.save_if_due()

    def save(self) -> None:
        """Save; between updates only. A failed write is a warning."""
        if self._writes:
            self._saver.save()

    def _take(self) -> SavedState:
        learner = self._learner
        state = {"policy": learner.policy.state_dict(), "learner": learner.state_dict()}
        if learner.reward_model is not None:
            state["reward_model"] = learner.reward_model.state_dict()
        on_cpu: SavedState = to_device(state, "cpu")
        return {**on_cpu, "replay": self._replay()}

    def __call__(self, engine: BaseLearner) -> None:
        """Resume from the state, if there is one.

        Raises:
            CheckpointError: The state belongs to another policy. Starting from scratch without
                notice would lose the training so far.
            DataError: Other ranks resume from another state.
        """
        self._learner = engine
        if self._path is None:
            return
        for unsaved in engine.policy.get_attribute("unsaved_attributes"):
            self._warn(
                f"the policy's attribute {unsaved} is not part of the learner's state: a learner "
                "that is started again begins with a new one"
            )
        state, self._state = self._state, None
        if state is not None:
            self._restore(engine, state)
        # A rank with other weights would silently corrupt the others through its gradients.
        if get_world_size() > 1:
            _check_agreement(engine)

    def _restore(self, engine: BaseLearner, state: SavedState) -> None:
        try:
            engine.policy.load_state_dict(cast(dict[str, Any], state["policy"]))
            engine.load_state_dict(cast(dict[str, Any], state["learner"]))
            if engine.reward_model is not None and "reward_model" in state:
                engine.reward_model.load_state_dict(cast(dict[str, Any], state["reward_model"]))
        except Exception as error:  # a mismatched state may raise anything
            raise CheckpointError(
                f"the learner's state {self._path} cannot be used: {error}; remove it to start "
                "from the beginning"
            ) from error
        engine.info(f"{engine.instance_name} continues from iteration {engine.train_iter}")


def _check_agreement(engine: BaseLearner) -> None:
    model = engine.policy.state_dict().get("model", {})
    weights = [leaf for leaf in model.values() if isinstance(leaf, torch.Tensor)]
    own = engine.train_iter + sum(leaf.double().abs().sum().item() for leaf in weights)
    mean = allreduce_data(float(own), "avg")
    if not math.isclose(own, mean, rel_tol=1e-9):
        raise DataError(
            f"rank {engine.rank} continues from iteration {engine.train_iter}, other ranks from "
            "another state: look whether all of them can read the same state_path"
        )

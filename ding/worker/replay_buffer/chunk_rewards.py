"""The reward model of a parallel run: rewrites rewards when a buffer reads chunks."""

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from ding.data.columns import Columns
from ding.data.offline.trajectories import in_trajectories
from ding.reward_model.base_reward_model import BaseRewardModel, State, create_reward_model
from ding.utils.errors import ConfigError
from ding.utils.log_writer import ScalarWriter
from ding.worker.seams import Samples


class ChunkRewards:
    """Rewrites the rewards of chunks; thread-safe: one thread reads chunks, another one trains.

    Args:
        cfg: The section ``reward_model`` of the main config.
        policy: The compiled section ``policy``, for the shapes of observations and actions.
        device: Device of the networks.
        tb_logger: Writer of scalars.
    """

    def __init__(
        self,
        cfg: Mapping[str, Any],
        policy: Mapping[str, Any],
        device: str,
        tb_logger: ScalarWriter | None,
    ) -> None:
        own, model = EasyDict(cfg), policy["model"]
        for name in ("obs_shape", "action_shape"):
            if own.get(name) is None:
                own[name] = model.get(name)
        if own.get("continuous") is None:
            space = model.get("action_space") or policy.get("action_space") or "discrete"
            own["continuous"] = space != "discrete"
        self._model: BaseRewardModel = create_reward_model(own, device, tb_logger)
        self._lock = threading.Lock()
        self._is_new = False

    def taken_in(self, samples: Samples, again: bool) -> Samples:
        """The samples of a chunk with the model's rewards.

        Args:
            again: Whether this is a second reading, after a restart from a saved state.

        Raises:
            ConfigError: The samples are not one-step transitions.
        """
        columns = samples if isinstance(samples, Columns) else Columns.from_rows(list(samples))
        reward: Any = columns.columns.get("reward")
        missing = {"obs", "next_obs", "action", "reward", "done"} - {*columns.columns}
        if missing or "adv" in columns.columns or np.asarray(reward).size != len(columns):
            raise ConfigError(
                "reward_model needs samples of one step in parallel runs, without advantages: "
                "set policy.nstep=1, or train with a serial pipeline"
            )
        transitions, lengths = in_trajectories(columns, keeps_order=True)
        with self._lock:
            see = self._model.rewarded if again else self._model.collected
            found, _ = see(transitions, lengths)
            self._is_new = True
        new = np.asarray(found["reward"], np.float32).reshape(np.shape(reward))
        as_found = torch.as_tensor(new) if isinstance(reward, torch.Tensor) else new
        if isinstance(samples, Columns):
            return samples.with_columns(reward=as_found)
        return [{**row, "reward": as_found[i]} for i, row in enumerate(samples)]

    def drawn(self, batch: Samples, train_iter: int, envstep: int) -> Any:
        """A batch with the rewards to learn from; trains the model first if a chunk was added."""
        with self._lock:
            if self._is_new:
                self._is_new = False
                self._model.train(train_iter, envstep)
            return self._model.drawn(batch)  # type: ignore[arg-type]

    def state_dict(self) -> State:
        """The model's state."""
        with self._lock:
            return self._model.state_dict()

    def load_state_dict(self, state_dict: State) -> None:
        with self._lock:
            self._model.load_state_dict(dict(state_dict))

    def checkpoint(self) -> State:
        """The model's part of a policy's checkpoint."""
        with self._lock:
            return self._model.checkpoint()

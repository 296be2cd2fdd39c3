"""Greedy and ε-greedy actions without torch, where the Q network is small and plain."""

from typing import Any

import numpy as np
import torch

from ding.model.template.array_q import MAX_ROWS, ArrayQ
from ding.model.wrapper.sample import ArgmaxSampleWrapper, EpsGreedySampleWrapper


class QuickActor:
    """Acts as a wrapped model does, or leaves it to that one.

    Args:
        wrapped: The model as the policy wrapped it for acting.
        enabled: False to leave everything to the wrapped model.
    """

    def __init__(self, wrapped: Any, enabled: bool = True) -> None:
        self.wrapped = wrapped
        self._enabled = enabled
        self._explores = type(wrapped) is EpsGreedySampleWrapper
        known = enabled and (self._explores or type(wrapped) is ArgmaxSampleWrapper)
        self._model: Any = wrapped._model if known else None
        self._network = self._read_network()

    def __reduce__(self) -> Any:
        # A copy of the views would not follow the copied parameters.
        return QuickActor, (self.wrapped, self._enabled)

    def act(self, obs: Any, *args: Any, **kwargs: Any) -> dict[str, np.ndarray] | None:
        """Actions int64 ``[n]`` and logits float32 ``[n, n_action]``.

        Args:
            obs: Observations as they came from the environments.
            args: What the wrapped model is called with, besides.

        Returns:
            ``None`` if the wrapped model has to act itself: it is of another kind, or there is
            something in its input or output that it has to judge.
        """
        if self._network is None:
            return None
        if isinstance(obs, torch.Tensor):
            obs = obs.numpy(force=True)
        if not isinstance(obs, np.ndarray) or obs.ndim != 2 or len(obs) > MAX_ROWS:
            return None
        eps = None
        if self._explores:
            if len(args) + len(kwargs) != 1:
                return None
            eps = args[0] if args else kwargs.get("eps")
            if type(eps) is not float:
                return None
        elif args or kwargs:
            return None
        if not self._network.valid:
            self._network = self._read_network()
        network = self._network
        if network is None or obs.shape[1] != network.obs_size:
            return None
        logit = network(obs if obs.dtype == np.float32 else obs.astype(np.float32))
        total = np.add.reduce(logit, None)
        if total != total:
            return None  # NaN is for the wrapped model to report
        action = logit.argmax(1)
        if eps is not None:
            _explore(action, logit.shape[1], eps)
        return {"action": action, "logit": logit}

    def _read_network(self) -> ArrayQ | None:
        return ArrayQ(self._model) if ArrayQ.applies(self._model) else None


def _explore(action: np.ndarray, n_action: int, eps: float) -> None:
    """Replace each action with probability ``eps`` by any, all equally likely."""
    for i, draw in enumerate(np.random.random_sample(len(action)).tolist()):
        if draw < eps:
            # Given that it is below ε, draw / ε is uniform too.
            action[i] = int(draw / eps * n_action)

"""Exploration noise on continuous actions."""

from typing import Any

import torch

from ding.model.wrapper.base import IModelWrapper
from ding.rl_utils.exploration import create_noise_generator


class ActionNoiseWrapper(IModelWrapper):
    """Adds noise to the model's ``action`` and keeps the result in range.

    Args:
        noise_type: A type that `ding.rl_utils.create_noise_generator` knows.
        noise_range: ``{'min', 'max'}`` of the noise, ``None`` for no bound.
        action_range: ``{'min', 'max'}`` of the noisy action, ``None`` for no bound.
    """

    def __init__(
        self,
        model: Any,
        noise_type: str = "gauss",
        noise_kwargs: dict = {},
        noise_range: dict | None = None,
        action_range: dict | None = {"min": -1, "max": 1},
    ) -> None:
        super().__init__(model)
        self.noise_generator = create_noise_generator(noise_type, noise_kwargs)
        self.noise_range = noise_range
        self.action_range = action_range

    def forward(self, *args: Any, **kwargs: Any) -> dict:
        output = self._model(*args, **kwargs)
        for key in ("action", "action_args"):
            if isinstance(output.get(key), torch.Tensor) and output[key].is_floating_point():
                output[key] = self.add_noise(output[key])
        return output

    def add_noise(self, action: torch.Tensor) -> torch.Tensor:
        noise = self.noise_generator(action.shape, str(action.device))
        if self.noise_range is not None:
            noise = noise.clamp(self.noise_range["min"], self.noise_range["max"])
        action = action + noise
        if self.action_range is not None:
            action = action.clamp(self.action_range["min"], self.action_range["max"])
        return action

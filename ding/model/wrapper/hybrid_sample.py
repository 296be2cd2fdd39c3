"""Wrappers for actions that are a choice and its arguments.

The network says ``{'logit': {'action_type': [B, N], 'action_args': {'mu', 'sigma'}}}``; the action
is ``{'action_type': int64 [B], 'action_args': float32 [B, A]}``.
"""

from typing import Any

import torch

from ding.model.wrapper.base import IModelWrapper
from ding.model.wrapper.sample import argmax_action, checked, gaussian, refuse_nan, sample_action


class HybridReparamMultinomialSampleWrapper(IModelWrapper):
    """Adds ``action``: a choice drawn with the softmax's probabilities, and Gaussian arguments."""

    def forward(self, *args: Any, **kwargs: Any) -> dict:
        output = checked(self._model(*args, **kwargs), self._model)
        logit = output["logit"]
        mu, sigma = gaussian({"logit": logit["action_args"]})
        output["action"] = {
            "action_type": sample_action(logit["action_type"]),
            "action_args": refuse_nan(torch.addcmul(mu, sigma, torch.randn_like(mu))),
        }
        return output


class HybridDeterministicArgmaxSampleWrapper(IModelWrapper):
    """Adds ``action``: the likeliest choice, and the mean of its arguments."""

    def forward(self, *args: Any, **kwargs: Any) -> dict:
        output = checked(self._model(*args, **kwargs), self._model)
        logit = output["logit"]
        mu, _ = gaussian({"logit": logit["action_args"]})
        output["action"] = {
            "action_type": argmax_action(logit["action_type"]),
            "action_args": refuse_nan(mu),
        }
        return output

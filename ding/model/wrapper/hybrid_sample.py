"""Wrappers for actions that are a choice and its arguments.

The network says ``{'logit': {'action_type': [B, N], 'action_args': {'mu', 'sigma'}}}``, or, where
the arguments are no draw, ``{'logit': [B, N], 'action_args': [B, A]}``; the action is
``{'action_type': int64 [B], 'action_args': float32 [B, A]}``.
"""

from typing import Any

import torch

from ding.model.wrapper.base import IModelWrapper
from ding.model.wrapper.sample import (
    argmax_action,
    checked,
    eps_per_row,
    gaussian,
    refuse_nan,
    sample_action,
)


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


class HybridArgmaxSampleWrapper(IModelWrapper):
    """Adds ``action``: the best choice, and the arguments that the network gives."""

    def forward(self, *args: Any, **kwargs: Any) -> dict:
        output = checked(self._model(*args, **kwargs), self._model)
        choice = argmax_action(output["logit"])
        action_args = refuse_nan(output["action_args"])
        output["action"] = {"action_type": choice, "action_args": action_args}
        return output


class HybridEpsGreedySampleWrapper(HybridArgmaxSampleWrapper):
    """The same, but with probability ``eps`` any choice, with uniform arguments in [-1, 1].

    ``eps`` is a keyword of ``forward``: one number, or one for each row.
    """

    def forward(self, *args: Any, eps: Any, **kwargs: Any) -> dict:
        output = super().forward(*args, **kwargs)
        best = output["action"]
        explore = torch.empty_like(best["action_type"], dtype=torch.bool)
        explore.bernoulli_(eps_per_row(eps, best["action_type"]))  # type: ignore[arg-type]
        choice = torch.randint_like(best["action_type"], output["logit"].shape[-1])
        action_args = torch.empty_like(best["action_args"]).uniform_(-1, 1)
        output["action"] = {
            "action_type": torch.where(explore, choice, best["action_type"]),
            "action_args": torch.where(explore.unsqueeze(-1), action_args, best["action_args"]),
        }
        return output

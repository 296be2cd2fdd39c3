"""Wrappers that turn the outputs of a network into actions.

A network that gives NaN has no meaningful action; these wrappers raise `DataError` for it.
Draws come from torch's global generator, so that a seed gives the same actions again.

Of hybrid actions the network returns ``{'logit': {'action_type': [B, N], 'action_args': {'mu',
'sigma'}}}``, or, where the arguments are not drawn, ``{'logit': [B, N], 'action_args': [B, A]}``;
the action is ``{'action_type': int64 [B], 'action_args': float32 [B, A]}``.
"""

from collections.abc import Mapping
from typing import Any, NoReturn

import torch

from ding.model.template.mavac import MASKED
from ding.model.wrapper.base import IModelWrapper
from ding.rl_utils.exploration import create_noise_generator
from ding.utils.errors import ConfigError, DataError

Tensor = torch.Tensor


def sample_action(logit: Tensor | None = None, prob: Tensor | None = None) -> Tensor:
    """Draws from categorical distributions over the last dimension: ``[*, n]`` to int64 ``[*]``.

    Args:
        logit: Unnormalised log-probabilities.
        prob: Probabilities, used when ``logit`` is None; they need not sum to 1.
    """
    if logit is None:
        if prob is None:
            raise ValueError("sample_action: neither logit nor prob came; give one of them")
        logit = prob.log()
    # The maximum of log-probabilities with Gumbel noise is a draw from them, at a third of the cost
    # of softmax and multinomial and free of the latter's limit to matrices.
    exponential = torch.empty_like(logit).exponential_()
    # Its log must be finite: an impossible action (-inf) has to stay one.
    noise = exponential.clamp_min_(torch.finfo(logit.dtype).tiny).log_()
    return (refuse_nan(logit) - noise).argmax(-1)


def argmax_action(logit: Tensor) -> Tensor:
    """The best action of each row: ``[*, n]`` to int64 ``[*]``; the first one of equals."""
    return refuse_nan(logit).argmax(-1)


class _DiscreteSampleWrapper(IModelWrapper):
    """Adds ``action`` (int64 ``[B]``, a list when ``logit`` is a list) to the model's output.

    An ``action_mask`` (as ``logit``, true or non-zero where an action is legal) in the model's
    output, or else in an observation that is a mapping, keeps the action legal.
    """

    #: Whether the action is drawn, with ``alpha``, or the best one; and whether ``eps`` is taken.
    _draws = _explores = False

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        if self._explores and "eps" not in kwargs:
            raise TypeError(
                f"{type(self).__name__}.forward came without eps; call forward(obs, eps=0.1)"
            )
        eps = kwargs.pop("eps") if self._explores else None
        alpha = kwargs.pop("alpha", None) if self._draws else None
        output = checked(self._model(*args, **kwargs), self._model)
        logit, mask = output["logit"], _mask_of(output, args[0] if args else None)
        if isinstance(logit, (list, tuple)):
            output["action"] = [
                self._choose(*parts, alpha, eps) for parts in zip(logit, _masks_of(mask, logit))
            ]
        else:
            output["action"] = self._choose(logit, mask, alpha, eps)
        return output

    def _choose(self, logit: Tensor, mask: Tensor | None, alpha: float | None, eps: Any) -> Tensor:
        choose = sample_action if self._draws else argmax_action
        scaled = logit if alpha is None else logit / alpha
        action = choose(scaled if mask is None else _masked(scaled, mask))
        return _explore(action, logit, mask, eps) if self._explores else action


class ArgmaxSampleWrapper(_DiscreteSampleWrapper):
    """The action with the highest logit."""


class MultinomialSampleWrapper(_DiscreteSampleWrapper):
    """An action drawn with the probabilities ``softmax(logit / alpha)``; ``alpha`` is 1 unless
    given to ``forward``."""

    _draws = True


class EpsGreedySampleWrapper(_DiscreteSampleWrapper):
    """The best action, or with probability ``eps`` any legal one, all equally likely.

    ``forward`` needs ``eps``: a float, or one per row (tensor, sequence, or a mapping's values).
    """

    _explores = True


class EpsGreedyMultinomialSampleWrapper(EpsGreedySampleWrapper):
    """As `EpsGreedySampleWrapper`, with a draw as in `MultinomialSampleWrapper` for the best."""

    _draws = True


class _SampleWrapper(IModelWrapper):
    """Adds ``action``, made of the model's output."""

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        output = checked(self._model(*args, **kwargs), self._model)
        output["action"] = self._action(output)
        return output

    def _action(self, output: dict[str, Any]) -> Any:
        raise NotImplementedError


class DeterministicSampleWrapper(_SampleWrapper):
    """Adds ``action``, the mean of the model's Gaussian, float32 ``[B, action_shape]``."""

    def _action(self, output: dict[str, Any]) -> Tensor:
        return refuse_nan(gaussian(output["logit"])[0])


class ReparamSampleWrapper(_SampleWrapper):
    """Adds ``action``, a draw ``mu + sigma * noise``, float32 ``[B, action_shape]``.

    Gradients flow to ``mu`` and ``sigma``.
    """

    def _action(self, output: dict[str, Any]) -> Tensor:
        mu, sigma = gaussian(output["logit"])
        return refuse_nan(torch.addcmul(mu, sigma, torch.randn_like(mu)))


class HybridReparamMultinomialSampleWrapper(_SampleWrapper):
    """Adds ``action``: a choice drawn with the softmax's probabilities, and Gaussian arguments."""

    def _action(self, output: dict[str, Any]) -> dict[str, Tensor]:
        mu, sigma = gaussian(output["logit"]["action_args"])
        choice = sample_action(output["logit"]["action_type"])
        drawn = torch.addcmul(mu, sigma, torch.randn_like(mu))
        return {"action_type": choice, "action_args": refuse_nan(drawn)}


class HybridDeterministicArgmaxSampleWrapper(_SampleWrapper):
    """Adds ``action``: the likeliest choice, and the mean of its arguments."""

    def _action(self, output: dict[str, Any]) -> dict[str, Tensor]:
        mu, _ = gaussian(output["logit"]["action_args"])
        choice = argmax_action(output["logit"]["action_type"])
        return {"action_type": choice, "action_args": refuse_nan(mu)}


class HybridArgmaxSampleWrapper(_SampleWrapper):
    """Adds ``action``: the best choice, and the arguments that the network gives."""

    def _action(self, output: dict[str, Any]) -> dict[str, Tensor]:
        choice = argmax_action(output["logit"])
        return {"action_type": choice, "action_args": refuse_nan(output["action_args"])}


def checked(output: Any, model: Any) -> dict[str, Any]:
    if not isinstance(output, Mapping) or "logit" not in output:
        what = (
            f"a dict of {sorted(output)}" if isinstance(output, Mapping) else type(output).__name__
        )
        raise ConfigError(
            f"the network {type(model).__name__} returns {what}; expected a dict with 'logit', "
            "such as {'logit': q_values} of shape [batch, actions]"
        )
    return output  # type: ignore[return-value]


def gaussian(logit: Any) -> tuple[Tensor, Tensor]:
    """``mu`` and ``sigma``, by name or as a pair."""
    return (logit["mu"], logit["sigma"]) if isinstance(logit, Mapping) else tuple(logit)


def legal(output: dict[str, Any], obs: Any) -> dict[str, Any]:
    """A network's output with next to no probability for the actions that wrappers do not choose.

    Args:
        output: With ``logit``, a tensor ``[*, N]`` or a list with one for each of several choices;
            others, as those of Gaussians, stay as they are. A row may have no legal action, as
            where an episode has ended.
        obs: What the network saw; ``action_mask`` is looked for as `_DiscreteSampleWrapper` does.
    """
    logit, mask = output["logit"], _mask_of(output, obs)
    if mask is None or isinstance(logit, Mapping):
        return output
    if torch.is_tensor(logit):
        return {**output, "logit": logit.masked_fill(~_as_bool(mask, logit), MASKED)}
    pairs = zip(logit, _masks_of(mask, logit))
    return {**output, "logit": [p.masked_fill(~_as_bool(m, p), MASKED) for p, m in pairs]}


def _mask_of(output: Mapping[str, Any], obs: Any) -> Any:
    mask = output.get("action_mask")
    return obs.get("action_mask") if mask is None and isinstance(obs, Mapping) else mask


def _masks_of(mask: Any, logits: Any) -> Any:
    """The mask of each of several choices."""
    return [mask] * len(logits) if mask is None or torch.is_tensor(mask) else mask


def _masked(logit: Tensor, mask: Tensor) -> Tensor:
    legal = _as_bool(mask, logit)
    if not bool(legal.any(-1).all()):
        raise DataError(
            f"action_mask leaves no legal action in {int((~legal.any(-1)).sum())} of "
            f"{legal.any(-1).numel()} rows; every row needs at least one"
        )
    return logit.masked_fill(~legal, -torch.inf)


def _as_bool(mask: Any, logit: Tensor) -> Tensor:
    return torch.as_tensor(mask, device=logit.device) != 0


def _explore(action: Tensor, logit: Tensor, mask: Tensor | None, eps: Any) -> Tensor:
    if mask is None:
        uniform = torch.randint_like(action, logit.shape[-1])
    else:
        # Of random numbers each is the largest equally often.
        uniform = torch.rand_like(logit).masked_fill_(~_as_bool(mask, logit), -1).argmax(-1)
    if not isinstance(eps, float):
        eps = eps_per_row(eps, action)
    explore = torch.empty_like(action, dtype=torch.bool).bernoulli_(eps)
    return torch.where(explore, uniform, action)


def eps_per_row(eps: Any, action: Tensor) -> float | Tensor:
    """ε of each row, so that it goes with actions ``[B, *]``; a number is for all of them."""
    if isinstance(eps, int):
        return float(eps)
    values = list(eps.values()) if isinstance(eps, Mapping) else eps
    eps = torch.as_tensor(values, dtype=torch.float32, device=action.device)
    return eps.reshape(eps.shape + (1,) * (action.dim() - eps.dim()))


def refuse_nan(value: Tensor) -> Tensor:
    # A NaN makes the sum one. Infinities can too, so only then every value is looked at.
    total = value.sum().item()
    if total != total and bool(value.isnan().any()):
        _raise_nan(value)
    return value


def _raise_nan(value: Tensor) -> NoReturn:
    rows = value.isnan().flatten(1).any(1) if value.dim() > 1 else value.isnan()
    raise DataError(
        f"the policy's network gave NaN in {int(rows.sum())} of {rows.numel()} rows of its output "
        f"(shape {list(value.shape)}), so there is no action to take. Usual causes: NaN or "
        "infinity in the observation, or a training that diverged (lower learn.learning_rate, clip "
        "gradients)"
    )


class HybridEpsGreedySampleWrapper(HybridArgmaxSampleWrapper):
    """The same, but with probability ``eps`` any choice, with uniform arguments in [-1, 1].

    ``eps`` is a keyword of ``forward``: one number, or one for each row.
    """

    def forward(self, *args: Any, eps: Any, **kwargs: Any) -> dict[str, Any]:
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
        noise_kwargs: dict[str, Any] = {},
        noise_range: dict[str, Any] | None = None,
        action_range: dict[str, Any] | None = {"min": -1, "max": 1},
    ) -> None:
        super().__init__(model)
        self.noise_generator = create_noise_generator(noise_type, noise_kwargs)
        self.noise_range = noise_range
        self.action_range = action_range

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
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

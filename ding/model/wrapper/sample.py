"""Wrappers that turn a network's outputs into actions.

If a network returns NaN, no action is meaningful; these wrappers raise `DataError`. Samples come
from torch's global generator, so that a seed reproduces the actions.

For hybrid actions the network returns ``{'logit': {'action_type': [B, N], 'action_args': {'mu',
'sigma'}}}``, or, if the arguments are deterministic, ``{'logit': [B, N], 'action_args': [B, A]}``;
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
    """Sample from categorical distributions over the last dimension: ``[*, n]`` to int64 ``[*]``.

    Args:
        logit: Unnormalised log-probabilities.
        prob: Probabilities, used when ``logit`` is None; they need not sum to 1.
    """
    if logit is None:
        if prob is None:
            raise ValueError("sample_action: neither logit nor prob came; give one of them")
        logit = prob.log()
    # Gumbel-max: the argmax of log-probabilities with Gumbel noise is a sample, at a third of the
    # cost of softmax and multinomial, and not limited to matrices as the latter.
    exponential = torch.empty_like(logit).exponential_()
    # The noise must be finite, so that impossible actions (-inf) stay impossible.
    noise = exponential.clamp_min_(torch.finfo(logit.dtype).tiny).log_()
    return (refuse_nan(logit) - noise).argmax(-1)


def argmax_action(logit: Tensor) -> Tensor:
    """The best action of each row: ``[*, n]`` to int64 ``[*]``; the first of equal ones."""
    return refuse_nan(logit).argmax(-1)


class _DiscreteSampleWrapper(IModelWrapper):
    """Adds ``action`` (int64 ``[B]``, a list if ``logit`` is a list) to the model's output.

    An ``action_mask`` (shape of ``logit``, true or non-zero for legal actions) in the model's
    output, or else in an observation that is a mapping, restricts the action to legal ones.
    """

    #: Whether the action is sampled, with ``alpha``, instead of the best one; and whether with ε.
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
    """Adds the action with the highest logit."""


class MultinomialSampleWrapper(_DiscreteSampleWrapper):
    """Adds an action sampled with the probabilities ``softmax(logit / alpha)``; ``alpha`` is 1
    unless given to ``forward``."""

    _draws = True


class EpsGreedySampleWrapper(_DiscreteSampleWrapper):
    """Adds the best action or, with probability ``eps``, a uniformly random legal one.

    ``forward`` needs ``eps``: a float, or one per row (tensor, sequence, or a mapping's values).
    """

    _explores = True


class EpsGreedyMultinomialSampleWrapper(EpsGreedySampleWrapper):
    """As `EpsGreedySampleWrapper`, with a sample of the policy instead of the best action."""

    _draws = True


class _SampleWrapper(IModelWrapper):
    """Adds ``action``, computed from the model's output."""

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
    """Adds ``action``, a sample ``mu + sigma * noise``, float32 ``[B, action_shape]``.

    Gradients flow to ``mu`` and ``sigma``.
    """

    def _action(self, output: dict[str, Any]) -> Tensor:
        mu, sigma = gaussian(output["logit"])
        return refuse_nan(torch.addcmul(mu, sigma, torch.randn_like(mu)))


class HybridReparamMultinomialSampleWrapper(_SampleWrapper):
    """Adds ``action``: a choice sampled from the softmax, and Gaussian arguments."""

    def _action(self, output: dict[str, Any]) -> dict[str, Tensor]:
        mu, sigma = gaussian(output["logit"]["action_args"])
        choice = sample_action(output["logit"]["action_type"])
        drawn = torch.addcmul(mu, sigma, torch.randn_like(mu))
        return {"action_type": choice, "action_args": refuse_nan(drawn)}


class HybridDeterministicArgmaxSampleWrapper(_SampleWrapper):
    """Adds ``action``: the most probable choice, and the mean of its arguments."""

    def _action(self, output: dict[str, Any]) -> dict[str, Tensor]:
        mu, _ = gaussian(output["logit"]["action_args"])
        choice = argmax_action(output["logit"]["action_type"])
        return {"action_type": choice, "action_args": refuse_nan(mu)}


class HybridArgmaxSampleWrapper(_SampleWrapper):
    """Adds ``action``: the best choice, and the network's arguments."""

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
    """``mu`` and ``sigma``, from a mapping or a pair."""
    return (logit["mu"], logit["sigma"]) if isinstance(logit, Mapping) else tuple(logit)


def legal(output: dict[str, Any], obs: Any) -> dict[str, Any]:
    """Mask a network's logits so that illegal actions have practically no probability.

    Args:
        output: Contains ``logit``, a tensor ``[*, N]`` or a list with one per choice; other logits,
            such as those of Gaussians, stay unchanged. A row may have no legal action, as at the
            end of an episode.
        obs: The observation; ``action_mask`` is found as in `_DiscreteSampleWrapper`.
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
        # The argmax of uniform random numbers is uniformly distributed.
        uniform = torch.rand_like(logit).masked_fill_(~_as_bool(mask, logit), -1).argmax(-1)
    if not isinstance(eps, float):
        eps = eps_per_row(eps, action)
    explore = torch.empty_like(action, dtype=torch.bool).bernoulli_(eps)
    return torch.where(explore, uniform, action)


def eps_per_row(eps: Any, action: Tensor) -> float | Tensor:
    """ε of each row, shaped for broadcasting with actions ``[B, *]``; a number is for all rows."""
    if isinstance(eps, int):
        return float(eps)
    values = list(eps.values()) if isinstance(eps, Mapping) else eps
    eps = torch.as_tensor(values, dtype=torch.float32, device=action.device)
    return eps.reshape(eps.shape + (1,) * (action.dim() - eps.dim()))


def refuse_nan(value: Tensor) -> Tensor:
    # The sum is NaN if any value is; infinities can also cause it, so check every value then.
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
    """As the base class, but with probability ``eps`` a random choice, with arguments in [-1, 1].

    ``eps`` is a keyword argument of ``forward``: one number, or one per row.
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
    """Adds noise to the model's ``action`` and clips the result.

    Args:
        noise_type: A type of `ding.rl_utils.create_noise_generator`.
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

"""Base classes of policies that act by two network wrappers: an exploring and a greedy one."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ding.model import model_wrap
from ding.model.wrapper.sample import legal
from ding.policy._types import Arrays, Lengths, Obs, Output
from ding.policy.base_policy import Policy
from ding.policy.common_utils import nstep_train_columns
from ding.policy.modes import takes_indexed
from ding.utils.errors import check_one_of
from ding.utils.settings import at

#: Values of ``policy.priority_form``.
PRIORITY_FORMS = ("absolute", "squared")


class ActingPolicy(Policy):
    """Base of policies whose wrappers select actions from the network's output."""

    #: The wrappers (`ding.model.model_wrap`) of the collect and the eval mode.
    _explorer = "eps_greedy_sample"
    _chooser = "argmax_sample"
    #: Further arguments of the network's ``forward`` in the collect and eval modes.
    _collect_options: Mapping[str, Any] = {}
    _eval_options: Mapping[str, Any] = {}

    def _init_collect(self) -> None:
        self._unroll_len = self._get_unroll_len()
        self._collect_model = model_wrap(self._model, self._explorer)

    def _forward_collect_batch(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        """Actions and the matching ``_transition_outputs``."""
        output = self._collect_model.forward(obs, **self._collect_options, **kwargs)
        # Masked as in learning, which compares the stored logits with the network's new ones.
        return one_action(legal(output, obs) if "logit" in self._transition_outputs else output)

    def _init_eval(self) -> None:
        self._eval_model = model_wrap(self._model, self._chooser)

    def _forward_eval_batch(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        return one_action(self._eval_model.forward(obs, **self._eval_options))


class NStepPolicy(ActingPolicy):
    """Base of policies that learn from n-step transitions."""

    config = dict(
        # Prioritised replay: sampling probabilities depend on TD errors.
        priority=False,
        # Importance weights, which correct the bias of prioritised sampling (needs `priority`).
        priority_IS_weight=False,
        # Priority of a TD error: 'absolute' (Schaul et al. 2016) or 'squared'. 'squared' with the
        # buffer's `alpha` equals 'absolute' with `2 * alpha`. No effect on losses as priorities.
        priority_form="absolute",
        nstep=1,
        # For environments that end only by a time limit and do not report it.
        learn=dict(ignore_done=False),
        collect=dict(unroll_len=1),
    )

    _discount_key = "discount_factor"
    _gamma: float
    _nstep: int
    _priority_form = "absolute"

    def _set_horizon(self) -> None:
        """Set the attributes with which learn and collect mode compute targets."""
        self._gamma = at(self._cfg, self._discount_key)
        self._nstep = self._rewards_per_sample = self._cfg.nstep

    def _use_priority(self) -> None:
        super()._use_priority()
        self._priority_form = self._cfg.get("priority_form", "absolute")
        check_one_of("policy.priority_form", self._priority_form, PRIORITY_FORMS)

    def _init_collect(self) -> None:
        super()._init_collect()
        self._set_horizon()

    @takes_indexed
    def _get_train_columns(self, columns: Arrays, lengths: Lengths) -> Arrays:
        return nstep_train_columns(columns, lengths, self._nstep, self._gamma)


def priorities(squared_error: Tensor, form: str) -> Tensor:
    """Priorities of squared TD errors, of the same shape, without gradient.

    Args:
        form: One of `PRIORITY_FORMS`.
    """
    squared_error = squared_error.detach()
    return squared_error if form == "squared" else squared_error.sqrt()


def one_action(output: Mapping[str, Any]) -> Output:
    """Concatenate actions and logits that are lists, one entry per independent choice, to tensors.

    Other lists, which contain outputs of network parts, are dropped.
    """
    lists = {name: part for name, part in output.items() if isinstance(part, list | tuple)}
    joined = {name: part for name, part in output.items() if name not in lists}
    if "action" in lists:
        joined["action"] = torch.stack([part.reshape(-1) for part in lists["action"]], dim=-1)
    if "logit" in lists:
        joined["logit"] = torch.cat(list[Tensor](lists["logit"]), dim=-1)
    return joined

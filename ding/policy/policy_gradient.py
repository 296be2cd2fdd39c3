"""REINFORCE (Williams 1992), and the base class of policy gradient algorithms."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from ding.data import tree_map
from ding.model.wrapper.sample import legal
from ding.policy._types import Arrays, Lengths, Log, Losses, Output, Rollout, Samples
from ding.policy.acting import ActingPolicy, one_action
from ding.policy.checks import floats
from ding.policy.joint import joint_counts, normalised
from ding.policy.learning import weighted_sum
from ding.policy.networks import stochastic_actor
from ding.rl_utils.gae import gae_columns
from ding.rl_utils.log_prob_utils import log_prob_and_entropy
from ding.rl_utils.nstep import weighted_mean
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY

#: Wrappers that sample an action from the policy, by action space; and that take its best one.
DRAWN = {
    "discrete": "multinomial_sample",
    "continuous": "reparam_sample",
    "hybrid": "hybrid_reparam_multinomial_sample",
}
BEST = {
    "discrete": "argmax_sample",
    "continuous": "deterministic_sample",
    "hybrid": "hybrid_deterministic_argmax_sample",
}
#: Columns with more elements per sample, such as images, are not copied whole for a pass. Smaller
#: ones are: indexing rows per minibatch costs more than the rest of a small network's update.
_LARGE_ROW = 1024


class PolicyGradient(ActingPolicy):
    """Base of policy gradient algorithms.

    If ``model.action_shape`` is a list of K sizes, an action consists of K independent choices,
    int64 ``[B, K]``; ``logit`` in samples concatenates the logits of all choices. With
    ``action_space='hybrid'`` an action has a choice and arguments: ``{'action_type': int64 [B],
    'action_args': float32 [B, A]}``.

    An algorithm's ``_learn`` sets ``adv`` of a batch, the advantages, and calls ``_update`` for
    each of its ``_minibatches``. It defines ``_losses`` and sets up ``_optimizer``.
    """

    config = dict(
        on_policy=True,
        # 'discrete' or 'continuous'; 'hybrid' if the algorithm supports it.
        action_space="discrete",
        learn=dict(
            batch_size=64,
            learning_rate=1e-3,
            entropy_weight=0.01,
            # Normalise the advantages (or returns) of each minibatch to mean 0 and deviation 1, by
            # n - 1.
            adv_norm=False,
            ignore_done=False,
        ),
        collect=dict(unroll_len=1, discount_factor=0.99),
    )

    _discount_key = "collect.discount_factor"
    _optimizer: Any
    _action_spaces = {"discrete": "discrete", "continuous": "continuous"}
    _transition_outputs: tuple[str, ...] = ("logit",)
    _logged: tuple[str, ...] = (
        *("cur_lr", "total_loss", "policy_loss", "entropy_loss"),
        *("adv_max", "adv_mean", "adv_abs_max"),
    )
    _minibatch_columns: tuple[str, ...] = (
        *("obs", "action", "logit", "value", "adv", "return", "weight"),
    )
    #: Arguments of the model's ``forward`` in updates.
    _learn_options: Mapping[str, Any] = {}

    def _batch(self, data: Samples) -> Rollout:
        return cast(Rollout, one_action(super()._batch(data)))

    def _minibatches(self, batch: Rollout) -> Iterator[Rollout]:
        """Shuffled parts of nearly equal size. On average over learners they have at most
        ``learn.batch_size`` samples, unless one learner has fewer samples than parts."""
        columns = {name: column for name, column in batch.items() if column is not None}
        used = {name: columns[name] for name in self._minibatch_columns if name in columns}
        places = self._shuffled_parts(len(batch["adv"]))
        order = torch.cat(places)

        def parts(column: Tensor) -> Iterator[Tensor]:
            if column[0].numel() > _LARGE_ROW:
                return (column[index] for index in places)
            return iter(column[order].split([len(index) for index in places]))

        columns = tree_map(parts, used)
        for _ in places:
            yield tree_map(next, columns)

    def _shuffled_parts(self, count: int) -> tuple[Tensor, ...]:
        """Shuffled indices below ``count``, in the same number of parts on all learners."""
        order = torch.randperm(count).to(self._device)
        # Learners must synchronise equally often, however much data each has; no part may be
        # empty.
        counts = joint_counts(order, self._joint)
        number = math.ceil(sum(counts) / len(counts) / self._cfg.learn.batch_size)
        # Of nearly equal size: a remainder of a few samples would make a step as large as the
        # others.
        return order.tensor_split(min(number, *counts))

    def _update(self, batch: Rollout) -> Log:
        """One step on a minibatch with ``adv`` ``[B]``; returns its log."""
        output = legal(self._trained(batch["obs"], **self._learn_options), batch["obs"])
        adv = batch["adv"]
        if self._cfg.learn.adv_norm:
            adv = normalised(adv, self._joint)
        losses, facts = self._losses(batch, output, adv)
        total_loss = weighted_sum(losses, self._cfg.learn)
        log = self._log_values({"total_loss": total_loss, **losses}, output, adv)
        self._descend(total_loss, batch, self._optimizer, self._trained)
        return {"cur_lr": self._optimizer.param_groups[0]["lr"], **log, **facts}

    @property
    def _trained(self) -> torch.nn.Module:
        """The network, or the part of it, that an update trains."""
        return self._model

    def _losses(self, batch: Rollout, output: Output, adv: Tensor) -> Losses:
        """Losses by name, which `weighted_sum` combines, and further numbers to log.

        Args:
            output: The network's current outputs: ``logit``, and ``value`` if there is a critic.
        """
        raise NotImplementedError

    def _log_values(
        self, losses: dict[str, Tensor], output: Output, adv: Tensor
    ) -> dict[str, float]:
        values = {**losses, "adv_max": adv.max(), "adv_mean": adv.mean()}
        values["adv_abs_max"] = adv.abs().max()
        if "value" in output:
            value = output["value"].detach()
            values |= {"value_mean": value.mean(), "value_max": value.max()}
        if self._cfg.action_space != "discrete":
            logit = output["logit"]
            gaussian = logit["action_args"] if self._cfg.action_space == "hybrid" else logit
            values["mu_mean"] = gaussian["mu"].detach().mean()
            values["sigma_mean"] = gaussian["sigma"].detach().mean()
        return floats(values)

    def _monitor_vars_learn(self) -> list[str]:
        gaussian = [] if self._cfg.action_space == "discrete" else ["mu_mean", "sigma_mean"]
        return [*super()._monitor_vars_learn(), *gaussian]

    def _init_collect(self) -> None:
        super()._init_collect()
        self._gamma = self._cfg.collect.discount_factor
        # Random starts keep step ids of several policies in one batch far apart.
        self._next_step_id = int(np.random.randint(1 << 22)) << 40

    @property
    def _collect_options(self) -> Mapping[str, Any]:  # type: ignore[override]
        return self._learn_options

    @property
    def _explorer(self) -> str:  # type: ignore[override]
        return DRAWN[self._cfg.action_space]

    def _step_ids(self, lengths: np.ndarray) -> np.ndarray:
        """Ids that are consecutive only within a trajectory, int64 ``[N]``."""
        number = np.arange(lengths.sum()) + np.repeat(np.arange(len(lengths)), lengths)
        number += self._next_step_id
        # Skip one number, or the next trajectory would continue this one.
        self._next_step_id = int(number[-1]) + 2
        return number

    @property
    def _chooser(self) -> str:  # type: ignore[override]
        greedy = self._cfg.get("deterministic_eval", True)
        return (BEST if greedy else DRAWN)[self._cfg.action_space]


class MonteCarloPolicyGradient(PolicyGradient):
    """Policy gradient with Monte Carlo returns; needs whole episodes.

    Without a critic, a cut trajectory cannot be bootstrapped. Collectors that take ``n_sample``
    therefore run all episodes that have begun to their end, and return all samples, ``n_sample`` or
    more. Rewards after a time limit count as 0.
    """

    #: Set n_episode, and collect with the collector 'episode'.
    config = dict(collect=dict(collector=dict(get_train_sample=True)))
    _refused: Mapping[str, str] = {"priority": "remove the key"}

    _network = "pg"

    def _settings_without_effect(self) -> Mapping[str, str]:
        instead = {"learn.ignore_done": "returns are those of whole episodes"}
        return {**super()._settings_without_effect(), **instead}

    def _get_train_columns(self, columns: Arrays, lengths: Lengths) -> Arrays:
        none = np.zeros(len(columns["done"]), np.float32)
        # Without values and with λ = 1, advantages equal returns.
        returns = gae_columns(none, none, columns["reward"], none, lengths, self._gamma, 1.0)
        return {**columns, "reward": columns["reward"][:, None], "return": returns}

    def _get_traj_len_inf(self) -> bool:
        return True


@POLICY_REGISTRY.register("pg")
class PGPolicy(MonteCarloPolicyGradient):
    """REINFORCE (Williams 1992): policy gradient with the discounted returns of whole episodes.

    Each update is one pass over the collected episodes, in minibatches of ``learn.batch_size``.
    """

    paper = "Williams 1992"
    actions = ("discrete", "multi-discrete", "continuous")
    networks = stochastic_actor("discrete", "continuous", modes=("",))

    config = dict(
        type="pg",
        # Evaluate with the most probable action instead of sampling.
        deterministic_eval=True,
        # Maximum gradient norm.
        learn=dict(grad_norm=5),
    )
    _transition_outputs = ()
    _logged: tuple[str, ...] = ("return_mean", "return_abs_max")
    _logs_grad_norm = True

    def _init_learn(self) -> None:
        cfg = self._cfg.learn
        self._optimizer = Adam(
            self._model.parameters(),
            lr=cfg.learning_rate,
            grad_clip_type="clip_norm",
            clip_value=cfg.grad_norm,
        )

    def _learn(self, batch: Rollout) -> list[Log]:
        """One pass; returns one log per minibatch."""
        batch["adv"] = batch["return"]
        return [self._update(part) for part in self._minibatches(batch)]

    def _losses(self, batch: Rollout, output: Output, adv: Tensor) -> Losses:
        log_prob, entropy = log_prob_and_entropy(output["logit"], batch["action"])
        weight = batch.get("weight")
        losses = {
            "policy_loss": -weighted_mean(log_prob * adv, weight),
            "entropy_loss": weighted_mean(entropy, weight),
        }
        returns = batch["return"]
        return losses, {
            "return_mean": returns.mean().item(),
            "return_abs_max": returns.abs().max().item(),
        }

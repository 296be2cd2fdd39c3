"""REINFORCE (Williams 1992): what was followed by a high return is done more often."""

import numpy as np
from torch import Tensor

from ding.policy._types import Arrays, Lengths, Log, Losses, Output, Rollout
from ding.policy.networks import stochastic_actor
from ding.policy.policy_gradient import PolicyGradient
from ding.rl_utils._log_prob import log_prob_and_entropy
from ding.rl_utils.gae import gae_columns
from ding.rl_utils.nstep import weighted_mean
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY


class MonteCarloPolicyGradient(PolicyGradient):
    """Judges an action by the discounted return that followed it, and needs whole episodes.

    Without a critic there is nothing to bootstrap from where a trajectory is cut. So collectors
    that take ``n_sample`` run the episodes that they have begun to their ends as well, and return
    all of their samples, ``n_sample`` or more. What would have followed a time limit counts as
    nothing.
    """

    #: Give n_episode, and collect with the collector 'episode'.
    config = dict(collect=dict(collector=dict(get_train_sample=True)))

    _network = "pg"

    def _get_train_columns(self, columns: Arrays, lengths: Lengths) -> Arrays:
        none = np.zeros(len(columns["done"]), np.float32)
        # Without values, and with λ = 1, advantages are returns.
        returns = gae_columns(none, none, columns["reward"], none, lengths, self._gamma, 1.0)
        return {**columns, "reward": columns["reward"][:, None], "return": returns}

    def _get_traj_len_inf(self) -> bool:
        return True


@POLICY_REGISTRY.register("pg")
class PGPolicy(MonteCarloPolicyGradient):
    """One pass over whole episodes, in minibatches of ``learn.batch_size``."""

    paper = "Williams 1992"
    actions = ("discrete", "multi-discrete", "continuous")
    networks = stochastic_actor("discrete", "continuous", modes=("",))

    config = dict(
        type="pg",
        # Evaluate with the likeliest action, not with draws.
        deterministic_eval=True,
        # Longest gradient.
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
        """One pass; returns one log for each minibatch."""
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

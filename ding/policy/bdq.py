"""Branching Q-learning for many action dimensions (Tavakoli et al. 2018, BDQ)."""

from torch import Tensor

from ding.policy._types import Loss, Output, Steps
from ding.policy.dqn import DQNPolicy
from ding.policy.networks import Call, Shape
from ding.rl_utils import nstep_return, nstep_return_data
from ding.rl_utils.nstep import of_action, weighted_mean
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("bdq")
class BDQPolicy(DQNPolicy):
    """Double DQN with one advantage for each dimension of the action and one value for all.

    All dimensions have the same target, with the mean of their next values (the paper's equation
    4). A sample's priority is the sum of the dimensions' absolute errors (section "Prioritized
    Replay"), or with ``priority_form='squared'`` the mean of their squares. Actions are int64
    ``[model.num_branches]``, each below ``model.action_bins_per_branch``; the environment wrapper
    `discretize_action` makes such of continuous ones.
    """

    paper = "Tavakoli et al. 2018"
    actions = ("discrete", "multi-discrete")
    networks = {"discrete": (Call({"logit": Shape("B D K")}),)}
    config = dict(type="bdq")

    _network = "bdq"

    def _branch_loss(self, batch: Steps, action: Tensor, output: Output, target: Output) -> Loss:
        # A single branch's actions come as [B].
        q = of_action(output["logit"], action.view(len(action), -1))  # [B, D]
        next_value = of_action(target["logit"], target["next_action"]).mean(-1)
        wanted = nstep_return(
            nstep_return_data(batch["reward"], next_value, batch["done"]),
            self._gamma,
            self._nstep,
            batch.get("value_gamma"),
        )
        error = q - wanted.unsqueeze(-1)
        mean_square = error.square().mean(-1)
        loss = weighted_mean(mean_square, batch["weight"])
        is_squared = self._priority_form == "squared"
        return Loss(loss, (mean_square if is_squared else error.abs().sum(-1)).detach())

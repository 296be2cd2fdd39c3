"""QTRAN (Son et al. 2019): agents' values whose sum agrees with a joint value where it matters."""

from torch import Tensor

from ding.model.template.agents import best_actions
from ding.policy._types import LoggedLoss, Output, Sequences
from ding.policy.qmix import QMIXPolicy
from ding.policy.team_policy import during
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("qtran")
class QTRANPolicy(QMIXPolicy):
    """QTRAN-base: a joint value learns from returns, and agents' values from the joint value.

    With the value of a state added, the sum of agents' values is to be the joint value for the
    agents' best actions (``opt``), and no less than it for all others (``nopt``).
    """

    paper = "Son et al. 2019"
    actions = ("multi-agent",)
    config = dict(
        type="qtran",
        learn=dict(
            # Weights of the three losses.
            td_weight=1.0,
            opt_weight=1.0,
            nopt_min_weight=1.0,
            clip_value=1.5,
        ),
    )

    _learned_value = _target_value = "joint_q"

    _network = "qtran"
    _logged: tuple[str, ...] = ("td_loss", "opt_loss", "nopt_loss")

    def _loss(
        self, batch: Sequences, online: Output, judged: Output, target: Tensor, error: Tensor
    ) -> LoggedLoss:
        cfg = self._cfg.learn
        output, obs = during(online), during(batch["obs"])
        best_action = best_actions(output["logit"], obs.get("action_mask"))
        best = self._model.judge(output, obs, best_action)
        # The joint value is what the others follow, so these two leave it as it is.
        opt = best["total_q"] - best["joint_q"].detach() + best["value"]
        nopt = (judged["total_q"] - judged["joint_q"].detach() + judged["value"]).clamp(max=0)
        td_loss, opt_loss, nopt_loss = (self._mean(e.pow(2), batch) for e in (error, opt, nopt))
        loss = cfg.td_weight * td_loss + cfg.opt_weight * opt_loss
        log = {"td_loss": td_loss, "opt_loss": opt_loss, "nopt_loss": nopt_loss}
        return loss + cfg.nopt_min_weight * nopt_loss, log

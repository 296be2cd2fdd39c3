"""CollaQ (Zhang et al. 2020): values of one's own, and of one's part in a team."""

from torch import Tensor

from ding.policy._types import LoggedLoss, Output, Sequences
from ding.policy.qmix import QMIXPolicy
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("collaq")
class CollaQPolicy(QMIXPolicy):
    """QMIX with agents whose values have a part for others, which is to be zero without them.

    The weight of that, the paper's multi-agent reward attribution, is
    ``learn.collaq_loss_weight``. Observations have ``agent_alone_state`` and
    ``agent_alone_padding_state`` besides.
    """

    paper = "Zhang et al. 2020"
    actions = ("multi-agent",)
    config = dict(type="collaq", learn=dict(collaq_loss_weight=1.0))

    _needed_parts = (
        *QMIXPolicy._needed_parts,
        *("agent_alone_state", "agent_alone_padding_state"),
    )

    _network = "collaq"
    _logged: tuple[str, ...] = ("td_loss", "colla_loss")

    def _loss(
        self, batch: Sequences, online: Output, judged: Output, target: Tensor, error: Tensor
    ) -> LoggedLoss:
        td_loss = self._mean(error.pow(2), batch)
        attribution = self._mean(judged["nobody_q"].pow(2).mean(-1), batch)
        loss = td_loss + self._cfg.learn.collaq_loss_weight * attribution
        return loss, {"td_loss": td_loss, "colla_loss": attribution}

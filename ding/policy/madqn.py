"""Independent Q-learners (Tan 1993) with memories, n-step returns and a teacher that sees more."""

from torch import Tensor

from ding.policy._types import LoggedLoss, Output, Sequences
from ding.policy.qmix import QMIXPolicy
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("madqn")
class MADQNPolicy(QMIXPolicy):
    """Each agent learns the team's return from its own action, without credit through a mixer.

    Values of a second network, which may see the global state, stand in the targets of both
    (``model.global_cooperation``). Targets take ``nstep`` rewards. With ``model.mixer=True`` both
    values are mixed as in QMIX.
    """

    paper = "Tan 1993"
    actions = ("multi-agent",)
    config = dict(
        type="madqn",
        nstep=3,
        learn=dict(weight_decay=1e-5),
        collect=dict(n_episode=32),
        other=dict(replay_buffer=dict(max_reuse=1e9, max_staleness=1e9)),
    )

    _target_value = "team_q"

    _network = "madqn"
    _logged: tuple[str, ...] = ("current_loss", "cooperation_loss")

    def _loss(
        self, batch: Sequences, online: Output, judged: Output, target: Tensor, error: Tensor
    ) -> LoggedLoss:
        team_error = judged["team_q"] - target
        own_loss, team_loss = (self._mean(_of_team(e.pow(2)), batch) for e in (error, team_error))
        return own_loss + team_loss, {"current_loss": own_loss, "cooperation_loss": team_loss}


def _of_team(per_agent: Tensor) -> Tensor:
    """The mean over agents, ``[T, B]``, of what may be one value for each."""
    return per_agent if per_agent.dim() == 2 else per_agent.mean(-1)

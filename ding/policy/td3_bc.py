"""TD3 with behaviour cloning, for offline data (Fujimoto and Gu 2021)."""

from ding.policy._types import LoggedLoss, Steps
from ding.policy.joint import joint_mean
from ding.policy.td3 import TD3Policy
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("td3_bc")
class TD3BCPolicy(TD3Policy):
    """TD3 whose actor also stays near the data's actions.

    The critic's part of the actor's loss is scaled by ``learn.alpha`` over the mean absolute value
    of Q, so that both parts keep their proportion whatever the rewards are.
    """

    paper = "Fujimoto and Gu 2021"
    actions = ("continuous",)
    networks = {"continuous": TD3Policy.networks["continuous"]}
    _action_spaces = {"continuous": "regression"}
    pipeline = "serial_offline"
    _logged: tuple[str, ...] = ("bc_loss",)
    config = dict(
        type="td3_bc",
        model=dict(
            action_space="regression", actor_head_hidden_size=256, critic_head_hidden_size=256
        ),
        learn=dict(alpha=2.5),
        eval=dict(evaluator=dict(eval_freq=5000)),
        other=dict(replay_buffer=dict(replay_buffer_size=1000000)),
    )

    def _actor_loss(self, batch: Steps) -> LoggedLoss:
        action = self._model(batch["obs"], mode="compute_actor")["action"]
        q_value = self._judge(self._model, batch["obs"], action)[0]
        scale = self._cfg.learn.alpha / joint_mean(q_value.abs(), self._joint).clamp(min=1e-8)
        bc_loss = (action - batch["action"]).pow(2).mean()
        return bc_loss - scale * q_value.mean(), {"bc_loss": bc_loss.item()}

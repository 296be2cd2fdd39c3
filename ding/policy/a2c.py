"""Advantage actor-critic (Mnih et al. 2016), synchronous."""

from torch import Tensor

from ding.policy._types import Log, Losses, Output, Rollout
from ding.policy.advantage_actor_critic import AdvantageActorCritic
from ding.rl_utils import a2c_data, a2c_error
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("a2c")
class A2CPolicy(AdvantageActorCritic):
    """One pass over what was collected, in minibatches of ``learn.batch_size``."""

    paper = "Mnih et al. 2016"
    actions: tuple[str, ...] = ("discrete", "multi-discrete", "continuous", "multi-agent")
    config = dict(
        type="a2c",
        learn=dict(
            update_per_collect=1,
            betas=(0.9, 0.999),
            eps=1e-8,
            # Longest gradient.
            grad_norm=0.5,
        ),
        collect=dict(discount_factor=0.9),
    )

    _logs_grad_norm = True
    _silent_keys = ("learn.discount_factor", "learn.normalize_advantage")

    def _init_learn(self) -> None:
        cfg = self._cfg.learn
        self._optimizer = Adam(
            self._model.parameters(),
            lr=cfg.learning_rate,
            betas=tuple(cfg.betas),
            eps=cfg.eps,
            grad_clip_type="clip_norm",
            clip_value=cfg.grad_norm,
        )
        self._init_returns()

    def _learn(self, batch: Rollout) -> Log:
        """One pass; returns one log, the means of the minibatches' ones."""
        logs = super()._learn(batch)
        return {name: sum(log[name] for log in logs) / len(logs) for name in logs[0]}

    def _losses(self, batch: Rollout, output: Output, adv: Tensor) -> Losses:
        data = a2c_data(
            output["logit"],
            batch["action"],
            output["value"],
            adv,
            batch["return"],
            batch.get("weight"),
        )
        return a2c_error(data)._asdict(), {}

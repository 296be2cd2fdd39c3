"""Distributional Q-learning on quantiles (Dabney et al. 2018, QR-DQN)."""

from torch import Tensor

from ding.policy._types import Loss, Output, Steps
from ding.policy.dqn import DQNPolicy
from ding.policy.networks import CHOICES, Call, Shape
from ding.rl_utils import qrdqn_nstep_td_data, qrdqn_nstep_td_error
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError


@POLICY_REGISTRY.register("qrdqn")
class QRDQNPolicy(DQNPolicy):
    """Learns the returns at ``model.num_quantiles`` equal steps of probability.

    The online network chooses the next action. A sample's priority is its quantile Huber loss.
    """

    paper = "Dabney et al. 2018a"
    networks = {"discrete": (Call({"logit": CHOICES, "q": Shape("B N Q"), "tau": Shape("B Q 1")}),)}
    config = dict(
        type="qrdqn",
        # Another place of `learn.kappa`; counts if it is given.
        kappa=None,
        # Up to this error the loss is quadratic.
        learn=dict(kappa=1.0),
    )

    _network = "qrdqn"

    def _init_learn(self) -> None:
        super()._init_learn()
        own = self._cfg.get("kappa")
        self._kappa = float(self._cfg.learn.kappa if own is None else own)
        if not self._kappa > 0:
            raise ConfigError(f"policy.learn.kappa is {self._kappa}; it must be > 0")

    def _branch_loss(self, batch: Steps, action: Tensor, output: Output, target: Output) -> Loss:
        values = output["q"], target["q"], action, target["next_action"]
        sample = batch["reward"], batch["done"], output["tau"], batch["weight"]
        loss, error = qrdqn_nstep_td_error(
            qrdqn_nstep_td_data(*values, *sample),
            self._gamma,
            self._nstep,
            batch.get("value_gamma"),
            self._kappa,
        )
        return Loss(loss, error.detach())

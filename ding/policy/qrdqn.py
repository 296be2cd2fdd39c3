"""Distributional Q-learning on quantiles: QR-DQN, IQN (Dabney et al. 2018) and FQF."""

from collections.abc import Mapping

import torch
from torch import Tensor

from ding.policy._types import Log, Loss, Output, Steps
from ding.policy.dqn import DQNPolicy, branches
from ding.policy.networks import CHOICES, NUMBER, Call, Shape
from ding.rl_utils import qrdqn_nstep_td_data, qrdqn_nstep_td_error
from ding.torch_utils import Adam, RMSprop
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError


@POLICY_REGISTRY.register("qrdqn")
class QRDQNPolicy(DQNPolicy):
    """Quantile Regression DQN (Dabney et al. 2018a): learns quantiles of the return distribution.

    The quantiles are those of ``model.num_quantiles`` equal steps of probability. The online
    network chooses the next action. The priority of a sample is its quantile Huber loss.
    """

    paper = "Dabney et al. 2018a"
    networks = {"discrete": (Call({"logit": CHOICES, "q": Shape("B N Q"), "tau": Shape("B Q 1")}),)}
    config = dict(
        type="qrdqn",
        # Alternative key for `learn.kappa`, used if set.
        kappa=None,
        # The loss is quadratic up to this error.
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


@POLICY_REGISTRY.register("iqn")
class IQNPolicy(QRDQNPolicy):
    """Implicit Quantile Network (Dabney et al. 2018b): QR-DQN at randomly drawn quantile fractions.

    Each update draws ``model.num_quantiles`` fractions for the prediction and as many for the
    target. Acting uses the midpoints of equal steps, so that the same observation gives the same
    values.

    Example:

        >>> from ding.policy import IQNPolicy
        >>> cfg = IQNPolicy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2)
        >>> learn = IQNPolicy(cfg).learn_mode.forward  # learn(samples) returns the log
    """

    paper = "Dabney et al. 2018b"
    config = dict(type="iqn")

    _network = "iqn"


@POLICY_REGISTRY.register("fqf")
class FQFPolicy(QRDQNPolicy):
    """Fully parametrised Quantile Function (Yang et al. 2019): QR-DQN at learned fractions.

    The network proposes ``model.num_quantiles`` fractions for each state. They follow the gradient
    of the 1-Wasserstein distance between the quantile function and its approximation by steps (the
    paper's proposition 1), with a separate optimiser; ``learn.ent_coef`` weighs the entropy that
    keeps them apart.
    """

    paper = "Yang et al. 2019"
    networks = {
        "discrete": (
            Call(
                {
                    "logit": CHOICES,
                    "q": Shape("B N Q"),
                    "tau": Shape("B Q 1"),
                    "fractions": Shape("B Q+1"),
                    "entropy": NUMBER,
                }
            ),
        )
    }
    config = dict(
        type="fqf",
        learn=dict(
            # Learning rate of the fraction proposals; all other parts use the second one.
            learning_rate_fraction=2.5e-9,
            learning_rate_quantile=5e-5,
            ent_coef=0,
        ),
    )

    _network = "fqf"

    _learned = {**QRDQNPolicy._learned, "optimizer_fraction": "_fraction_optimizer"}
    _old_optimizers = {
        "optimizer": ("optimizer_quantile_loss", ("head.Q", "head.fqf_fc", "encoder")),
        "optimizer_fraction": ("optimizer_fraction_loss", ("head.quantiles_proposal",)),
    }
    _logged: tuple[str, ...] = ("cur_lr_fraction", "fraction_loss", "quantile_loss")
    _log_names = {
        "cur_lr": "cur_lr_quantile_loss",
        "cur_lr_fraction": "cur_lr_fraction_loss",
        "q_value": "logit",
    }

    def _settings_without_effect(self) -> Mapping[str, str]:
        instead = {"learn.learning_rate": "set policy.learn.learning_rate_quantile"}
        return {**super()._settings_without_effect(), **instead}

    def _init_learn(self) -> None:
        super()._init_learn()
        learn = self._cfg.learn
        named = list(self._model.named_parameters())
        proposals = [p for name, p in named if "quantiles_proposal" in name]
        if not proposals:
            raise ConfigError(
                f"{type(self._model).__name__} has no layer quantiles_proposal: FQF needs a "
                "network like ding.model.FQF"
            )
        others = [p for name, p in named if "quantiles_proposal" not in name]
        self._optimizer = Adam(others, lr=learn.learning_rate_quantile)
        # The paper's, for which its tiny learning rate is meant.
        lr = learn.learning_rate_fraction
        self._fraction_optimizer = RMSprop(proposals, lr=lr, alpha=0.95, eps=1e-5)

    def _learn(self, batch: Steps) -> Log:
        log = super()._learn(batch)
        log["cur_lr_fraction"] = self._fraction_optimizer.param_groups[0]["lr"]
        log["quantile_loss"] = log["total_loss"] - log["fraction_loss"]
        return log

    def _value_loss(self, batch: Steps, output: Output, target: Output) -> Loss:
        loss, priority, _ = super()._value_loss(batch, output, target)
        if isinstance(output["logit"], list):
            parts = zip(branches(output), batch["action"].unbind(1))
            fraction_loss = torch.stack([self._fraction_loss(*part) for part in parts]).mean()
        else:
            fraction_loss = self._fraction_loss(output, batch["action"])
        # The two losses share no parameters, so one backward pass serves both.
        return Loss(loss + fraction_loss, priority, {"fraction_loss": fraction_loss.detach()})

    def _fraction_loss(self, output: Output, action: Tensor) -> Tensor:
        """A loss whose gradient with respect to the fractions is that of the distance."""
        row = torch.arange(len(action), device=action.device)
        at_ends = output["q_fractions"][row, action]  # [B, Q - 1]
        # The distance trains only the fractions (proposition 1): quantiles have a separate loss.
        at_middles = output["q"].detach()[row, action]  # [B, Q]
        gradient = 2 * at_ends - at_middles[:, 1:] - at_middles[:, :-1]
        distance = (gradient * output["fractions"][:, 1:-1]).sum(1)
        return (distance - self._cfg.learn.ent_coef * output["entropy"]).mean()

    def _update(self, loss: Tensor, batch: Steps) -> float:
        # Its gradients come from the base class's backward pass.
        self._fraction_optimizer.zero_grad()
        value = super()._update(loss, batch)
        self._fraction_optimizer.step()
        return value

"""Parametrised deep Q-networks (Xiong et al. 2018)."""

from typing import Any

import torch
from easydict import EasyDict

from ding.model import model_wrap
from ding.policy._types import Eps, Log, Network, Obs, Output, Steps
from ding.policy.acting import NStepPolicy, priorities
from ding.policy.checks import floats
from ding.policy.learning import follower
from ding.policy.networks import CHOICES, OBS, VECTOR, Call
from ding.rl_utils import q_nstep_td_data, q_nstep_td_error
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("pdqn")
class PDQNPolicy(NStepPolicy):
    """Parametrised Deep Q-Network (Xiong et al. 2018) for hybrid actions.

    One network proposes the best arguments for each choice, another one computes the Q-values of
    all choices with these arguments. Arguments are in ``[-1, 1]``: set ``env.act_scale`` if the
    environment's range differs. Exploration is the ε of ``other.eps`` (uniform choice and
    arguments) and Gaussian noise with deviation ``collect.noise_sigma`` on the arguments. With
    ``model.multi_pass`` a value depends only on the arguments of that choice (MP-DQN, Bester et
    al. 2019).
    """

    paper = "Xiong et al. 2018"
    actions = ("hybrid",)
    networks = {
        "hybrid": (
            Call({"action_args": VECTOR}, "compute_continuous"),
            Call({"logit": CHOICES}, "compute_discrete", {"state": OBS, "action_args": VECTOR}),
        )
    }
    network_parts: tuple[str, ...] = ("dis_encoder", "dis_head", "cont_encoder", "cont_head")
    config = dict(
        type="pdqn",
        discount_factor=0.97,
        learn=dict(
            update_per_collect=3,
            batch_size=64,
            # Learning rates of the Q-network and the argument network; None: `learning_rate`.
            learning_rate=0.001,
            learning_rate_dis=None,
            learning_rate_cont=None,
            # Length of a cycle of updates. The argument network is updated only in the second half
            # of each cycle, so that the values learn first; with 1 it is updated every time.
            update_circle=1,
            # Update rate of the target network.
            target_theta=0.005,
        ),
        collect=dict(noise_sigma=0.1),
        other=dict(
            eps=dict(type="exp", start=0.95, end=0.1, decay=10000),
            replay_buffer=dict(replay_buffer_size=10000),
        ),
    )

    _explorer, _chooser = "hybrid_eps_greedy_sample", "hybrid_argmax_sample"
    _collect_options = _eval_options = {"mode": "compute_discrete"}
    _model: Network
    _saves_target = True
    _learned = {
        "optimizer_dis": "_optimizer_dis",
        "optimizer_cont": "_optimizer_cont",
        "update_count": "_update_count",
    }

    _network = "pdqn"

    _logged: tuple[str, ...] = (
        *("cur_lr_dis", "cur_lr_cont", "total_loss", "dis_loss", "cont_loss", "q_value"),
        *("target_q_value", "reward"),
    )
    _log_names = {
        "cur_lr_dis": "cur_lr",
        "dis_loss": "q_loss",
        "cont_loss": "continuous_loss",
    }

    def _init_learn(self) -> None:
        cfg = self._cfg.learn
        self._use_priority()
        self._set_horizon()
        values, arguments = (
            [
                parameter
                for name in (f"{part}_encoder", f"{part}_head")
                for parameter in getattr(self._model, name).parameters()
            ]
            for part in ("dis", "cont")
        )
        self._value_parameters, self._argument_parameters = values, arguments
        self._optimizer_dis = Adam(values, lr=_rate(cfg, "learning_rate_dis"))
        self._optimizer_cont = Adam(arguments, lr=_rate(cfg, "learning_rate_cont"))
        self._target_model = follower(self._model, cfg.target_theta)
        self._update_count = 0

    def _learn(self, batch: Steps) -> Log:
        """One update of the values and, in the second half of a cycle, of the arguments.

        The ``priority`` of a sample is its TD error, see ``priority_form``.
        """
        log = self._update_values(batch)
        circle = max(self._cfg.learn.update_circle or 1, 1)
        if self._update_count % circle >= circle // 2:
            log.update(self._update_arguments(batch))
        self._update_count += 1
        self._target_model.update(self._model)
        return log

    def _update_values(self, batch: Steps) -> Log:
        action = batch["action"]
        q_value = self._values(self._model, batch["obs"], action["action_args"])
        with torch.no_grad():
            obs = batch["next_obs"]
            arguments = self._target_model.forward(obs, mode="compute_continuous")["action_args"]
            target = self._values(self._target_model, obs, arguments)
        sample = batch["reward"], batch["done"], batch["weight"]
        data = q_nstep_td_data(q_value, target, action["action_type"], target.argmax(-1), *sample)
        loss, error = q_nstep_td_error(
            data, self._gamma, self._nstep, value_gamma=batch.get("value_gamma")
        )
        loss_value = self._descend(
            loss, batch, self._optimizer_dis, parameters=self._value_parameters
        )
        return {
            "cur_lr_dis": self._optimizer_dis.param_groups[0]["lr"],
            "total_loss": loss_value,
            "dis_loss": loss_value,
            "reward": batch["reward"].mean().item(),
            **floats({"q_value": q_value.mean(), "target_q_value": target.mean()}),
            "priority": priorities(error, self._priority_form),
        }

    def _update_arguments(self, batch: Steps) -> Log:
        """Maximise the sum of all choices' values; each choice has separate arguments."""
        arguments = self._model(batch["obs"], mode="compute_continuous")["action_args"]
        loss = -self._values(self._model, batch["obs"], arguments).sum(-1).mean()
        # The Q-network is not updated here: without targets, its values would grow without bound.
        loss_value = self._descend(
            loss, batch, self._optimizer_cont, parameters=self._argument_parameters
        )
        rate = self._optimizer_cont.param_groups[0]["lr"]
        return {"cur_lr_cont": rate, "cont_loss": loss_value}

    def _values(self, model: Network, obs: Obs, arguments: torch.Tensor) -> torch.Tensor:
        inputs = {"state": obs, "action_args": arguments}
        return model(inputs, mode="compute_discrete")["logit"]

    def _init_collect(self) -> None:
        super()._init_collect()
        noisy = model_wrap(
            self._model,
            "action_noise",
            noise_type="gauss",
            noise_kwargs={"sigma": self._cfg.collect.noise_sigma},
        )
        self._collect_model = model_wrap(noisy, self._explorer)

    def _forward_collect_batch(self, obs: Obs, eps: Eps) -> Output:  # type: ignore[override]
        """The best choice with noisy arguments; random with probability ``eps``."""
        return super()._forward_collect_batch(self._inputs(obs), eps=eps)

    def _inputs(self, obs: Obs) -> Output:
        arguments = self._model(obs, mode="compute_continuous")["action_args"]
        return {"state": obs, "action_args": arguments}

    def _forward_eval_batch(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        return super()._forward_eval_batch(self._inputs(obs))


def _rate(cfg: EasyDict, name: str) -> float:
    return cfg.learning_rate if cfg[name] is None else cfg[name]

"""Deep Q-learning with its usual extensions.

Mnih et al. 2015 (targets from a second network), van Hasselt et al. 2016 (double), Wang et al. 2016
(dueling, in the network), Schaul et al. 2016 (prioritised replay), Sutton 1988 (n-step returns),
Fortunato et al. 2018 (noisy layers, in the network), Bellemare et al. 2017 (C51: distributions of
returns).
"""

from collections.abc import Mapping
from typing import Any

import torch
from easydict import EasyDict
from torch import Tensor

from ding.model import model_wrap
from ding.model.wrapper.sample import legal
from ding.policy._types import Eps, Log, Loss, Obs, Output, Steps
from ding.policy.acting import NStepPolicy, priorities
from ding.policy.array_update import ArrayUpdate, descend_on_arrays, updates_on_arrays
from ding.policy.base_policy import Policy
from ding.policy.checks import floats
from ding.policy.common_utils import set_noise_mode
from ding.policy.learning import follower
from ding.policy.networks import CHOICES, Call, Shape
from ding.rl_utils import (
    dist_nstep_td_data,
    dist_nstep_td_error,
    nstep_return,
    nstep_return_data,
    q_nstep_td_data,
    q_nstep_td_error,
)
from ding.rl_utils.nstep import of_action, weighted_mean
from ding.torch_utils import Adam
from ding.torch_utils.network import NoiseLinearLayer
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.settings import at


@updates_on_arrays
@POLICY_REGISTRY.register("dqn")
class DQNPolicy(NStepPolicy):
    """Deep Q-Network (Mnih et al. 2015) for discrete actions, with double Q-learning.

    The target network is a copy made every ``learn.target_update_freq`` updates; if this is
    ``None``, it follows the online network with the rate ``learn.target_theta`` at each update.
    If ``model.action_shape`` is a list of K sizes, an action consists of K independent choices.

    ``learn_mode.forward`` takes a batch, as a list of dicts or as one dict of tensors with ``B``
    rows: ``obs`` and ``next_obs`` ``[B, *obs_shape]``, ``action`` int64 ``[B]`` (``[B, K]`` for K
    choices), ``reward`` ``[B]`` (``[B, nstep]`` if ``nstep > 1``), ``done`` ``[B]`` and, with
    importance weights, ``priority_IS`` ``[B]``. It makes one update and returns its log:
    ``cur_lr``, ``total_loss``, ``q_value`` and ``target_q_value``, floats, and ``priority`` float32
    ``[B]``, the TD errors in the form of ``priority_form``.

    Example:

        >>> from ding.policy import DQNPolicy
        >>> cfg = DQNPolicy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2)
        >>> learn = DQNPolicy(cfg).learn_mode.forward  # learn(samples) returns the log
    """

    paper = "Mnih et al. 2015"
    actions: tuple[str, ...] = ("discrete", "multi-discrete")
    networks = {"discrete": (Call({"logit": CHOICES}),)}
    config = dict(
        type="dqn",
        discount_factor=0.97,
        # Noisy layers in the network's head (`model.noise`), which explore while collecting.
        noisy_net=False,
        model=dict(encoder_hidden_size_list=[128, 128, 64]),
        learn=dict(
            # Updates after each collection.
            update_per_collect=3,
            batch_size=64,
            learning_rate=0.001,
            target_update_freq=100,
            target_theta=0.005,
        ),
        # Give exactly one of n_sample and n_episode.
        collect=dict(n_sample=8),
        other=dict(
            # ε as a function of environment steps; `type` is 'exp' or 'linear'.
            eps=dict(type="exp", start=0.95, end=0.1, decay=10000),
            replay_buffer=dict(replay_buffer_size=10000),
        ),
    )

    _silent_keys: tuple[str, ...] = ("learn.alpha", "learn.discount_factor")

    _saves_target = True
    _logged: tuple[str, ...] = ("cur_lr", "total_loss", "q_value", "target_q_value")

    _network = "dqn"

    def _create_model(self, cfg: EasyDict, model: torch.nn.Module | None) -> torch.nn.Module:
        if cfg.get("noisy_net", False) and model is None:
            cfg = EasyDict({**cfg, "model": {**(cfg.get("model") or {}), "noise": True}})
        built = super()._create_model(cfg, model)
        if cfg.get("noisy_net", False) and not _may_be_noisy(built):
            raise ConfigError(
                f"policy.noisy_net=True: the network {type(built).__name__} has no noisy layers, "
                "and exploration would be that of other.eps alone: remove the key, or use "
                "'rainbow' or a policy with the network 'dqn'"
            )
        return built

    def _settings_without_effect(self) -> Mapping[str, str]:
        copies = at(self._cfg, "learn.target_update_freq") is not None
        instead = "the target network is a copy; set policy.learn.target_update_freq=None"
        idle = {"learn.target_theta": instead} if copies else {}
        return {**super()._settings_without_effect(), **idle}

    def _init_learn(self) -> None:
        cfg = self._cfg
        self._use_priority()
        self._set_horizon()
        self._optimizer = Adam(self._model.parameters(), lr=cfg.learn.learning_rate)
        self._arrays = ArrayUpdate()
        theta, freq = (cfg.learn.get(key) for key in ("target_theta", "target_update_freq"))
        self._target_model = follower(self._model, theta, freq)
        # The target network draws its own noise (Fortunato et al. 2018).
        if cfg.noisy_net:
            set_noise_mode(self._target_model, True)
        self._learn_model = model_wrap(self._model, "argmax_sample")

    def _learn(self, batch: Steps) -> Log:
        """One update; the ``priority`` of a sample is its TD error, see ``priority_form``."""
        if self._cfg.noisy_net:
            # An evaluation has disabled the noise of this network.
            set_noise_mode(self._model, True)
        log = descend_on_arrays(self, batch)  # for exactly this class and small plain networks
        if log is None:
            output = self._model(batch["obs"])
            with torch.no_grad():
                target = self._target_output(batch)
                logits = {"q_value": output["logit"], "target_q_value": target["logit"]}
                means = {name: _mean(logit) for name, logit in logits.items()}
            loss, priority, more = self._value_loss(batch, output, target)
            loss_value = self._update(loss, batch)
            log = {"total_loss": loss_value, **floats({**means, **more}), "priority": priority}
        self._target_model.update(self._model)
        return {"cur_lr": self._optimizer.param_groups[0]["lr"], **log}

    def _target_output(self, batch: Steps) -> Output:
        """The target network's output for ``next_obs``, and further values for targets.

        Here ``next_action``: the online network's choice among the legal actions (van Hasselt et
        al. 2016). Values are tensors ``[B, ...]``, or lists with one for each part of the action.
        """
        next_q_value = legal(self._model(batch["next_obs"]), batch["next_obs"])["logit"]
        target = self._target_model.forward(batch["next_obs"])
        if isinstance(next_q_value, list):
            return {**target, "next_action": [part.argmax(-1) for part in next_q_value]}
        return {**target, "next_action": next_q_value.argmax(-1)}

    def _value_loss(self, batch: Steps, output: Output, target: Output) -> Loss:
        """Mean of `_branch_loss` over the parts of an action."""
        if not isinstance(output["logit"], list):
            return Loss(*self._branch_loss(batch, batch["action"], output, target))
        parts = zip(batch["action"].unbind(1), branches(output), branches(target))
        losses = [Loss(*self._branch_loss(batch, *part)) for part in parts]
        return Loss(
            torch.stack([part.loss for part in losses]).mean(),
            torch.stack([part.priority for part in losses]).mean(0),
            {n: torch.stack([part.log[n] for part in losses]).mean() for n in losses[0].log},
        )

    def _branch_loss(self, batch: Steps, action: Tensor, output: Output, target: Output) -> Loss:
        """Loss of one discrete action, the priority of each sample ``[B]``, and scalars to log.

        Distributional subclasses override this method.

        Args:
            action: int64 ``[B]``, the actions taken.
            output: The network's output for ``obs``.
            target: See `_target_output`.
        """
        sample = batch["reward"], batch["done"], batch["weight"]
        actions = action, target["next_action"]
        data = q_nstep_td_data(output["logit"], target["logit"], *actions, *sample)
        loss, error = q_nstep_td_error(
            data, self._gamma, self._nstep, value_gamma=batch.get("value_gamma")
        )
        return Loss(loss, priorities(error, self._priority_form))

    def _update(self, loss: Tensor, batch: Steps) -> float:
        """Minimise the loss by one step; returns its value."""
        return self._descend(loss, batch, self._optimizer)

    def _forward_collect_batch(self, obs: Obs, eps: Eps) -> Output:  # type: ignore[override]
        """ε-greedy actions; ``eps`` is one number, or one for each environment."""
        if self._cfg.noisy_net:
            set_noise_mode(self._model, True)
        return super()._forward_collect_batch(obs, eps=eps)

    def _forward_eval_batch(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        if self._cfg.noisy_net:
            set_noise_mode(self._model, False)
        return super()._forward_eval_batch(obs)


@POLICY_REGISTRY.register("c51")
class C51Policy(DQNPolicy):
    """Categorical DQN, C51 (Bellemare et al. 2017): learns the distribution of returns.

    The support has ``model.n_atom`` returns from ``model.v_min`` to ``model.v_max``; returns
    outside are clipped, so choose both bounds to contain the discounted returns of episodes. The
    online network chooses the next action, as in Rainbow (Hessel et al.
    2018). The priority of a sample is its cross-entropy.

    Example:

        >>> from ding.policy import C51Policy
        >>> cfg = C51Policy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2, v_min=0, v_max=100)
        >>> learn = C51Policy(cfg).learn_mode.forward  # learn(samples) returns the log
    """

    paper = "Bellemare et al. 2017"
    networks = {"discrete": (Call({"logit": CHOICES, "distribution": Shape("B N n_atom")}),)}
    config = dict(type="c51", model=dict(v_min=-10, v_max=10, n_atom=51))

    _network = "c51dqn"

    def _init_learn(self) -> None:
        super()._init_learn()
        self._atoms = atoms_of(self._cfg.model)

    def _branch_loss(self, batch: Steps, action: Tensor, output: Output, target: Output) -> Loss:
        sample = batch["reward"], batch["done"], batch["weight"]
        actions = action, target["next_action"]
        data = dist_nstep_td_data(output["distribution"], target["distribution"], *actions, *sample)
        loss, error = dist_nstep_td_error(
            data, self._gamma, *self._atoms, self._nstep, batch.get("value_gamma")
        )
        return Loss(loss, error.detach())


def atoms_of(model: EasyDict) -> tuple[float, float, int]:
    """``v_min``, ``v_max`` and ``n_atom`` of a network that predicts distributions.

    Raises:
        ConfigError: ``v_min`` is not below ``v_max``, or there are fewer than two atoms.
    """
    v_min, v_max, n_atom = model["v_min"], model["v_max"], model["n_atom"]
    if not v_min < v_max or n_atom < 2:
        raise ConfigError(
            f"policy.model.v_min={v_min}, v_max={v_max}, n_atom={n_atom}: the atoms need "
            "v_min < v_max and a number of at least 2"
        )
    return v_min, v_max, n_atom


def branches(output: Output) -> list[Output]:
    """Split the output of a network with several heads into one output per head."""
    return [dict(zip(output, values)) for values in zip(*output.values())]


def _may_be_noisy(network: torch.nn.Module) -> bool:
    """Whether a network may have noisy layers; a custom network may have its own kind of them."""
    own = not type(network).__module__.startswith("ding.")
    return own or any(isinstance(layer, NoiseLinearLayer) for layer in network.modules())


def _mean(q_value: Tensor | list[Tensor]) -> Tensor:
    return torch.cat(q_value, -1).mean() if isinstance(q_value, list) else q_value.mean()


@POLICY_REGISTRY.register("bdq")
class BDQPolicy(DQNPolicy):
    """Branching Dueling Q-Network (Tavakoli et al. 2018) for actions with several dimensions.

    A shared state value and one advantage per action dimension are learned by double Q-learning.
    All dimensions have the same target, the mean of their next values (equation 4). The priority of
    a sample is the sum of the dimensions' absolute errors (section "Prioritized Replay"), or with
    ``priority_form='squared'`` the mean of their squares. Actions are int64
    ``[model.num_branches]``, each below ``model.action_bins_per_branch``; the environment wrapper
    `discretize_action` converts continuous actions to these.
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


@POLICY_REGISTRY.register("rainbow")
class RainbowDQNPolicy(C51Policy):
    """Rainbow (Hessel et al. 2018): C51 with five further improvements of DQN.

    These are double Q-learning, a dueling network, n-step returns, prioritised replay and noisy
    layers.

    Example:

        >>> from ding.policy import RainbowDQNPolicy
        >>> cfg = RainbowDQNPolicy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2, v_min=0, v_max=100)
        >>> learn = RainbowDQNPolicy(cfg).learn_mode.forward  # learn(samples) returns the log
    """

    paper = "Hessel et al. 2018"
    config = dict(
        type="rainbow",
        priority=True,
        priority_IS_weight=True,
        discount_factor=0.99,
        nstep=3,
        noisy_net=True,
        learn=dict(update_per_collect=1, batch_size=32),
        other=dict(
            # Exploration by noise; the small ε only ensures that every action is still tried.
            eps=dict(type="exp", start=0.05, end=0.05, decay=100000),
            replay_buffer=dict(replay_buffer_size=100000, alpha=0.6, beta=0.4, anneal_step=100000),
        ),
    )

    _network = "rainbowdqn"

    def _create_model(self, cfg: EasyDict, model: torch.nn.Module | None) -> torch.nn.Module:
        # Not DQN's method, which sets `model.noise`: this network always has noisy layers.
        return Policy._create_model(self, cfg, model)

"""Deterministic policy gradients: DDPG (Lillicrap et al. 2016), TD3, TD3+BC and D4PG."""

from collections.abc import Mapping
from typing import Any

import torch
from easydict import EasyDict
from torch.nn import functional as F

from ding.model import model_wrap
from ding.model.common.head import flat_size
from ding.policy._types import Action, CriticLoss, Eps, Log, LoggedLoss, Network, Obs, Output, Steps
from ding.policy.dqn import atoms_of
from ding.policy.joint import joint_mean
from ding.policy.networks import CHOICES, NUMBER, OBS, VECTOR, Call, Shape, actor_and_q_critic
from ding.policy.q_actor_critic import QActorCritic, least
from ding.rl_utils import dist_nstep_td_data, dist_nstep_td_error
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError

#: Without this term, logits drift apart until the softmax has no gradient: on the built-in hybrid
#: task, two of four seeds stopped learning.
_LOGIT_DECAY = 1e-3


@POLICY_REGISTRY.register("ddpg")
class DDPGPolicy(QActorCritic):
    """Deep Deterministic Policy Gradient (Lillicrap et al. 2016) for continuous and hybrid actions.

    Actions are in ``[-1, 1]``: set ``env.act_scale`` if the environment's range differs. The actor
    follows the first critic's gradient; Gaussian noise with deviation ``collect.noise_sigma``
    explores. ``learn.noise`` turns on target policy smoothing and ``model.twin_critic`` clipped
    double Q-learning, as in `TD3Policy`.

    With ``action_space='hybrid'`` an action is a choice and its arguments (Hausknecht and Stone
    2016): the critics see the choice as a one-hot vector, through which the actor learns by the
    straight-through Gumbel softmax (Jang et al. 2017). Choices explore with the ε of ``other.eps``.
    The actor's loss has 0.001 times the mean squared logit added, as in MADDPG (Lowe et al. 2017).

    ``learn_mode.forward`` takes a batch, as a list of dicts or as one dict of tensors with ``B``
    rows: ``obs`` and ``next_obs`` ``[B, *obs_shape]``, ``action`` float32 ``[B, action_shape]``,
    ``reward`` ``[B]`` (``[B, nstep]`` if ``nstep > 1``), ``done`` ``[B]`` and, with importance
    weights, ``priority_IS`` ``[B]``. It makes one update and returns its log: numbers such as
    ``critic_loss`` and ``actor_loss``, and ``priority`` float32 ``[B]``, the TD errors in the form
    of ``priority_form``.

    Example:

        >>> from ding.policy import DDPGPolicy
        >>> cfg = DDPGPolicy.default_config()
        >>> cfg.model.update(obs_shape=3, action_shape=1)
        >>> learn = DDPGPolicy(cfg).learn_mode.forward  # learn(samples) returns the log
    """

    paper = "Lillicrap et al. 2016"
    actions: tuple[str, ...] = ("continuous", "hybrid", "multi-agent")
    networks = {
        "continuous": actor_and_q_critic({"action": VECTOR}),
        "hybrid": (
            Call({"logit": CHOICES, "action_args": VECTOR}, "compute_actor"),
            Call(
                {"q_value": NUMBER},
                "compute_critic",
                {"obs": OBS, "action": {"action_args": VECTOR}, "logit": CHOICES},
            ),
        ),
    }
    config = dict(
        type="ddpg",
        # Number of samples with uniform actions before the first update.
        random_collect_size=25000,
        transition_with_policy_data=False,
        action_space="continuous",
        # Normalise the rewards of each batch.
        reward_batch_norm=False,
        multi_agent=False,
        learn=dict(
            learning_rate_actor=1e-3,
            learning_rate_critic=1e-3,
            # Updates of the critics per update of the actor and the target networks.
            actor_update_freq=1,
            # Noise on the target's actions, of `noise_sigma` and within `noise_range`.
            noise=False,
            noise_sigma=0.2,
            noise_range=dict(min=-0.5, max=0.5),
        ),
        collect=dict(noise_sigma=0.1),
        other=dict(replay_buffer=dict(replay_buffer_size=100000)),
    )

    _silent_keys = (
        *QActorCritic._silent_keys,
        # SAC's names of the learning rates: see `take_old_names`.
        *("learn.learning_rate_policy", "learn.learning_rate_q"),
    )
    _critic_lr, _actor_lr = "learning_rate_critic", "learning_rate_actor"
    _learned = {
        "optimizer_critic": "_optimizer_critic",
        "optimizer_actor": "_optimizer_actor",
        "update_count": "_update_count",
    }

    _logged: tuple[str, ...] = ("action",)

    @property
    def _hybrid(self) -> bool:
        return self._cfg.action_space == "hybrid"

    _network, _team_network = "continuous_qac", "continuous_maqac"
    _action_spaces: Mapping[str, str] = {"continuous": "regression", "hybrid": "hybrid"}

    def _create_model(self, cfg: EasyDict, model: torch.nn.Module | None) -> torch.nn.Module:
        if self._hybrid and cfg.multi_agent:
            raise ConfigError(f"{type(self).__name__}: hybrid actions are for one agent")
        return super()._create_model(cfg, model)

    def _init_learn(self) -> None:
        super()._init_learn()
        cfg = self._cfg.learn
        self._target_noise = cfg.noise_sigma if cfg.noise else None
        self._noise_range = (cfg.noise_range.min, cfg.noise_range.max)

    def _learn(self, batch: Steps) -> Log:
        action = batch["action"]["action_args"] if self._hybrid else batch["action"]
        return {**super()._learn(batch), "action": action.float().mean().item()}

    def _next_value(self, batch: Steps) -> torch.Tensor:
        obs = batch["next_obs"]
        return least(self._judge(self._target_model, obs, self._next_action(obs)))

    def _next_action(self, obs: Obs) -> Any:
        """The target actor's action, smoothed if `learn.noise` is set."""
        output = self._target_model.forward(obs, mode="compute_actor")
        if not self._hybrid:
            return self._smoothed(output["action"])
        choice = output["logit"].argmax(-1)
        return {"action_type": choice, "action_args": self._smoothed(output["action_args"])}

    def _smoothed(self, action: torch.Tensor) -> torch.Tensor:
        if self._target_noise is None:
            return action
        noise = torch.randn_like(action).mul_(self._target_noise).clamp_(*self._noise_range)
        return (action + noise).clamp_(-1, 1)

    def _actor_loss(self, batch: Steps) -> LoggedLoss:
        output = self._model(batch["obs"], mode="compute_actor")
        if not self._hybrid:
            # The first critic alone (Fujimoto et al. 2018, algorithm 1): the minimum of both is
            # used in targets only.
            return -self._judge(self._model, batch["obs"], output["action"])[0].mean(), {}
        logit = output["logit"]
        choice = F.gumbel_softmax(logit, hard=True)
        action = {"action_type": choice, "action_args": output["action_args"]}
        loss = -self._judge(self._model, batch["obs"], action)[0].mean()
        return loss + _LOGIT_DECAY * logit.square().mean(), {}

    def _critic_inputs(self, obs: Obs, action: Action) -> dict[str, Any]:
        if not self._hybrid:
            return super()._critic_inputs(obs, action)
        choice = action["action_type"]
        if not choice.is_floating_point():
            choices = flat_size(self._cfg.model.action_shape.action_type_shape)
            choice = F.one_hot(choice, choices).float()
        return {"obs": obs, "action": {"action_args": action["action_args"]}, "logit": choice}

    def _init_collect(self) -> None:
        super()._init_collect()
        self._collect_model = model_wrap(
            self._model,
            "action_noise",
            noise_type="gauss",
            noise_kwargs={"sigma": self._cfg.collect.noise_sigma},
        )
        if self._hybrid:
            self._collect_model = model_wrap(self._collect_model, "hybrid_eps_greedy_sample")

    def _forward_collect_batch(self, obs: Obs, eps: Eps = 0.0) -> Output:  # type: ignore[override]
        """Noisy actions; hybrid actions are random with probability ``eps``."""
        return super()._forward_collect_batch(obs, **({"eps": eps} if self._hybrid else {}))

    @property
    def _chooser(self) -> str:  # type: ignore[override]
        return "hybrid_argmax_sample" if self._hybrid else "base"


@POLICY_REGISTRY.register("td3")
class TD3Policy(DDPGPolicy):
    """Twin Delayed DDPG (Fujimoto et al. 2018): clipped double Q-learning, target policy smoothing
    and delayed actor updates.

    `DDPGPolicy` describes actions, samples and log. ``actor_loss`` is logged only when the actor is
    updated, every ``learn.actor_update_freq`` updates.

    ``learn_mode.forward`` takes a batch, for instance a dict of ``obs`` and ``next_obs``
    ``[B, *obs_shape]``, ``action`` float32 ``[B, action_shape]``, ``reward`` and ``done`` ``[B]``.
    It returns a dict of numbers and ``priority`` float32 ``[B]``.

    Example:

        >>> from ding.policy import TD3Policy
        >>> cfg = TD3Policy.default_config()
        >>> cfg.model.update(obs_shape=3, action_shape=1)
        >>> learn = TD3Policy(cfg).learn_mode.forward  # learn(samples) returns the log
    """

    paper = "Fujimoto et al. 2018"
    config = dict(
        type="td3",
        model=dict(twin_critic=True),
        learn=dict(actor_update_freq=2, noise=True),
    )


@POLICY_REGISTRY.register("td3_bc")
class TD3BCPolicy(TD3Policy):
    """TD3 with Behaviour Cloning (Fujimoto and Gu 2021): offline TD3 that regularises the actor.

    The actor's loss adds the squared error to the actions of the data. Its critic term is scaled by
    ``learn.alpha`` over the mean absolute value of Q, so that the ratio of the two terms does not
    depend on the scale of the rewards.
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


@POLICY_REGISTRY.register("d4pg")
class D4PGPolicy(DDPGPolicy):
    """Distributed Distributional DDPG (Barth-Maron et al. 2018) with n-step returns.

    The critic is categorical: it learns probabilities of ``model.n_atom`` returns between
    ``model.v_min`` and ``model.v_max``; returns outside this range are clipped to it. The priority
    of a sample is its cross-entropy.
    """

    paper = "Barth-Maron et al. 2018"
    actions = ("continuous",)
    networks = {
        "continuous": actor_and_q_critic({"action": VECTOR}, distribution=Shape("B n_atom"))
    }
    config = dict(
        type="d4pg",
        priority=True,
        priority_IS_weight=True,
        nstep=3,
        model=dict(v_min=-10, v_max=10, n_atom=51),
        eval=dict(evaluator=dict(eval_freq=1000)),
        other=dict(replay_buffer=dict(replay_buffer_size=1000000)),
    )

    _refused = {"multi_agent": "it is for one agent"}
    # The critic has no squared errors.
    _log_names = {"td_error": None}
    _network = "qac_dist"
    _action_spaces = {"continuous": "regression"}

    def _init_learn(self) -> None:
        super()._init_learn()
        self._atoms = atoms_of(self._cfg.model)

    def _critics(self, batch: Steps) -> CriticLoss:
        now = self._judge_all(self._model, batch["obs"], batch["action"])
        with torch.no_grad():
            obs = batch["next_obs"]
            following = self._judge_all(self._target_model, obs, self._next_action(obs))
        # The critic returns the distribution of the single action in its input.
        only = torch.zeros(len(now["distribution"]), dtype=torch.int64, device=self._device)
        q, next_q = (output["distribution"].unsqueeze(1) for output in (now, following))
        sample = batch["reward"], batch["done"], batch["weight"]
        data = dist_nstep_td_data(q, next_q, only, only, *sample)
        loss, error = dist_nstep_td_error(
            data, self._gamma, *self._atoms, self._nstep, batch.get("value_gamma")
        )
        log = {
            "critic_loss": loss,
            "q_value": now["q_value"].mean(),
            "target_q_value": following["q_value"].mean(),
        }
        return CriticLoss(loss, error.detach(), [loss], log)

    def _judge_all(self, model: Network, obs: Obs, action: Action) -> dict[str, torch.Tensor]:
        return model({"obs": obs, "action": action}, mode="compute_critic")

"""Offline RL with pessimistic critics: CQL (Kumar et al. 2020) and EDAC (An et al. 2021)."""

import math
from typing import Any

import torch
from torch import Tensor

from ding.data import tree_map
from ding.model.wrapper.sample import legal
from ding.policy._types import Action, CriticLoss, Loss, Network, Obs, Output, Steps
from ding.policy.acting import priorities
from ding.policy.joint import joint_mean
from ding.policy.networks import GAUSSIAN_PAIR, Shape, actor_and_q_critic
from ding.policy.qrdqn import QRDQNPolicy
from ding.policy.sac import SACPolicy, squashed
from ding.rl_utils.nstep import of_action, weighted_mean
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError


@POLICY_REGISTRY.register("cql")
class CQLPolicy(SACPolicy):
    """Conservative Q-Learning (Kumar et al. 2020): SAC with a penalty on actions outside the data.

    The loss of each critic gets the additional term ``learn.min_q_weight`` times the mean over
    states of ``log ∫ exp Q(s, a) da - Q(s, a of the data)`` (CQL(H), equation 4). The integral is
    estimated from ``learn.num_actions`` uniform actions and as many actions of the policy at ``s``
    and at ``s'``, each weighted by the inverse of its density (appendix F).

    With ``learn.with_lagrange``, a multiplier of the penalty is learned with the critics' learning
    rate, so that ``learn.min_q_weight`` times the gap reaches ``learn.lagrange_thresh``. As in the
    authors' published code, this gap uses the sum over all ``3 * learn.num_actions`` actions
    instead of their average, and so is larger by the logarithm of their number; the logged
    ``conservative_gap`` uses the average.
    """

    paper = "Kumar et al. 2020"
    actions = ("continuous",)
    _refused = {"multi_agent": "it is for one agent"}
    pipeline = "serial_offline"
    config = dict(
        type="cql",
        model=dict(actor_head_hidden_size=256, critic_head_hidden_size=256),
        learn=dict(
            num_actions=10,
            min_q_weight=1.0,
            with_lagrange=False,
            # Target of `min_q_weight` times the gap.
            lagrange_thresh=-1,
            # Whether targets include the next action's entropy, as in SAC.
            with_q_entropy=False,
        ),
    )

    _learned = {
        **SACPolicy._learned,
        "log_multiplier": "_log_multiplier",
        "optimizer_multiplier": "_optimizer_multiplier",
    }
    _logged: tuple[str, ...] = ("conservative_gap",)

    def _init_learn(self) -> None:
        super()._init_learn()
        cfg = self._cfg.learn
        if cfg.num_actions < 1:
            raise ConfigError(f"policy.learn.num_actions is {cfg.num_actions}; expected at least 1")
        self._entropy_in_targets = cfg.with_q_entropy
        if cfg.with_lagrange:
            # Logarithm of the penalty's multiplier.
            self._log_multiplier = torch.zeros(1, device=self._device, requires_grad=True)
            self._optimizer_multiplier = Adam([self._log_multiplier], lr=cfg.learning_rate_q)

    def _critic_loss(self, batch: Steps, q_values: list[Tensor], target: Tensor) -> CriticLoss:
        critic = super()._critic_loss(batch, q_values, target)
        cfg = self._cfg.learn
        gap = self._soft_maximum(batch) - torch.stack(q_values)
        critic = critic._replace(log={"conservative_gap": gap.detach().mean()})
        if not cfg.with_lagrange:
            return _with_penalty(critic, cfg.min_q_weight * gap.mean(-1))
        # This gap uses the sum over actions; see the class.
        gap = gap + math.log(3 * cfg.num_actions)
        excess = cfg.min_q_weight * gap - cfg.lagrange_thresh
        multiplier = self._log_multiplier.exp().clamp(max=_LARGEST_MULTIPLIER)
        self._optimizer_multiplier.zero_grad()
        (-multiplier * joint_mean(excess, self._joint)).sum().backward()
        self._optimizer_multiplier.step()
        return _with_penalty(critic, multiplier.detach() * excess.mean(-1))

    def _soft_maximum(self, batch: Steps) -> Tensor:
        """``log ∫ exp Q(s, a) da`` of each critic and state, ``[critics, B]``."""
        with torch.no_grad():
            actions, log_density = self._proposals(batch)
        size, number = log_density.shape
        obs = tree_map(lambda leaf: leaf.repeat_interleave(number, 0), batch["obs"])
        values = self._judge(self._model, obs, actions.flatten(0, 1))
        q_values = torch.stack([value.view(size, number) for value in values])
        return torch.logsumexp(q_values - log_density, -1) - math.log(number)

    def _proposals(self, batch: Steps) -> tuple[Tensor, Tensor]:
        """Actions ``[B, 3 num_actions, A]`` and their log-densities ``[B, 3 num_actions]``:
        uniform ones, the policy's, and the policy's at the next state."""
        number, like = self._cfg.learn.num_actions, batch["action"]
        uniform = like.new_empty(len(like), number, like.shape[-1]).uniform_(-1, 1)
        flat = torch.full((len(like), number), -math.log(2) * like.shape[-1], device=like.device)
        actions, log_densities = [uniform], [flat]
        for obs in (batch["obs"], batch["next_obs"]):
            mu, sigma = self._model(obs, mode="compute_actor")["logit"]
            many = [part.repeat_interleave(number, 0) for part in (mu, sigma)]
            action, log_density = squashed(many)
            actions.append(action.unflatten(0, (-1, number)))
            log_densities.append(log_density.unflatten(0, (-1, number)))
        return torch.cat(actions, 1), torch.cat(log_densities, 1)


def _with_penalty(critic: CriticLoss, penalty: Tensor) -> CriticLoss:
    """Add a penalty ``[critics]`` to the critics' loss."""
    losses = [own + more for own, more in zip(critic.losses, penalty)]
    return critic._replace(loss=critic.loss + penalty.sum(), losses=losses)


#: Upper bound, so that losses stay finite if the threshold cannot be reached.
_LARGEST_MULTIPLIER = 1e6


@POLICY_REGISTRY.register("cql_discrete")
@POLICY_REGISTRY.register("discrete_cql")
class DiscreteCQLPolicy(QRDQNPolicy):
    """Conservative Q-Learning (Kumar et al. 2020) for discrete actions, on top of QR-DQN.

    The loss gets the additional term ``learn.min_q_weight`` times the mean of
    ``log Σ exp Q(s, a) - Q(s, a of the data)``, where Q is the mean of the quantiles (CQL(H),
    equation 4). Actions that an ``action_mask`` of the observation forbids are not in the sum.
    """

    paper = "Kumar et al. 2020"
    pipeline = "serial_offline"
    config = dict(
        type="discrete_cql",
        learn=dict(update_per_collect=1, min_q_weight=1.0),
    )
    _log_names = {"target_q_value": "q_target"}

    def _value_loss(self, batch: Steps, output: Output, target: Output) -> Loss:
        possible = legal(output, batch["obs"])["logit"]
        return super()._value_loss(batch, {**output, "possible": possible}, target)

    def _branch_loss(self, batch: Steps, action: Tensor, output: Output, target: Output) -> Loss:
        loss, priority, log = super()._branch_loss(batch, action, output, target)
        done = of_action(output["logit"], action)
        # What was done is in the sum whatever the mask says: the gap is at least 0.
        possible = output["possible"].scatter(-1, action.unsqueeze(-1), done.unsqueeze(-1))
        gap = (possible.logsumexp(-1) - done).mean()
        return Loss(loss + self._cfg.learn.min_q_weight * gap, priority, log)


@POLICY_REGISTRY.register("edac")
class EDACPolicy(SACPolicy):
    """Ensemble-Diversified Actor-Critic (An et al. 2021): offline SAC with a critic ensemble.

    Targets and actor use the minimum of ``model.ensemble_num`` critics, which penalises actions
    outside the data more as the ensemble grows. To need fewer critics, the loss includes
    ``learn.eta`` times the mean cosine similarity of the critics' gradients with respect to the
    action (equation 3); with 0 the algorithm is SAC-N. With a single action dimension these
    gradients have only a sign, so the term has no effect.
    """

    paper = "An et al. 2021"
    actions = ("continuous",)
    networks = {"continuous": actor_and_q_critic({"logit": GAUSSIAN_PAIR}, q_value=Shape("E B"))}
    _silent_keys = (
        *SACPolicy._silent_keys,
        # Keys of other offline algorithms.
        *("learn.learning_rate_value", "learn.min_q_weight"),
    )

    _refused = {"multi_agent": "it is for one agent"}
    pipeline = "serial_offline"
    config = dict(
        type="edac",
        model=dict(
            ensemble_num=10,
            actor_head_hidden_size=256,
            critic_head_hidden_size=256,
        ),
        learn=dict(
            alpha=1,
            eta=0.1,
            # Whether targets include the next action's entropy, as in SAC.
            with_q_entropy=False,
        ),
    )

    _network = "edac"

    def _init_learn(self) -> None:
        super()._init_learn()
        self._eta = self._cfg.learn.eta
        self._entropy_in_targets = self._cfg.learn.with_q_entropy

    def _judge(self, model: Network, obs: Obs, action: Action) -> Any:
        """Each critic's values of actions, ``[E, B]``."""
        return model({"obs": obs, "action": action}, mode="compute_critic")["q_value"]

    def _critic_loss(self, batch: Steps, q_values: Any, target: Tensor) -> CriticLoss:
        error = q_values - target
        squares = error.pow(2)
        losses = [weighted_mean(one, batch["weight"]) for one in squares]
        loss = torch.stack(losses).sum()
        if self._eta > 0 and len(error) > 1:
            loss = loss + self._eta * self._similarity(batch, len(error))
        priority = priorities(squares, self._priority_form).mean(0)
        return CriticLoss(loss, priority, losses)

    def _similarity(self, batch: Steps, number: int) -> Tensor:
        """The sum over pairs of critics of their gradients' cosine, divided by ``number - 1``; mean
        over samples."""
        obs, action = (
            tree_map(lambda leaf: leaf.expand(number, *leaf.shape), batch[name])
            for name in ("obs", "action")
        )
        action = action.contiguous().requires_grad_(True)
        q_values = self._judge(self._model, obs, action)
        (gradient,) = torch.autograd.grad(q_values.sum(), action, create_graph=True)
        direction = gradient / (gradient.norm(dim=-1, keepdim=True) + 1e-10)
        # Over all pairs: the squared norm of the sum, minus each critic's product with itself.
        pairs = direction.sum(0).pow(2).sum(-1) - direction.pow(2).sum((0, 2))
        return pairs.mean() / (number - 1)

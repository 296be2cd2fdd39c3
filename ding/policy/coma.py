"""COMA (Foerster et al. 2018): policy gradients with a counterfactual baseline per agent."""

import itertools

import torch
from torch import Tensor

from ding.data import tree_map, tree_take
from ding.model.template.mavac import MASKED
from ding.policy._types import Network, Obs, Output, Sequences, TeamLoss
from ding.policy.recurrent import TeamPolicy, after, during
from ding.rl_utils import generalized_lambda_returns
from ding.rl_utils.nstep import of_action
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY

#: Up to this number of joint actions of the other agents, means over them are exact.
_MOST_OTHERS = 64


@POLICY_REGISTRY.register("coma")
class COMAPolicy(TeamPolicy):
    """Counterfactual Multi-Agent policy gradients (Foerster et al. 2018) for discrete actions.

    See `TeamPolicy` for observations and samples. Actions are sampled from the softmax policy and,
    with probability ε (``other.eps``), uniformly. The advantage of an action is its value minus the
    mean value of the agent's actions under its policy, with the other agents' actions fixed. The
    critic learns TD(λ) returns.

    The method is on-policy: keep the buffer close to the size of one collection, or set
    ``other.replay_buffer.max_use``.
    """

    paper = "Foerster et al. 2018"
    actions = ("multi-agent",)
    config = dict(
        type="coma",
        learn=dict(
            update_per_collect=20,
            batch_size=32,
            learning_rate=0.0005,
            target_update_theta=0.001,
            td_lambda=0.8,
            policy_weight=0.001,
            value_weight=1,
            entropy_weight=0.01,
        ),
        collect=dict(unroll_len=20),
    )

    _transition_outputs = ("prev_state", "eps")
    _explorer = "eps_greedy_multinomial_sample"

    _network = "coma"
    _logged: tuple[str, ...] = (
        *("cur_lr", "total_loss", "policy_loss", "value_loss", "entropy_loss", "q_value"),
    )

    def _init_learn(self) -> None:
        super()._init_learn()
        self._optimizer = Adam(self._model.parameters(), lr=self._cfg.learn.learning_rate)

    def _losses(self, batch: Sequences) -> TeamLoss:
        cfg, action = self._cfg.learn, batch["action"].unsqueeze(-1)
        logit = self._masked_logit(batch)  # [T + 1, B, agents, N]
        q_value = self._q_values(self._model, during(batch["obs"]), batch["action"])
        done_q = q_value.gather(-1, action).squeeze(-1)
        error = done_q - self._returns(batch, logit.detach())
        probability = self._policy(batch, slice(None, -1), logit)
        log_probability = probability.clamp_min(1e-10).log()
        # The baseline marginalises out the agent's own action (the paper's equation 4).
        advantage = (done_q - (probability * q_value).sum(-1)).detach()
        gain = log_probability.gather(-1, action).squeeze(-1) * advantage
        entropy = -(probability * log_probability).sum(-1)
        policy_loss, value_loss, entropy_mean = (
            self._mean(part.mean(-1), batch) for part in (-gain, error.pow(2), entropy)
        )
        loss = cfg.policy_weight * policy_loss + cfg.value_weight * value_loss
        log = {
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "entropy_loss": entropy_mean,
            "q_value": done_q.mean(),
        }
        return loss - cfg.entropy_weight * entropy_mean, error.detach().abs().mean(-1), log

    def _masked_logit(self, batch: Sequences) -> Tensor:
        logit = self._unroll(self._model, batch)["logit"]
        mask = batch["obs"].get("action_mask")
        return logit if mask is None else logit.masked_fill(mask == 0, MASKED)

    def _policy(self, batch: Sequences, steps: slice, logit: Tensor) -> Tensor:
        """Sampling probabilities of the actions, including ε, ``[T, B, agents, N]``; ``steps``
        selects T of the T + 1 steps of ``logit``."""
        logit, mask = logit[steps], batch["obs"].get("action_mask")
        legal = torch.ones_like(logit) if mask is None else (mask[steps] != 0).to(logit.dtype)
        eps = batch["eps"].to(logit.dtype).reshape(*logit.shape[:2], 1, 1)
        uniform = legal / legal.sum(-1, keepdim=True).clamp_min(1)
        return (1 - eps) * logit.softmax(-1) + eps * uniform

    @torch.no_grad()
    def _returns(self, batch: Sequences, logit: Tensor) -> Tensor:
        """TD(λ) returns by the target critic, ``[T, B, agents]``."""
        # The next action is known, except at a sequence's end: there the value is the mean under
        # the policy.
        mask, next_action = batch["mask"], batch["action"].roll(-1, 0)
        obs = after(batch["obs"])
        q_value = self._q_values(self._target_model, obs, next_action)
        next_value = of_action(q_value, next_action)
        unknown = torch.cat([mask[1:], torch.zeros_like(mask[:1])]) == 0
        probability = self._policy(batch, slice(1, None), logit)[unknown]
        next_value[unknown] = self._mean_value(tree_take(obs, unknown), probability)
        return lambda_returns(batch, next_value, self._gamma, self._cfg.learn.td_lambda)

    def _mean_value(self, obs: Obs, probability: Tensor) -> Tensor:
        """Mean value of each agent under the policy, by the target critic, ``[R, agents]``; for
        observations of R rows and ``probability`` ``[R, agents, N]``."""
        action, weight = others_actions(probability)
        obs = tree_map(lambda leaf: leaf.expand(len(action), *leaf.shape), obs)
        q_value = self._q_values(self._target_model, obs, action)
        return (weight * (probability * q_value).sum(-1)).sum(0)

    @staticmethod
    def _q_values(model: Network, obs: Obs, action: Tensor) -> Tensor:
        return model.compute_critic({"obs": obs, "action": action})["q_value"]

    def _forward_collect_batch(  # type: ignore[override]
        self, obs: Obs, env_ids: list[int], eps: float = 0.0
    ) -> Output:
        """Sample actions from the policy; see the class."""
        output = self._act(self._collect_model, obs, env_ids, eps=eps)
        return {**output, "eps": torch.full((len(env_ids),), float(eps))}


def others_actions(probability: Tensor) -> tuple[Tensor, Tensor]:
    """Joint actions for averages over the other agents' actions.

    All combinations of the others' actions; or one sample, if there are more than `_MOST_OTHERS`.

    Args:
        probability: Probabilities of each agent's actions, ``[R, agents, N]``.

    Returns:
        int64 ``[J, R, agents]``, and each joint action's weight for each agent, of the same shape;
        the weights sum to 1 over J.
    """
    rows, agents, number = probability.shape
    if number ** (agents - 1) > _MOST_OTHERS:
        action = torch.multinomial(probability.flatten(0, 1), 1).view(1, rows, agents)
        return action, torch.ones_like(action, dtype=probability.dtype)
    # Joint actions whose sum is a multiple of N: for each agent, they contain each combination of
    # the others' actions exactly once.
    first = torch.tensor(list(itertools.product(range(number), repeat=agents - 1)))
    first = first.to(probability.device, torch.int64).view(number ** (agents - 1), agents - 1)
    action = torch.cat([first, -first.sum(-1, keepdim=True) % number], -1)
    action = action.unsqueeze(1).expand(-1, rows, -1)
    done = of_action(probability.expand(len(action), -1, -1, -1), action)
    itself = torch.eye(agents, dtype=torch.bool, device=done.device)
    return action, done.unsqueeze(-2).masked_fill(itself, 1.0).prod(-1)


def lambda_returns(batch: Sequences, next_value: Tensor, gamma: float, lambda_: float) -> Tensor:
    """λ-returns (Sutton 1988) of sequences, ``[T, B, agents]``; bootstrapped at their ends.

    Args:
        batch: ``reward``, ``done`` and ``mask``, ``[T, B]``.
        next_value: Value of the observation after each step, ``[T, B, agents]``.
    """
    reward, done = (
        one.unsqueeze(-1).expand_as(next_value) for one in (batch["reward"], batch["done"])
    )
    # A step without a successor uses its next value alone.
    goes_on = torch.cat([batch["mask"][1:], torch.zeros_like(batch["mask"][:1])]).unsqueeze(-1)
    values = torch.cat([next_value[:1], next_value])
    return generalized_lambda_returns(values, reward, gamma, lambda_ * goes_on, done)

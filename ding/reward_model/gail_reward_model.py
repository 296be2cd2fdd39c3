"""Rewards that an adversary or a maximum-entropy model learns from an expert's steps."""

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from easydict import EasyDict
from torch import Tensor
from torch.nn import functional as F

from ding.data import Columns
from ding.reward_model.base_reward_model import Shapes, State, Transitions
from ding.reward_model.demonstrated import DemonstratedRewardModel, RewardNetwork
from ding.reward_model.recent_steps import RecentSteps
from ding.rl_utils._log_prob import log_prob
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.log_writer import ScalarWriter


class _ComparedSteps(DemonstratedRewardModel):
    """Compares batches of an expert's steps with batches of the policy's newest ones."""

    config: dict[str, Any] = dict(
        hidden_size=64,
        # Batches after each collection.
        update_per_collect=100,
        # The policy's newest steps that are compared.
        buffer_size=5000,
    )

    def __init__(
        self, cfg: EasyDict, shapes: Shapes, device: str, tb_logger: ScalarWriter | None = None
    ) -> None:
        super().__init__(cfg, shapes, device, tb_logger)
        self._network = RewardNetwork(shapes, [cfg.hidden_size] * 2, sees_actions=True)
        self._train_on(self._network)
        self._recent = RecentSteps(cfg.buffer_size)
        self._expert = RecentSteps(2**62)

    @abstractmethod
    def _reward(self, obs: Tensor, action: Tensor) -> Tensor:
        """Rewards ``[N]``."""

    @abstractmethod
    def _loss(self, own: dict[str, Tensor], expert: dict[str, Tensor]) -> tuple[Tensor, dict]:
        """The loss of two batches, and what to log."""

    def _own_steps(self, transitions: Transitions) -> dict[str, np.ndarray]:
        return self._steps(transitions)

    def demonstrate(self, transitions: Transitions, lengths: np.ndarray) -> None:
        self._expert.clear()
        self._expert.add(self._steps(transitions))

    def collected(
        self, transitions: Transitions, lengths: np.ndarray
    ) -> tuple[Transitions, np.ndarray]:
        steps = self._own_steps(transitions)
        self._recent.add(steps)
        reward = np.asarray(transitions["reward"])
        new = self._rewards(steps["obs"], steps["action"])
        return {**transitions, "reward": new.reshape(reward.shape)}, lengths

    def _rewards(self, obs: Any, action: Any) -> np.ndarray:
        with torch.no_grad():
            return self._reward(self._tensor(obs), self._tensor(action)).cpu().numpy()

    def drawn(self, batch: Columns) -> Columns:
        """Rewards by the model of today, where a sample is one step; advantages stay."""
        if not isinstance(batch, Columns) or "adv" in batch.columns:
            return batch
        columns = batch.columns
        reward = torch.as_tensor(columns["reward"])
        if reward.numel() != len(batch):
            return batch
        new = torch.as_tensor(self._rewards(columns["obs"], columns["action"]))
        return batch.with_columns(reward=new.reshape(reward.shape))

    def train(self, train_iter: int, envstep: int) -> None:
        if not len(self._expert):
            raise ConfigError(
                f"reward_model.type={self._cfg.type!r} has no demonstrations: use "
                "serial_pipeline_gail or serial_pipeline_guided_cost, which bring them"
            )
        rows, size = [], self._cfg.batch_size
        for _ in range(self._cfg.update_per_collect):
            loss, facts = self._loss(*map(self._batch, (self._recent, self._expert), (size, size)))
            rows.append({"loss": self._descend(loss), **facts})
        if rows:
            means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
            self._log(means, train_iter, envstep)

    def _batch(self, steps: RecentSteps, size: int) -> dict[str, Tensor]:
        return {name: self._tensor(column) for name, column in steps.sample(size).items()}

    def state_dict(self) -> State:
        steps = {"recent": self._recent.state_dict(), "expert": self._expert.state_dict()}
        return {**super().state_dict(), **steps}

    def load_state_dict(self, state_dict: State) -> None:
        super().load_state_dict(state_dict)
        self._recent.load_state_dict(state_dict["recent"])
        self._expert.load_state_dict(state_dict["expert"])


@REWARD_MODEL_REGISTRY.register("gail")
class GailRewardModel(_ComparedSteps):
    """Generative adversarial imitation learning (Ho and Ermon 2016).

    A discriminator D tells the expert's steps (1) from the policy's (0); a step's reward is
    ``-log(1 - D)``.
    """

    config: dict[str, Any] = dict(type="gail")

    def _reward(self, obs: Tensor, action: Tensor) -> Tensor:
        return F.softplus(self._network(obs, action))

    def _loss(self, own: dict[str, Tensor], expert: dict[str, Tensor]) -> tuple[Tensor, dict]:
        of_own, of_expert = (self._network(one["obs"], one["action"]) for one in (own, expert))
        # -log(1 - D) of own steps and -log D of the expert's, by the logit of D.
        loss = F.softplus(of_own).mean() + F.softplus(-of_expert).mean()
        right = (of_own < 0).float().mean() + (of_expert > 0).float().mean()
        return loss, {"accuracy": float(right) / 2}


@REWARD_MODEL_REGISTRY.register("guided_cost")
class GuidedCostRewardModel(_ComparedSteps):
    """Guided cost learning (Finn et al. 2016): the reward is minus a learned cost.

    The cost of the expert's steps falls against the partition function, which is estimated from
    the policy's steps and the expert's, weighted by the inverse of the probability with which
    they were taken; that of the expert's is 1.
    """

    config: dict[str, Any] = dict(
        type="guided_cost",
        update_per_collect=10,
        # Not read: the kind of the actions is the environments', all is logged and saved.
        continuous=None,
        log_every_n_train=None,
        store_model_every_n_train=None,
    )

    def _own_steps(self, transitions: Transitions) -> dict[str, np.ndarray]:
        if "logit" not in transitions:
            raise ConfigError(
                "reward_model.type='guided_cost' needs the probabilities of the policy's actions, "
                "and its transitions have no 'logit': use 'ppo', 'ppo_offpolicy', or 'sac' with "
                "policy.collect.collector_logit=True"
            )
        steps = self._steps(transitions)
        return {**steps, "prob": _probability(transitions["logit"], steps["action"])}

    def demonstrate(self, transitions: Transitions, lengths: np.ndarray) -> None:
        prob = np.ones(int(lengths.sum()), np.float32)
        self._expert.clear()
        self._expert.add({**self._steps(transitions), "prob": prob})

    def _reward(self, obs: Tensor, action: Tensor) -> Tensor:
        cost: Tensor = self._network(obs, action)
        return -cost

    def _loss(self, own: dict[str, Tensor], expert: dict[str, Tensor]) -> tuple[Tensor, dict]:
        of_own, of_expert = (self._network(one["obs"], one["action"]) for one in (own, expert))
        cost = torch.cat([of_own, of_expert])
        log_prob_ = torch.cat([own["prob"], expert["prob"]]).clamp(min=1e-6).log()
        partition = torch.logsumexp(-cost - log_prob_, 0) - np.log(len(cost))
        means = {"cost_own": of_own.mean().item(), "cost_expert": of_expert.mean().item()}
        return of_expert.mean() + partition, means


def _probability(logit: Any, action: np.ndarray) -> np.ndarray:
    """With which probability, or density, actions were drawn, ``[N]``."""
    if isinstance(logit, dict):
        parts = {name: torch.as_tensor(np.asarray(part)) for name, part in logit.items()}
        return log_prob(parts, torch.as_tensor(action)).exp().numpy().astype(np.float32)
    choices = torch.as_tensor(np.asarray(logit)).softmax(-1).numpy()
    return choices[np.arange(len(action)), action.reshape(-1).astype(np.int64)]

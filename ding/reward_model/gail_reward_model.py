"""Rewards from a discriminator or a maximum-entropy model, learned from an expert's steps."""

from abc import abstractmethod

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ding.data import Columns
from ding.reward_model.base_reward_model import RecentSteps, Trajectories, Transitions
from ding.reward_model.demonstrated import DemonstratedRewardModel, RewardNetwork
from ding.rl_utils.log_prob_utils import log_prob
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.types import Config, Tree


class _ComparedSteps(DemonstratedRewardModel):
    """Compares batches of an expert's steps with batches of the policy's newest steps."""

    config: Config = dict(
        hidden_size=64,
        # Number of batches after each collection.
        update_per_collect=100,
        # Number of the policy's newest steps that are compared.
        buffer_size=5000,
    )

    def build(self) -> None:
        sizes = [self._cfg.hidden_size] * 2
        self._network = RewardNetwork(self._require_obs(), sizes, self._require_actions())
        self._optimize(self._network, lr=self._cfg.learning_rate)
        self._recent, self._expert = RecentSteps(self._cfg.buffer_size), RecentSteps()
        self.networks.update(recent=self._recent, expert=self._expert)

    @abstractmethod
    def _reward(self, output: Tensor) -> Tensor:
        """Rewards for the network's output, ``[N]``."""

    @abstractmethod
    def _loss(
        self, own: dict[str, Tensor], expert: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss of two batches, and scalars to log."""

    def _steps(self, transitions: Transitions) -> dict[str, np.ndarray]:
        return self._columns(transitions, "obs", "action")

    def demonstrate(self, transitions: Transitions, lengths: np.ndarray) -> None:
        self._expert.clear()
        self._expert.add(self._steps(transitions))

    def observe(self, transitions: Transitions, lengths: np.ndarray) -> None:
        self._recent.add(self._steps(transitions))

    def clear_data(self, iter: int = 0) -> None:
        self._recent.clear()  # the demonstrations stay

    def rewarded(self, transitions: Transitions, lengths: np.ndarray) -> Trajectories:
        return {**transitions, "reward": self._rewards(transitions)}, lengths

    def _rewards(self, columns: Transitions) -> np.ndarray:
        """Rewards, in the shape of the columns' rewards."""
        steps = self._columns(columns, "obs", "action")
        with torch.no_grad():
            reward: np.ndarray = self._reward(self._output(steps)).cpu().numpy()
        return reward.reshape(np.shape(columns["reward"]))

    def _output(self, steps: Transitions) -> Tensor:
        found: Tensor = self._network(self._tensor(steps["obs"]), self._as_input(steps["action"]))
        return found

    def drawn(self, batch: Columns) -> Columns:
        """Replace rewards of one-step samples by the current model's; advantages stay unchanged."""
        if not isinstance(batch, Columns) or "adv" in batch.columns:
            return batch
        if torch.as_tensor(batch.columns["reward"]).numel() != len(batch):
            return batch
        return batch.with_columns(reward=torch.as_tensor(self._rewards(batch.columns)))

    def train(self, train_iter: int = 0, envstep: int = 0) -> None:
        self._require_demonstrations(len(self._expert))
        figures: dict[str, list[float]] = {}
        for _ in range(self._cfg.update_per_collect if len(self._recent) else 0):
            own, expert = self._batch(self._recent), self._batch(self._expert)
            loss, facts = self._loss(own, expert)
            for name, value in {"loss": self._descend(loss), **facts}.items():
                figures.setdefault(name, []).append(value)
        self._log(figures, train_iter, envstep)

    def _batch(self, steps: RecentSteps) -> dict[str, Tensor]:
        drawn = steps.sample(self._cfg.batch_size)
        return {name: self._tensor(column) for name, column in drawn.items()}


@REWARD_MODEL_REGISTRY.register("gail")
class GailRewardModel(_ComparedSteps):
    """Generative adversarial imitation learning (Ho and Ermon 2016).

    A discriminator D separates the expert's steps (1) from the policy's (0); a step's reward is
    ``-log(1 - D)``.
    """

    config: Config = dict(type="gail")
    entry = "serial_pipeline_gail"

    def _reward(self, output: Tensor) -> Tensor:
        # -log(1 - D) from the logit of D, since D itself may round to 1.
        return F.softplus(output)

    def _loss(
        self, own: dict[str, Tensor], expert: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        of_own, of_expert = self._output(own), self._output(expert)
        # -log(1 - D) of own steps and -log D of the expert's, from the logit of D.
        loss = F.softplus(of_own).mean() + F.softplus(-of_expert).mean()
        right = (of_own < 0).float().mean() + (of_expert > 0).float().mean()
        return loss, {"accuracy": float(right) / 2}


@REWARD_MODEL_REGISTRY.register("guided_cost")
class GuidedCostRewardModel(_ComparedSteps):
    """Guided cost learning (Finn et al. 2016): the reward is minus a learned cost.

    The cost of the expert's steps is decreased relative to the partition function, which is
    estimated from the policy's and the expert's steps, weighted by the inverse of their
    probabilities; an expert's step has the probability 1.
    """

    config: Config = dict(
        type="guided_cost",
        update_per_collect=10,
        # Ignored: the environments determine the kind of actions; everything is logged and saved.
        continuous=None,
        log_every_n_train=None,
        store_model_every_n_train=None,
    )
    entry = "serial_pipeline_guided_cost"

    def observe(self, transitions: Transitions, lengths: np.ndarray) -> None:
        self._recent.add(self._own_steps(transitions))

    def _own_steps(self, transitions: Transitions) -> dict[str, np.ndarray]:
        if "logit" not in transitions:
            raise ConfigError(
                "reward_model.type='guided_cost' needs the probabilities of the policy's actions, "
                "and its transitions have no 'logit': use 'ppo', 'ppo_offpolicy', or 'sac' with "
                "policy.collect.collector_logit=True"
            )
        steps = self._steps(transitions)
        if "log_prob" in transitions:
            return {**steps, "prob": np.exp(self._columns(transitions, "log_prob")["log_prob"])}
        return {**steps, "prob": _probability(transitions["logit"], steps["action"])}

    def demonstrate(self, transitions: Transitions, lengths: np.ndarray) -> None:
        super().demonstrate(transitions, lengths)
        self._expert.columns["prob"] = np.ones(len(self._expert), np.float32)

    def _reward(self, output: Tensor) -> Tensor:
        return -output

    def _loss(
        self, own: dict[str, Tensor], expert: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        of_own, of_expert = self._output(own), self._output(expert)
        cost = torch.cat([of_own, of_expert])
        # Otherwise one very improbable step would outweigh all others.
        log_prob_ = torch.cat([own["prob"], expert["prob"]]).clamp(min=1e-6).log()
        partition = torch.logsumexp(-cost - log_prob_, 0) - np.log(len(cost))
        means = {"cost_own": of_own.mean().item(), "cost_expert": of_expert.mean().item()}
        return of_expert.mean() + partition, means


def _probability(logit: Tree, action: np.ndarray) -> np.ndarray:
    """Probabilities or densities with which actions were sampled, ``[N]``."""
    if isinstance(logit, dict):
        parts = {name: torch.as_tensor(np.asarray(part)) for name, part in logit.items()}
        return log_prob(parts, torch.as_tensor(action)).exp().numpy().astype(np.float32)
    choices = torch.as_tensor(np.asarray(logit)).softmax(-1).numpy()
    return choices[np.arange(len(action)), action.reshape(-1).astype(np.int64)]

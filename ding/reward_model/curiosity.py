"""Bonuses for novelty: random network distillation and the intrinsic curiosity module."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ding.model.common.encoder import build_encoder
from ding.reward_model.base_reward_model import (
    BaseRewardModel,
    RecentSteps,
    Trajectories,
    Transitions,
)
from ding.rl_utils.gae import gae_columns
from ding.torch_utils.network import MLP
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.errors import ConfigError
from ding.utils.running_mean_std import RunningMeanStd
from ding.utils.types import Config, Tree

#: Discount of the bonus returns whose standard deviation normalises bonuses (Burda et al. 2018).
_DISCOUNT = 0.99
#: Number of transitions per computation of bonuses.
_CHUNK = 4096
_KINDS = ("add", "assign", "new")


class CuriosityRewardModel(BaseRewardModel):
    """Base class of curiosity models: the reward is a prediction error.

    A bonus is divided by the running standard deviation of the discounted sums of bonuses within
    a trajectory, multiplied by ``intrinsic_reward_weight``, and applied according to
    `intrinsic_reward_type`. A subclass defines `_bonus` and `_loss`, and creates its networks in
    `build`.
    """

    config: Config = dict(
        # Use of a bonus: "add" it to the reward, "assign" it as the reward, or store it in the
        # separate column "intrinsic_reward" ("new").
        intrinsic_reward_type="add",
        # Factor of normalised bonuses; None means 1.
        intrinsic_reward_weight=None,
        # Divide the environment's reward by extrinsic_reward_norm_max.
        extrinsic_reward_norm=True,
        extrinsic_reward_norm_max=1,
        # Shapes of observations and actions; None: the environment's.
        obs_shape=None,
        action_shape=None,
        hidden_size_list=[64, 64, 128],
        learning_rate=1e-3,
        batch_size=64,
        # Number of batches after each collection.
        update_per_collect=100,
        # Number of policy updates after which stored transitions are removed, and the maximum
        # number of transitions.
        clear_buffer_per_iters=1,
        buffer_size=10000,
    )
    kept = ("_cleared_at",)

    def build(self) -> None:
        cfg = self._cfg
        if cfg.intrinsic_reward_type not in _KINDS:
            raise ConfigError(
                f"reward_model.intrinsic_reward_type must be one of {_KINDS}, got "
                f"{cfg.intrinsic_reward_type!r}"
            )
        weight = cfg.intrinsic_reward_weight
        self._weight = 1.0 if weight is None else float(weight)
        self._recent, self._returns = RecentSteps(cfg.buffer_size), RunningMeanStd()
        self.networks.update(recent=self._recent, returns=self._returns)
        self._cleared_at = 0
        self._figures: dict[str, float] = {}

    @abstractmethod
    def _bonus(self, steps: dict[str, Tensor]) -> Tensor:
        """Bonuses ``[N]`` of transitions: ``obs``, ``next_obs`` and ``action``."""

    @abstractmethod
    def _loss(self, steps: dict[str, Tensor]) -> tuple[Tensor, dict[str, float]]:
        """The loss of a batch, and scalars to log."""

    def _steps(self, transitions: Transitions) -> dict[str, np.ndarray]:
        return self._columns(transitions, "obs", "next_obs", "action")

    def observe(self, transitions: Transitions, lengths: np.ndarray) -> None:
        self._recent.add(self._steps(transitions))

    def rewarded(self, transitions: Transitions, lengths: np.ndarray) -> Trajectories:
        steps, raw = self._steps(transitions), np.zeros(len(transitions["obs"]), np.float32)
        for start in range(0, len(raw), _CHUNK):
            part = {name: column[start : start + _CHUNK] for name, column in steps.items()}
            with torch.no_grad():
                raw[start : start + _CHUNK] = self._bonus(self._tensors(part)).cpu().numpy()
        zeros = np.zeros_like(raw)
        # Bonus returns continue across episodes: novelty does not depend on their ends.
        self._returns.update(gae_columns(zeros, zeros, raw, zeros, lengths, _DISCOUNT, 1.0))
        bonus = (self._weight * raw / float(self._returns.std)).astype(np.float32)
        self._figures = {"bonus_mean": float(bonus.mean()), "bonus_max": float(bonus.max())}
        return self._combined(transitions, bonus), lengths

    def _combined(self, transitions: Transitions, bonus: np.ndarray) -> Transitions:
        cfg, reward = self._cfg, np.asarray(transitions["reward"])
        if cfg.intrinsic_reward_type == "assign":
            return {**transitions, "reward": bonus.reshape(reward.shape)}
        if cfg.extrinsic_reward_norm:
            reward = reward / np.float32(cfg.extrinsic_reward_norm_max)
        if cfg.intrinsic_reward_type == "new":
            return {**transitions, "reward": reward, "intrinsic_reward": bonus}
        return {**transitions, "reward": reward + bonus.reshape(reward.shape)}

    def train(self, train_iter: int = 0, envstep: int = 0) -> None:
        cfg, losses = self._cfg, []
        facts: dict[str, float] = {}
        for _ in range(cfg.update_per_collect if len(self._recent) else 0):
            loss, facts = self._loss(self._tensors(self._recent.sample(cfg.batch_size)))
            losses.append(self._descend(loss))
        figures = {**self._figures, **facts, **({"loss": float(np.mean(losses))} if losses else {})}
        self._log(figures, train_iter, envstep)
        if train_iter - self._cleared_at >= cfg.clear_buffer_per_iters:
            self._recent.clear()
            self._cleared_at = train_iter

    def _tensors(self, steps: dict[str, np.ndarray]) -> dict[str, Tensor]:
        return {name: self._tensor(column) for name, column in steps.items()}


@REWARD_MODEL_REGISTRY.register("rnd")
class RndRewardModel(CuriosityRewardModel):
    """Random network distillation (Burda et al. 2018).

    Rewards observations whose random features a network cannot predict yet: the bonus is the
    squared error of the prediction at ``next_obs``, averaged over the features. Both networks get
    observations normalised by running moments and clipped.
    """

    config: Config = dict(
        obs_norm=True,
        obs_norm_clamp_min=-5.0,
        obs_norm_clamp_max=5.0,
    )

    def build(self) -> None:
        super().build()
        shape, sizes = self._require_obs(), self._cfg.hidden_size_list
        target, predictor = (_features(shape, sizes).to(self._device) for _ in range(2))
        self._target, self._predictor = target.requires_grad_(False), predictor
        self._optimize(predictor, lr=self._cfg.learning_rate)
        self._moments = RunningMeanStd(shape=(shape,) if isinstance(shape, int) else tuple(shape))
        self.networks.update(target=target, moments=self._moments)

    def observe(self, transitions: Transitions, lengths: np.ndarray) -> None:
        super().observe(transitions, lengths)
        # The paper initialises the moments with a random agent; here the first collection does.
        if self._cfg.obs_norm:
            self._moments.update(self._steps(transitions)["next_obs"])

    def _bonus(self, steps: dict[str, Tensor]) -> Tensor:
        obs, cfg = steps["next_obs"], self._cfg
        if cfg.obs_norm:
            mean, std = self._tensor(self._moments.mean), self._tensor(self._moments.std)
            obs = ((obs - mean) / std).clamp(cfg.obs_norm_clamp_min, cfg.obs_norm_clamp_max)
        errors: Tensor = (self._predictor(obs) - self._target(obs)).pow(2).mean(-1)
        return errors

    def _loss(self, steps: dict[str, Tensor]) -> tuple[Tensor, dict[str, float]]:
        return self._bonus(steps).mean(), {}


@REWARD_MODEL_REGISTRY.register("icm")
class ICMRewardModel(CuriosityRewardModel):
    """The intrinsic curiosity module (Pathak et al. 2017).

    Rewards transitions whose outcome a network cannot predict in a learned feature space. Features
    φ are learned by predicting the action from ``φ(obs)`` and ``φ(next_obs)`` (the inverse model).
    The bonus of a transition is half the squared error of the predicted ``φ(next_obs)`` (the
    forward model), eq. 6 of the paper; η is ``intrinsic_reward_weight``. The loss is
    ``reverse_scale`` times the inverse model's, plus the forward model's: eq. 7 with β = 0.2 if
    ``reverse_scale`` is 4.
    """

    config: Config = dict(reverse_scale=4.0)

    def build(self) -> None:
        super().build()
        actions = self._require_actions()
        self._encoder = _features(self._require_obs(), self._cfg.hidden_size_list)
        size: Tree = self._encoder[-1].out_features
        self._inverse = MLP(2 * size, size, actions, 2, output_activation=False)
        self._forward = MLP(size + actions, size, size, 2, output_activation=False)
        parts = nn.ModuleList([self._encoder, self._inverse, self._forward])
        self._optimize(parts, lr=self._cfg.learning_rate)

    def _bonus(self, steps: dict[str, Tensor]) -> Tensor:
        features, outcome = self._encoder(steps["obs"]), self._encoder(steps["next_obs"])
        return self._forward_error(features, outcome, steps["action"])

    def _forward_error(self, features: Tensor, outcome: Tensor, action: Tensor) -> Tensor:
        predicted = self._forward(torch.cat([features, self._as_input(action)], dim=-1))
        error: Tensor = 0.5 * (predicted - outcome).pow(2).sum(-1)
        return error

    def _loss(self, steps: dict[str, Tensor]) -> tuple[Tensor, dict[str, float]]:
        features, outcome = self._encoder(steps["obs"]), self._encoder(steps["next_obs"])
        action = steps["action"]
        guess = self._inverse(torch.cat([features, outcome], dim=-1))
        if self._shapes.discrete:
            inverse = F.cross_entropy(guess, action.long().reshape(-1))
        else:
            inverse = F.mse_loss(guess, action.reshape(guess.shape))
        forward = self._forward_error(features, outcome, action).mean()
        facts = {"inverse_loss": float(inverse.detach()), "forward_loss": float(forward.detach())}
        return self._cfg.reverse_scale * inverse + forward, facts


def _features(shape: int | Sequence[int], sizes: list[int]) -> nn.Sequential:
    encoder = build_encoder(shape, sizes)
    # Without a final activation, whose zeros would hide errors.
    return nn.Sequential(encoder, nn.Linear(encoder.output_size, encoder.output_size))

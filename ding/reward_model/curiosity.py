"""What bonuses for novelty share: normalising, adding to the reward, and training on a schedule."""

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from ding.policy.train_columns import flatten_numbers
from ding.reward_model.base_reward_model import (
    BaseRewardModel,
    Shapes,
    State,
    Transitions,
    require_obs_shape,
)
from ding.reward_model.recent_steps import RecentSteps
from ding.rl_utils.columnar import gae_columns
from ding.utils.errors import ConfigError, DataError
from ding.utils.log_writer import ScalarWriter
from ding.utils.running_mean_std import RunningMeanStd

#: Discount of the returns whose standard deviation bonuses are divided by (Burda et al. 2018).
_DISCOUNT = 0.99
#: Transitions whose bonus is computed at a time.
_CHUNK = 4096
_KINDS = ("add", "assign", "new")


class CuriosityRewardModel(BaseRewardModel):
    """Base class of models that pay for transitions that they cannot predict yet.

    A bonus is divided by the running standard deviation of the discounted sums of bonuses within
    a trajectory, multiplied by ``intrinsic_reward_weight``, and used as `intrinsic_reward_type`
    says. A subclass defines `_bonus` and `_loss`, and adds its networks and the optimiser
    ``optimizer`` to `networks`.
    """

    config: dict[str, Any] = dict(
        # What becomes of a bonus: "add" to the reward, "assign" in place of it, or a column of
        # its own named "intrinsic_reward" ("new").
        intrinsic_reward_type="add",
        # Multiplies normalised bonuses; None is 1.
        intrinsic_reward_weight=None,
        # Divide the environment's reward by extrinsic_reward_norm_max.
        extrinsic_reward_norm=True,
        extrinsic_reward_norm_max=1,
        # Of observations and actions; None takes those of the environment.
        obs_shape=None,
        action_shape=None,
        hidden_size_list=[64, 64, 128],
        learning_rate=1e-3,
        batch_size=64,
        # Batches after each collection.
        update_per_collect=100,
        # Updates of the policy after which the transitions that it trains on are dropped, and the
        # most that are kept.
        clear_buffer_per_iters=1,
        buffer_size=10000,
    )

    def __init__(
        self, cfg: EasyDict, shapes: Shapes, device: str, tb_logger: ScalarWriter | None = None
    ) -> None:
        super().__init__(cfg, shapes, device, tb_logger)
        if cfg.intrinsic_reward_type not in _KINDS:
            raise ConfigError(
                f"reward_model.intrinsic_reward_type must be one of {_KINDS}, got "
                f"{cfg.intrinsic_reward_type!r}"
            )
        require_obs_shape(shapes, cfg.type)
        weight = cfg.intrinsic_reward_weight
        self._weight = 1.0 if weight is None else float(weight)
        self._recent = RecentSteps(cfg.buffer_size)
        self._returns = RunningMeanStd()
        self._cleared_at = 0
        self._figures: dict[str, float] = {}

    @abstractmethod
    def _bonus(self, steps: dict[str, torch.Tensor]) -> torch.Tensor:
        """Bonuses of transitions, ``[N]``.

        Args:
            steps: ``obs`` and ``next_obs`` ``[N, *obs_shape]``, ``action``.
        """

    @abstractmethod
    def _loss(self, steps: dict[str, torch.Tensor]) -> tuple[torch.Tensor, dict[str, float]]:
        """The loss of a batch, and what to log of it."""

    def _see(self, transitions: Transitions) -> None:
        """Take note of new transitions, after their bonuses were computed."""

    def collected(
        self, transitions: Transitions, lengths: np.ndarray
    ) -> tuple[Transitions, np.ndarray]:
        steps = _seen(transitions, self._cfg.type)
        with torch.no_grad():
            parts = [self._bonus(self._tensors(part)) for part in _chunks(steps)]
        raw = torch.cat(parts).cpu().numpy()
        zeros = np.zeros_like(raw)
        # Bonuses do not end with an episode: what is new remains new in the next one.
        self._returns.update(gae_columns(zeros, zeros, raw, zeros, lengths, _DISCOUNT, 1.0))
        bonus = self._weight * raw / float(self._returns.std)
        self._see(steps)
        self._recent.add(steps)
        self._figures = {"bonus_mean": float(bonus.mean()), "bonus_max": float(bonus.max())}
        return self._combined(transitions, bonus.astype(np.float32)), lengths

    def _combined(self, transitions: Transitions, bonus: np.ndarray) -> Transitions:
        cfg, reward = self._cfg, np.asarray(transitions["reward"])
        if cfg.intrinsic_reward_type == "assign":
            return {**transitions, "reward": bonus.reshape(reward.shape)}
        if cfg.extrinsic_reward_norm:
            reward = reward / np.float32(cfg.extrinsic_reward_norm_max)
        if cfg.intrinsic_reward_type == "new":
            return {**transitions, "reward": reward, "intrinsic_reward": bonus}
        return {**transitions, "reward": reward + bonus.reshape(reward.shape)}

    def train(self, train_iter: int, envstep: int) -> None:
        cfg, losses = self._cfg, []
        optimizer: Any = self.networks["optimizer"]
        facts: dict[str, float] = {}
        for _ in range(cfg.update_per_collect if len(self._recent) else 0):
            loss, facts = self._loss(self._tensors(self._recent.sample(cfg.batch_size)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        if losses:
            self._figures["loss"] = float(np.mean(losses))
        self._log({**self._figures, **facts}, train_iter, envstep)
        if train_iter - self._cleared_at >= cfg.clear_buffer_per_iters:
            self._recent.clear()
            self._cleared_at = train_iter

    def _tensors(self, steps: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
        found = {name: torch.as_tensor(col, device=self._device) for name, col in steps.items()}
        return {
            name: col if name == "action" and self._shapes.discrete else col.float()
            for name, col in found.items()
        }

    def state_dict(self) -> State:
        return {
            **super().state_dict(),
            "recent": self._recent.state_dict(),
            "returns": self._returns.state_dict(),
            "cleared_at": self._cleared_at,
        }

    def checkpoint(self) -> State:
        return {name: part for name, part in self.state_dict().items() if name != "recent"}

    def load_state_dict(self, state_dict: State) -> None:
        super().load_state_dict(state_dict)
        if "recent" in state_dict:
            self._recent.load_state_dict(state_dict["recent"])
        self._returns.load_state_dict(state_dict["returns"])
        self._cleared_at = state_dict["cleared_at"]


def _seen(transitions: Transitions, type_: str) -> dict[str, np.ndarray]:
    """The columns that bonuses depend on."""
    flat = flatten_numbers(transitions)
    steps = {name: flat[name] for name in ("obs", "next_obs", "action")}
    for name, column in steps.items():
        if not isinstance(column, np.ndarray):
            raise DataError(
                f"reward_model.type={type_!r}: {name!r} of a transition must be one array, got "
                f"{type(column).__name__}"
            )
    return steps


def _chunks(steps: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    starts = range(0, len(steps["obs"]), _CHUNK)
    return [{name: col[i : i + _CHUNK] for name, col in steps.items()} for i in starts]

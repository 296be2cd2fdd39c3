"""The inverse dynamics of behavioural cloning from observation (Torabi et al. 2018)."""

from typing import Any

import numpy as np
import torch
from easydict import EasyDict
from torch import nn
from torch.nn import functional as F

from ding.policy.train_columns import flatten_numbers
from ding.reward_model.base_reward_model import BaseRewardModel, Shapes, State, Transitions
from ding.reward_model.recent_steps import RecentSteps
from ding.utils.errors import ConfigError
from ding.utils.log_writer import ScalarWriter


class InverseDynamics(BaseRewardModel):
    """Learns from the policy's own steps which action leads from one observation to the next.

    It changes no reward; `label` gives the actions of an expert whose observations are known.
    """

    config: dict[str, Any] = dict(
        learn=dict(
            idm_batch_size=64,
            idm_learning_rate=1e-3,
            idm_weight_decay=0.0,
            # Passes over all own steps after each collection.
            idm_train_epoch=10,
        ),
        # The kind of the actions is the environments'; `action_space` is not read.
        model=dict(idm_encoder_hidden_size_list=[64, 64], action_space=None),
        # Own steps of a round, as a share of those before the first one.
        alpha=0.2,
    )

    def __init__(
        self, cfg: EasyDict, shapes: Shapes, device: str, tb_logger: ScalarWriter | None = None
    ) -> None:
        super().__init__(cfg, shapes, device, tb_logger)
        if not isinstance(shapes.obs_shape, int) or shapes.action_shape is None:
            raise ConfigError(
                "serial_pipeline_bco needs observations that are vectors, and one choice or one "
                f"vector as action; the environments have {shapes}"
            )
        layers: list[nn.Module] = []
        width = 2 * shapes.obs_shape
        for size in cfg.model.idm_encoder_hidden_size_list:
            layers += [nn.Linear(width, size), nn.ReLU()]
            width = size
        network = nn.Sequential(*layers, nn.Linear(width, shapes.action_shape)).to(device)
        optimizer = torch.optim.Adam(
            network.parameters(),
            lr=cfg.learn.idm_learning_rate,
            weight_decay=cfg.learn.idm_weight_decay,
        )
        self._network, self._optimizer = network, optimizer
        self.networks = {"inverse_dynamics": network, "optimizer": optimizer}
        self._steps = RecentSteps(2**62)

    def collected(
        self, transitions: Transitions, lengths: np.ndarray
    ) -> tuple[Transitions, np.ndarray]:
        flat = flatten_numbers(transitions)
        names = ("obs", "next_obs", "action")
        self._steps.add({name: np.asarray(flat[name]) for name in names})
        return transitions, lengths

    def train(self, train_iter: int, envstep: int) -> None:
        learn, losses = self._cfg.learn, []
        batches = -(-len(self._steps) // learn.idm_batch_size)
        for _ in range(learn.idm_train_epoch * batches):
            steps = self._steps.sample(learn.idm_batch_size)
            loss = self._loss(self._predict(steps["obs"], steps["next_obs"]), steps["action"])
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
            losses.append(float(loss.detach()))
        if losses:
            self._log({"loss": float(np.mean(losses))}, train_iter, envstep)

    def _loss(self, predicted: torch.Tensor, action: np.ndarray) -> torch.Tensor:
        """Cross-entropy of choices, squared error of vectors."""
        wanted = torch.as_tensor(action, device=self._device)
        if self._shapes.discrete:
            return F.cross_entropy(predicted, wanted.long().reshape(-1))
        return F.mse_loss(torch.tanh(predicted), wanted.float().reshape(predicted.shape))

    def _predict(self, obs: Any, next_obs: Any) -> torch.Tensor:
        seen = np.concatenate([np.asarray(obs), np.asarray(next_obs)], 1)
        found: torch.Tensor = self._network(
            torch.as_tensor(seen, dtype=torch.float32, device=self._device)
        )
        return found

    def label(self, obs: Any, next_obs: Any) -> np.ndarray:
        """The likeliest actions: int64 ``[N, 1]``, or float32 ``[N, A]`` in (-1, 1)."""
        with torch.no_grad():
            predicted = self._predict(obs, next_obs)
            if self._shapes.discrete:
                return predicted.argmax(-1, keepdim=True).cpu().numpy()
            return torch.tanh(predicted).cpu().numpy()

    def state_dict(self) -> State:
        return {**super().state_dict(), "steps": self._steps.state_dict()}

    def load_state_dict(self, state_dict: State) -> None:
        super().load_state_dict(state_dict)
        self._steps.load_state_dict(state_dict["steps"])

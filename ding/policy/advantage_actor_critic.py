"""What on-policy actor-critic methods share: a critic, and advantages by it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ding.data import tree_map, tree_take
from ding.policy.networks import stochastic_actor
from ding.policy.policy_gradient import PolicyGradient
from ding.rl_utils.columnar import gae_columns
from ding.utils.default_helper import RunningMeanStd


class AdvantageActorCritic(PolicyGradient):
    """An actor that learns from how much better an action was than its critic expected.

    With ``multi_agent`` all that the critic says is ``[B, agents]``, and so are advantages.

    Where ``learn.value_norm`` is set, the critic predicts returns divided by the standard
    deviation of the returns seen so far; everything else is in the units of the reward.

    In the data that it learns from, a trajectory ends where ``traj_flag`` is set (``done`` without
    it), and wherever ``step_id`` does not go on by one.
    """

    config: dict[str, Any] = dict(
        priority=False,
        priority_IS_weight=False,
        multi_agent=False,
        learn=dict(value_weight=0.5),
        # Give exactly one of n_sample and n_episode.
        collect=dict(gae_lambda=0.95),
    )

    #: Whether advantages are estimated anew at the start of each pass over the data.
    _recompute_adv = False
    _learned: Mapping[str, str] = {"optimizer": "_optimizer", "value_norm": "_running_mean_std"}
    _acted_with = {"value_norm": "_running_mean_std"}
    _transition_outputs = ("logit", "value")
    _learn_options = {"mode": "compute_actor_critic"}
    _eval_options = {"mode": "compute_actor"}
    networks = stochastic_actor("discrete", "continuous")

    _network, _team_network = "vac", "mavac"

    # ------------------------------------------------------------------ learn
    _logged: tuple[str, ...] = ("value_loss", "value_mean", "value_max")

    def _init_returns(self) -> None:
        """What both learn and collect mode need to make advantages."""
        self._gamma = self._cfg.collect.discount_factor
        self._gae_lambda = self._cfg.collect.gae_lambda
        if not hasattr(self, "_running_mean_std"):
            self._running_mean_std = RunningMeanStd()

    @property
    def _value_norm(self) -> bool:
        return self._cfg.learn.get("value_norm", False)

    @property
    def _value_std(self) -> float:
        """The critic's unit, in the units of the reward."""
        return float(self._running_mean_std.std) if self._value_norm else 1.0

    def _prepare(self, batch: dict[str, Any], epoch: int) -> None:
        if self._recompute_adv or epoch == 0:
            self._estimate_returns(batch, first=epoch == 0)

    def _estimate_returns(self, batch: dict[str, Any], first: bool) -> None:
        """Set ``adv``, and ``return`` and ``value`` in the critic's unit, each ``[N]``.

        With several agents all that the critic says is ``[N, agents]``, and so are advantages.
        """
        if self._recompute_adv:
            with torch.no_grad():
                batch["value"] = self._critic(batch["obs"])
            done = batch["done"].cpu().numpy()
            ends = _trajectory_ends(batch.get("traj_flag"), batch.get("step_id"), done)
            next_obs = tree_map(lambda leaf: leaf[ends], batch["next_obs"])
            adv = self._advantages(
                batch["value"].cpu().numpy(), next_obs, batch["reward"].cpu().numpy(), done, ends
            )
            batch["adv"] = torch.from_numpy(adv).to(self._device)
        self._set_returns(batch, first)

    def _set_returns(self, batch: dict[str, Any], first: bool) -> None:
        """Set ``return`` from ``adv`` and ``value``; ``first`` if these samples are new."""
        returns = batch["adv"] + batch["value"] * self._value_std
        if first and self._value_norm:
            # Once for each sample, not once for each epoch.
            self._running_mean_std.update(returns.flatten())
        batch["return"] = returns / self._value_std

    def _critic(self, obs: Any) -> torch.Tensor:
        return self._model(obs, mode="compute_critic")["value"]

    def _advantages(
        self,
        value: np.ndarray,
        next_obs: Any,
        reward: np.ndarray,
        done: np.ndarray,
        ends: np.ndarray,
    ) -> np.ndarray:
        """Generalised advantage estimates, float32 ``[N]``.

        Args:
            value: ``[N]``, as the critic gives them.
            next_obs: What followed each trajectory's last step, ``[n_traj, *obs_shape]``.
            done: ``[N]``, terminated; a trajectory cut otherwise is bootstrapped.
            ends: ``[n_traj]``, index of each trajectory's last step.
        """
        # Within a trajectory an observation's value is the previous row's next value.
        next_value = np.roll(value, -1, axis=0)
        with torch.no_grad():
            next_value[ends] = self._critic(next_obs).cpu().numpy()
        scale = self._value_std
        lengths = np.diff(ends, prepend=-1)
        return gae_columns(
            value * scale, next_value * scale, reward, done, lengths, self._gamma, self._gae_lambda
        )

    # ------------------------------------------------------------------ collect

    def _init_collect(self) -> None:
        super()._init_collect()
        self._init_returns()

    def _get_train_columns(self, columns: dict[str, Any], lengths: np.ndarray) -> dict[str, Any]:
        ends = np.cumsum(lengths) - 1
        done = columns["done"]
        traj_flag = np.zeros(len(done), dtype=bool)
        traj_flag[ends] = True
        adv = self._advantages(
            columns["value"],
            self._model_input(tree_take(columns["next_obs"], ends)),
            columns["reward"],
            np.zeros_like(done) if self._cfg.learn.ignore_done else done,
            ends,
        )
        return {
            **columns,
            "reward": columns["reward"][:, None],
            "adv": adv,
            "traj_flag": traj_flag,
            "step_id": self._step_ids(lengths),
        }


def _trajectory_ends(
    traj_flag: torch.Tensor | None, step_id: torch.Tensor | None, done: np.ndarray
) -> np.ndarray:
    """Indices of the rows after which another trajectory starts, the last row included."""
    flag = (done if traj_flag is None else traj_flag.cpu().numpy()).astype(bool)
    if step_id is not None:
        flag[:-1] |= np.diff(step_id.cpu().numpy()) != 1
    flag[-1] = True
    return np.flatnonzero(flag)

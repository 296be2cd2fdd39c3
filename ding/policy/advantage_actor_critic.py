"""A2C (Mnih et al. 2016), and the base of on-policy actor-critics: advantage estimation."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ding.data import tree_map, tree_take
from ding.policy._types import Arrays, Lengths, Log, Losses, Obs, Output, Rollout, Samples
from ding.policy.common_utils import as_batch, flatten_numbers
from ding.policy.joint import joint_moments
from ding.policy.networks import stochastic_actor
from ding.policy.policy_gradient import PolicyGradient
from ding.rl_utils import a2c_data, a2c_error
from ding.rl_utils.gae import gae_columns
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY
from ding.utils.default_helper import RunningMeanStd


class AdvantageActorCritic(PolicyGradient):
    """Base of actor-critic policies with generalised advantage estimation.

    With ``multi_agent`` the critic's outputs and the advantages are ``[B, agents]``.

    If ``learn.value_norm`` is set, the critic predicts returns divided by the standard deviation
    of all returns so far, where each sample counts once. This unit changes during training;
    everything outside the critic, including ``value`` and ``adv`` of samples, is in the unit of the
    reward.

    In training data, a trajectory ends where ``traj_flag`` is set (``done`` without it), and
    wherever ``step_id`` does not increase by one.
    """

    config = dict(
        priority=False,
        priority_IS_weight=False,
        multi_agent=False,
        learn=dict(value_weight=0.5),
        # Give exactly one of n_sample and n_episode.
        collect=dict(gae_lambda=0.95),
    )

    #: Whether advantages are estimated again at the start of each pass over the data.
    _recompute_adv = False
    _learned: Mapping[str, str] = {
        "optimizer": "_optimizer",
        "value_norm": "_running_mean_std",
        "next_step_id": "_next_step_id",
    }
    _acted_with = {"value_norm": "_running_mean_std"}
    _transition_outputs = ("logit", "value")
    _learn_options = {"mode": "compute_actor_critic"}
    _eval_options = {"mode": "compute_actor"}
    networks = stochastic_actor("discrete", "continuous")

    _network, _team_network = "vac", "mavac"

    _logged: tuple[str, ...] = ("value_loss", "value_mean", "value_max")

    def _batch(self, data: Samples) -> Rollout:
        batch = super()._batch(data)
        if self._recompute_adv and self._cfg.learn.ignore_done and "traj_flag" not in batch:
            # Episodes still end there, and advantages must not cross these ends.
            batch["traj_flag"] = flatten_numbers(as_batch(data, ("done",)))["done"]
        return batch

    def _init_returns(self) -> None:
        """Set the attributes with which learn and collect mode compute advantages."""
        self._gamma = self._cfg.collect.discount_factor
        self._gae_lambda = self._cfg.collect.gae_lambda
        if not hasattr(self, "_running_mean_std"):
            self._running_mean_std = RunningMeanStd()

    @property
    def _value_norm(self) -> bool:
        return self._cfg.learn.get("value_norm", False)

    @property
    def _value_std(self) -> float:
        """The critic's current unit, in units of the reward."""
        return float(self._running_mean_std.std) if self._value_norm else 1.0

    def _estimate_returns(self, batch: Rollout, first: bool) -> None:
        """Set ``adv``, and ``return`` and ``value`` in the critic's unit, each ``[N]``.

        Args:
            first: Whether this is the first pass over these samples.
        """
        if self._recompute_adv:
            batch["value"] = self._values(batch["obs"])
            done = batch["done"].cpu().numpy()
            ends = _trajectory_ends(batch.get("traj_flag"), batch.get("step_id"), done)
            next_obs = tree_map(lambda leaf: leaf[ends], batch["next_obs"])
            adv = self._advantages(
                batch["value"].cpu().numpy(), next_obs, batch["reward"].cpu().numpy(), done, ends
            )
            batch["adv"] = torch.from_numpy(adv).to(self._device)
        self._set_returns(batch, slice(None) if first else None)

    def _set_returns(self, batch: Rollout, new: torch.Tensor | slice | None) -> None:
        """Set ``return`` ``[N]``, and convert it and ``value`` to the critic's unit; ``new`` is the
        index of samples that are not counted yet, None if there are none."""
        returns = batch["adv"] + batch["value"]
        if self._value_norm and new is not None:
            moments = joint_moments(returns[new], self._joint)
            # Off-policy, all samples of a batch may have been counted before.
            if moments.number > 0:
                self._running_mean_std.merge(*(moment.item() for moment in moments))
        batch["return"] = returns / self._value_std
        batch["value"] = batch["value"] / self._value_std

    def _values(self, obs: Obs) -> torch.Tensor:
        """The critic's predictions in the unit of the reward."""
        with self._as_acting():
            return self._model(obs, mode="compute_critic")["value"] * self._value_std

    def _advantages(
        self,
        value: np.ndarray,
        next_obs: Obs,
        reward: np.ndarray,
        done: np.ndarray,
        ends: np.ndarray,
    ) -> np.ndarray:
        """Generalised advantage estimates, float32 ``[N]``.

        Args:
            value: ``[N]``, in the unit of the reward.
            next_obs: Observation after each trajectory's last step, ``[n_traj, *obs_shape]``.
            done: ``[N]``, terminated; trajectories that end otherwise are bootstrapped.
            ends: ``[n_traj]``, index of each trajectory's last step.
        """
        # Within a trajectory, the next value is the value of the next row.
        next_value = np.roll(value, -1, axis=0)
        next_value[ends] = self._values(next_obs).cpu().numpy()
        lengths = np.diff(ends, prepend=-1)
        return gae_columns(value, next_value, reward, done, lengths, self._gamma, self._gae_lambda)

    def _init_collect(self) -> None:
        super()._init_collect()
        self._init_returns()

    def _forward_collect_batch(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        output = super()._forward_collect_batch(obs, *args, **kwargs)
        if "value" in output:
            output["value"] = output["value"] * self._value_std
        return output

    def _get_train_columns(self, columns: Arrays, lengths: Lengths) -> Arrays:
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
    """Index of the last row of each trajectory."""
    flag = (done if traj_flag is None else traj_flag.cpu().numpy()).astype(bool)
    if step_id is not None:
        flag[:-1] |= np.diff(step_id.cpu().numpy()) != 1
    flag[-1] = True
    return np.flatnonzero(flag)


class CountedSteps:
    """Ids of the steps in running statistics, so that each step is counted only once.

    A step is removed once it has certainly left the buffer.

    Args:
        buffer_size: Total number of samples in the buffers.
    """

    def __init__(self, buffer_size: int) -> None:
        # Steps are not first drawn in the order of their collection, so a step may still be in the
        # buffer when `buffer_size` others were added here.
        self._most = 2 * buffer_size
        self._steps: dict[int, None] = {}

    def take_new(self, step_ids: torch.Tensor | None) -> torch.Tensor | slice:
        """Store steps, int64 ``[B]``, and return the indices of new ones; of a step that occurs
        twice, the first. Without step ids all are new."""
        if step_ids is None:
            return slice(None)
        places = []
        for place, step in enumerate(step_ids.tolist()):
            if step not in self._steps:
                self._steps[step] = None
                places.append(place)
        while len(self._steps) > self._most:
            del self._steps[next(iter(self._steps))]
        return torch.tensor(places, dtype=torch.int64, device=step_ids.device)

    def state_dict(self) -> dict[str, Any]:
        """The steps, oldest first."""
        return {"steps": torch.tensor(list(self._steps), dtype=torch.int64)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self._steps = dict.fromkeys(state["steps"].tolist())


@POLICY_REGISTRY.register("a2c")
class A2CPolicy(AdvantageActorCritic):
    """Advantage Actor-Critic (Mnih et al. 2016), synchronous, for discrete and continuous actions.

    ``learn_mode.forward`` takes the samples of one collection, as a list of dicts or as one dict of
    tensors with ``B`` rows: ``obs`` and ``next_obs`` ``[B, *obs_shape]``, ``action`` int64 ``[B]``
    (continuous: float32 ``[B, action_shape]``) and ``logit`` ``[B, action_shape]`` (continuous: a
    dict of ``mu`` and ``sigma`` of this shape); ``reward``, ``done``, ``value`` and ``adv``
    ``[B]``, with ``value`` and ``adv`` from the critic that collected. Optional are ``traj_flag``
    and ``step_id`` ``[B]``, which mark where trajectories end. It makes one pass, in minibatches of
    ``learn.batch_size``, and returns one log, the means over minibatches: a dict of floats such as
    ``policy_loss``, ``value_loss``, ``entropy_loss`` and ``grad_norm``.

    Example:

        >>> from ding.policy import A2CPolicy
        >>> cfg = A2CPolicy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2)
        >>> learn = A2CPolicy(cfg).learn_mode.forward  # learn(samples) returns the log
    """

    paper = "Mnih et al. 2016"
    actions: tuple[str, ...] = ("discrete", "multi-discrete", "continuous", "multi-agent")
    config = dict(
        type="a2c",
        learn=dict(
            update_per_collect=1,
            betas=(0.9, 0.999),
            eps=1e-8,
            # Maximum gradient norm.
            grad_norm=0.5,
        ),
        collect=dict(discount_factor=0.9),
    )

    _refused = {"priority": "remove the key"}
    _logs_grad_norm = True
    _silent_keys = ("learn.discount_factor", "learn.normalize_advantage")

    def _init_learn(self) -> None:
        cfg = self._cfg.learn
        self._optimizer = Adam(
            self._model.parameters(),
            lr=cfg.learning_rate,
            betas=tuple(cfg.betas),
            eps=cfg.eps,
            grad_clip_type="clip_norm",
            clip_value=cfg.grad_norm,
        )
        self._init_returns()

    def _learn(self, batch: Rollout) -> Log:
        """One pass; returns one log with the means over minibatches."""
        self._estimate_returns(batch, first=True)
        logs = [self._update(part) for part in self._minibatches(batch)]
        return {name: sum(log[name] for log in logs) / len(logs) for name in logs[0]}

    def _losses(self, batch: Rollout, output: Output, adv: Tensor) -> Losses:
        data = a2c_data(
            output["logit"],
            batch["action"],
            output["value"],
            adv,
            batch["return"],
            batch.get("weight"),
        )
        return a2c_error(data)._asdict(), {}

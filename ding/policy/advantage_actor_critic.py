"""What on-policy actor-critic methods share: advantages, minibatches, acting."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from easydict import EasyDict

from ding.data import tree_map, tree_take
from ding.model import model_wrap
from ding.policy.base_policy import Policy
from ding.policy.checks import check_loss, require_mode, to_floats
from ding.policy.common_utils import default_preprocess_learn
from ding.rl_utils.columnar import gae_columns
from ding.utils import allreduce_data
from ding.utils.default_helper import RunningMeanStd
from ding.utils.errors import ConfigError


class AdvantageActorCritic(Policy):
    """An actor that learns from how much better an action was than its critic expected.

    With ``model.action_shape`` a list of K sizes an action is K independent choices, int64
    ``[B, K]``; its ``logit`` in samples holds those of all choices side by side. With
    ``multi_agent`` all that the critic says is ``[B, agents]``, and so are advantages.

    Where ``learn.value_norm`` is set, the critic predicts returns divided by the standard
    deviation of the returns seen so far; everything else is in the units of the reward.

    An algorithm says what its losses are (``_losses``) and sets up ``_optimizer``.
    """

    _optimizer: Any
    #: Whether advantages are estimated anew at the start of each pass over the data.
    _recompute_adv = False
    _transition_outputs = ("logit", "value")

    def default_model(self) -> tuple[str, list[str]]:
        if self._cfg.multi_agent:
            return "mavac", ["ding.model.template.mavac"]
        return "vac", ["ding.model.template.vac"]

    def _create_model(self, cfg: EasyDict, model: torch.nn.Module | None) -> torch.nn.Module:
        if cfg.action_space not in ("discrete", "continuous"):
            raise ConfigError(
                f"policy.action_space is {cfg.action_space!r}; {type(self).__name__} knows "
                "'discrete' and 'continuous'"
            )
        if model is None:
            cfg = EasyDict({**cfg, "model": {"action_space": cfg.action_space, **cfg.model}})
            if cfg.model.action_space != cfg.action_space:
                raise ConfigError(
                    f"policy.action_space is {cfg.action_space!r}, policy.model.action_space "
                    f"{cfg.model.action_space!r}: they must be the same"
                )
        built = super()._create_model(cfg, model)
        require_mode(built, "compute_actor, compute_critic and compute_actor_critic")
        return built

    # ------------------------------------------------------------------ learn

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

    def _forward_learn(self, data: Any) -> list[dict[str, Any]]:
        """``learn.epoch_per_collect`` passes over ``data``, or one, in shuffled minibatches.

        Args:
            data: Samples of trajectories, in time: whole ones, parts, one after the other. One
                ends where ``traj_flag`` is set (``done`` without it), and wherever ``step_id``
                does not go on by one.

        Returns:
            One log for each minibatch.

        Raises:
            DataError: A loss is not finite.
        """
        batch = default_preprocess_learn(
            data, ignore_done=self._cfg.learn.ignore_done, device=self._device
        )
        batch = one_action(batch)
        self._train_mode(True)
        logs = []
        for epoch in range(self._cfg.learn.get("epoch_per_collect", 1)):
            if self._recompute_adv or epoch == 0:
                self._estimate_returns(batch, first=epoch == 0)
            logs += [self._update(minibatch) for minibatch in self._minibatches(batch)]
        return logs

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

    def _minibatches(self, batch: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Shuffled parts of nearly equal size, none larger than ``learn.batch_size``."""
        names = ("obs", "action", "logit", "value", "adv", "return", "weight")
        used = {name: batch[name] for name in names if batch.get(name) is not None}
        count = float(len(batch["return"]))
        order = torch.randperm(int(count)).to(self._device)
        if self._cfg.get("multi_gpu", False):
            # Each rank must sync as often as the others, whatever the size of its own data.
            count = float(allreduce_data(count, "avg"))
        for index in order.tensor_split(math.ceil(count / self._cfg.learn.batch_size)):
            yield tree_take(used, index)

    def _update(self, batch: dict[str, Any]) -> dict[str, Any]:
        output = self._model(batch["obs"], mode="compute_actor_critic")
        adv = batch["adv"]
        if self._cfg.learn.adv_norm:
            # The uncorrected deviation, so that a minibatch of one is zero and not NaN.
            adv = (adv - adv.mean()) / (adv.std(correction=0) + 1e-8)
        total_loss, log = self._losses(batch, output, adv)
        log.update(self._log_values(total_loss, output, adv))
        check_loss(self, log["total_loss"], batch)
        self._optimizer.zero_grad()
        total_loss.backward()
        if self._cfg.get("multi_gpu", False):
            self.sync_gradients(self._model)
        self._optimizer.step()
        return {"cur_lr": self._optimizer.param_groups[0]["lr"], **log}

    def _losses(
        self, batch: dict[str, Any], output: dict[str, Any], adv: torch.Tensor
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """What is to be minimised, and what to log of it.

        Args:
            batch: What was collected, and ``return`` ``[B]`` in the critic's unit.
            output: What the network says now: ``logit`` and ``value``.
            adv: ``[B]``.
        """
        raise NotImplementedError

    def _log_values(
        self, total_loss: torch.Tensor, output: dict[str, Any], adv: torch.Tensor
    ) -> dict[str, float]:
        value = output["value"].detach()
        values = {
            "total_loss": total_loss,
            "adv_max": adv.max(),
            "adv_mean": adv.mean(),
            "value_mean": value.mean(),
            "value_max": value.max(),
        }
        if self._cfg.action_space == "continuous":
            values["mu_mean"] = output["logit"]["mu"].detach().mean()
            values["sigma_mean"] = output["logit"]["sigma"].detach().mean()
        return dict(zip(values, to_floats(*values.values())))

    def _monitor_vars_learn(self) -> list[str]:
        names = ["cur_lr", "total_loss", "policy_loss", "value_loss", "entropy_loss"]
        names += ["adv_max", "adv_mean", "value_mean", "value_max"]
        if self._cfg.action_space == "continuous":
            names += ["mu_mean", "sigma_mean"]
        return names

    def _state_dict_learn(self) -> dict[str, Any]:
        state = super()._state_dict_learn()
        return {**state, "value_norm": self._running_mean_std.state_dict()}

    def _load_state_dict_learn(self, state_dict: dict[str, Any]) -> None:
        super()._load_state_dict_learn(state_dict)
        if "value_norm" in state_dict:
            self._running_mean_std.load_state_dict(state_dict["value_norm"])

    # ------------------------------------------------------------------ collect

    def _init_collect(self) -> None:
        self._unroll_len = self._cfg.collect.unroll_len
        sample = "multinomial" if self._cfg.action_space == "discrete" else "reparam"
        self._collect_model = model_wrap(self._model, f"{sample}_sample")
        self._init_returns()
        # Policies whose samples meet in one batch begin at numbers that are far apart.
        self._next_step_id = int(np.random.randint(1 << 22)) << 40

    def _forward_collect_batch(self, obs: Any) -> dict[str, torch.Tensor]:
        """Actions drawn from the policy, with the ``logit`` and ``value`` that belong to them."""
        self._train_mode(False)
        return one_action(self._collect_model.forward(obs, mode="compute_actor_critic"))

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

    def _step_ids(self, lengths: np.ndarray) -> np.ndarray:
        """Numbers that follow each other within a trajectory and nowhere else, int64 ``[N]``.

        They tell the neighbours of a trajectory from others when data is cut and joined.
        """
        number = np.arange(lengths.sum()) + np.repeat(np.arange(len(lengths)), lengths)
        number += self._next_step_id
        self._next_step_id = int(number[-1]) + 2
        return number

    def _state_dict_collect(self) -> dict[str, Any]:
        return {
            **super()._state_dict_collect(),
            "value_norm": self._running_mean_std.state_dict(),
        }

    def _load_state_dict_collect(self, state_dict: dict[str, Any]) -> None:
        super()._load_state_dict_collect(state_dict)
        if "value_norm" in state_dict:
            self._running_mean_std.load_state_dict(state_dict["value_norm"])

    # ------------------------------------------------------------------ eval

    def _init_eval(self) -> None:
        sample = "argmax" if self._cfg.action_space == "discrete" else "deterministic"
        self._eval_model = model_wrap(self._model, f"{sample}_sample")

    def _forward_eval_batch(self, obs: Any) -> dict[str, torch.Tensor]:
        self._train_mode(False)
        return one_action(self._eval_model.forward(obs, mode="compute_actor"))


def one_action(output: dict[str, Any]) -> dict[str, Any]:
    """Actions and logits of several choices, where they come as lists, as one tensor each."""
    joined = dict(output)
    if isinstance(output.get("action"), list | tuple):
        joined["action"] = torch.stack([part.reshape(-1) for part in output["action"]], dim=-1)
    if isinstance(output.get("logit"), list | tuple):
        joined["logit"] = torch.cat(list(output["logit"]), dim=-1)
    return joined


def _trajectory_ends(
    traj_flag: torch.Tensor | None, step_id: torch.Tensor | None, done: np.ndarray
) -> np.ndarray:
    """Indices of the rows after which another trajectory starts, the last row included."""
    flag = (done if traj_flag is None else traj_flag.cpu().numpy()).astype(bool)
    if step_id is not None:
        flag[:-1] |= np.diff(step_id.cpu().numpy()) != 1
    flag[-1] = True
    return np.flatnonzero(flag)

"""Decision Transformer: acting by sequence prediction, given a target return (Chen et al. 2021)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ding.policy._types import Log, Output, Samples
from ding.policy.base_policy import Policy
from ding.policy.common_utils import as_batch
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError, DataError


@dataclass
class _Episode:
    """The last steps of an environment's running episode.

    Attributes:
        wanted: Scaled return-to-go; None until the reward of the last action is known.
        time: Number of steps taken before the last observation.
    """

    wanted: float | None
    time: int = -1
    obs: list[Tensor] = field(default_factory=list)
    actions: list[Tensor] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)


@POLICY_REGISTRY.register("dt")
class DTPolicy(Policy):
    """Decision Transformer (Chen et al. 2021): offline sequence modelling of actions given returns.

    The network predicts each action from the preceding returns-to-go, states and actions of a
    trajectory segment. When acting, it is conditioned on ``rtg_target`` minus the episode's rewards
    so far, which the evaluator reports.
    """

    paper = "Chen et al. 2021"
    actions = ("discrete", "continuous")
    pipeline = "serial_dt"
    data_columns = ("obs", "action", "reward", "next_obs", "done")
    config = dict(
        type="dt",
        # Target return when acting; None: the highest return in the data set.
        rtg_target=None,
        # Returns are divided by it.
        rtg_scale=1000.0,
        # Mean and standard deviation of the states; None: computed from the data set.
        state_mean=None,
        state_std=None,
        # Number of updates in which the learning rate rises to its full value.
        warmup_steps=10000,
        # Weight decay of AdamW.
        wt_decay=1e-4,
        # Maximum gradient norm.
        clip_grad_norm_p=0.25,
        # Old locations of `learn.batch_size`, `learn.learning_rate` and keys of the model.
        batch_size=None,
        learning_rate=None,
        context_len=None,
        n_blocks=None,
        embed_dim=None,
        h_dim=None,
        n_heads=None,
        dropout_p=None,
        drop_p=None,
        continuous=None,
        model=dict(n_blocks=3, h_dim=128, context_len=20, n_heads=1, drop_p=0.1, continuous=False),
        learn=dict(batch_size=64, learning_rate=1e-4),
        collect=dict(unroll_len=1),
    )

    _learned = {"optimizer": "_optimizer", "update_count": "_update_count"}
    _logged = ("cur_lr", "total_loss")
    _network = "dt"
    _recurrent = True
    # Keys of evaluation scripts, and of policies that share these configs.
    _silent_keys = (
        *("env_name", "stop_value", "device", "log_dir", "max_eval_ep_len", "num_eval_ep"),
        *("num_updates_per_iter", "max_train_iters", "evaluator_env_num", "weight_decay"),
        *("discount_factor", "nstep", "learn.target_update_freq", "learn.kappa"),
        *("learn.min_q_weight", "eval.evaluator.evalu_freq", "env_type"),
    )

    def _init_learn(self) -> None:
        cfg = self._cfg
        self._update_count = 0
        self._optimizer = Adam(
            self._model.parameters(),
            lr=cfg.learn.learning_rate,
            weight_decay=cfg.wt_decay,
            optim_type="adamw",
            grad_clip_type="clip_norm",
            clip_value=cfg.clip_grad_norm_p,
        )

    def _learn(self, batch: dict[str, Any]) -> Log:
        self._update_count += 1
        risen = min(1.0, self._update_count / max(1, self._cfg.warmup_steps))
        for group in self._optimizer.param_groups:
            group["lr"] = self._cfg.learn.learning_rate * risen
        loss = self._descend(self._loss(batch), batch, self._optimizer)
        return {"cur_lr": self._optimizer.param_groups[0]["lr"], "total_loss": loss}

    def _loss(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Cross-entropy or squared error of the actions, over all steps except padding."""
        inputs = (batch["obs"], batch["action"], batch["rtg"][..., None])
        _, predicted, _ = self._model(batch["timestep"], *inputs)
        kept = batch["mask"].bool()
        predicted, action = predicted[kept], batch["action"][kept]
        if self._model.continuous:
            return F.mse_loss(predicted, action)
        return F.cross_entropy(predicted, action)

    def _batch(self, data: Samples) -> dict[str, Tensor]:
        """A batch of trajectory segments: ``obs, action, rtg, timestep, mask``, ``[B, T, ...]``."""
        names = ("obs", "action", "rtg", "timestep", "mask")
        batch = as_batch(data, names, self._device)
        batch["obs"] = self._normed(batch["obs"].float())
        batch["rtg"] = batch["rtg"].float() / self._cfg.rtg_scale
        batch["action"] = self._inputs(batch["action"])
        return batch

    def _check_batch(self, batch: Any) -> None:
        length = batch["timestep"].shape[1]
        if length > self._model.context_len:
            raise DataError(
                f"DTPolicy got pieces of {length} steps; expected at most "
                f"policy.model.context_len={self._model.context_len}"
            )

    def _normed(self, obs: Tensor) -> Tensor:
        mean, std = self._cfg.state_mean, self._cfg.state_std
        if mean is None or std is None:
            return obs
        return (obs - torch.as_tensor(mean).to(obs)) / torch.as_tensor(std).to(obs)

    def _inputs(self, action: Tensor) -> Tensor:
        """Actions in the network's input format: ``[B, T]`` indices, or float32 ``[B, T, A]``."""
        if self._model.continuous:
            return action.float().reshape(*action.shape[:2], -1)
        return action.long().reshape(action.shape[:2])

    @property
    def eval_mode(self) -> Any:
        """Acting conditioned on the return-to-go, from which each reward is subtracted."""
        mode: Any = super().eval_mode
        if mode.batched is not None:
            mode.batched = replace(mode.batched, see_rewards=self.see_rewards)
        return mode

    def _init_eval(self) -> None:
        self._episodes: dict[int, _Episode] = {}

    def _saved_attributes(self) -> set[str]:
        return {*super()._saved_attributes(), "_episodes"}

    def _reset_eval(self, data_id: list[int] | None = None) -> None:
        for env_id in list(self._episodes) if data_id is None else data_id:
            self._episodes.pop(env_id, None)

    def see_rewards(self, env_ids: Sequence[int], rewards: np.ndarray) -> None:
        """Subtract rewards from the environments' returns-to-go."""
        for env_id, reward in zip(env_ids, rewards):
            episode = self._episodes.get(int(env_id))
            if episode is not None and episode.returns:
                left = float(np.sum(reward)) / self._cfg.rtg_scale
                episode.wanted = episode.returns[-1] - left

    def _forward_eval_batch(self, obs: Tensor, env_ids: Sequence[int]) -> Output:
        episodes = [self._seen(env_id, one) for env_id, one in zip(env_ids, self._normed(obs))]
        lengths = [len(episode.obs) for episode in episodes]
        size = (len(episodes), max(lengths))
        states, returns = obs.new_zeros((*size, *obs.shape[1:])), obs.new_zeros((*size, 1))
        times = torch.zeros(size, dtype=torch.long, device=obs.device)
        width = (self._model.act_dim,) if self._model.continuous else ()
        kind = torch.float32 if self._model.continuous else torch.long
        actions = torch.zeros((*size, *width), dtype=kind, device=obs.device)
        for row, (episode, length) in enumerate(zip(episodes, lengths)):
            states[row, :length] = torch.stack(episode.obs)
            returns[row, :length, 0] = torch.tensor(episode.returns)
            times[row, :length] = torch.arange(length) + episode.time - length + 1
            if episode.actions:
                actions[row, : length - 1] = torch.stack(episode.actions)
        _, predicted, _ = self._model(times, states, actions, returns)
        chosen = predicted[torch.arange(len(episodes)), torch.tensor(lengths) - 1]
        action = chosen if self._model.continuous else chosen.argmax(-1)
        for episode, one in zip(episodes, action):
            episode.actions.append(one)
        return {"action": action}

    def _seen(self, env_id: int, obs: Tensor) -> _Episode:
        """The episode with its newest observation, cut to the network's context length."""
        if (episode := self._episodes.get(env_id)) is None:
            target = self._cfg.rtg_target
            if target is None:
                raise ConfigError("policy.rtg_target is missing: the return to act for")
            episode = self._episodes[env_id] = _Episode(float(target) / self._cfg.rtg_scale)
        if episode.wanted is None:
            raise ConfigError(
                "DTPolicy does not see rewards here, and acts for the return that is left: let it "
                "act in an evaluator (ding eval), or call reset() before each episode and "
                "policy.see_rewards after each step"
            )
        most: Any = self._model.context_len
        episode.obs = [*episode.obs, obs][-most:]
        episode.returns = [*episode.returns, episode.wanted][-most:]
        episode.actions = episode.actions[-(most - 1) :] if most > 1 else []
        episode.wanted, episode.time = None, episode.time + 1
        return episode

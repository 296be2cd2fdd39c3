"""Recurrent replay: R2D2 (Kapturowski et al. 2019) and R2D3 (Paine et al. 2019)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from easydict import EasyDict
from torch import Tensor

from ding.data import tree_rows, tree_take
from ding.policy._types import Arrays, Lengths, Network, Samples, Sequences, TeamLoss
from ding.policy.dqfd import DemonstrationPolicy
from ding.policy.learning import follower
from ding.policy.networks import CHOICES, OBS, STATES, Call, Shape
from ding.policy.recurrent import RecurrentPolicy
from ding.rl_utils import q_nstep_td_data, q_nstep_td_error, q_nstep_td_error_with_rescale
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY
from ding.utils.default_helper import one_size
from ding.utils.errors import ConfigError
from ding.utils.settings import at

#: Weight of the largest TD error in a sequence's priority; the mean has the rest (section 2.3).
_ETA = 0.9


@POLICY_REGISTRY.register("r2d2")
class R2D2Policy(RecurrentPolicy):
    """Recurrent Replay Distributed DQN (Kapturowski et al. 2019): double Q-learning on sequences.

    Sequences have ``burnin_step + learn_unroll_len`` steps and the network's state before the
    first. The first ``burnin_step`` steps only update that state to the current weights; the loss
    covers the remaining steps, with n-step targets that are cut at the end of the sequence. Samples
    have the form that `sequences.sequence_columns` returns. Values are rescaled unless
    ``learn.value_rescale`` is off.

    The network takes ``{'obs', 'prev_state'}`` and ``inference``, and returns ``next_state``, as
    `DRQN` does.
    """

    config = dict(
        type="r2d2",
        priority=True,
        priority_IS_weight=True,
        discount_factor=0.997,
        nstep=5,
        burnin_step=20,
        # Number of trained steps. `unroll_len`, the length of the whole sequence, overrides it.
        learn_unroll_len=80,
        learn=dict(
            # Updates after each collection.
            update_per_collect=1,
            batch_size=64,
            learning_rate=0.0001,
            # Update rate of the target network; or, if `target_update_freq` is set, the number of
            # updates between copies.
            target_update_theta=0.001,
            target_update_freq=None,
            value_rescale=True,
            # For environments that end only by a time limit and do not report it.
            ignore_done=False,
        ),
        collect=dict(
            # Number of sequences, not steps.
            n_sample=32,
            # Old name of `n_sample`.
            each_iter_n_sample=None,
            # Cut whole episodes into sequences; False: pieces of episodes as they are collected.
            traj_len_inf=True,
            env_num=None,
        ),
        eval=dict(env_num=None),
        other=dict(
            # ε as a function of environment steps; `type` is 'exp' or 'linear'.
            eps=dict(type="exp", start=0.95, end=0.05, decay=10000),
            replay_buffer=dict(replay_buffer_size=10000),
        ),
    )

    paper = "Kapturowski et al. 2019"
    actions = ("discrete",)
    _discount_key = "discount_factor"
    _silent_keys = ("unroll_len",)
    _logged: tuple[str, ...] = (
        *("cur_lr", "total_loss", "q_value", "target_q_value"),
        *("q_s_taken-a_t0", "target_q_s_max-a_t0", "q_s_a-mean_t0"),
    )

    def __init__(self, cfg: EasyDict, *args: Any, **kwargs: Any) -> None:
        self._burnin_step = cfg.burnin_step
        whole = cfg.get("unroll_len")
        self._learn_len = cfg.learn_unroll_len if whole is None else whole - cfg.burnin_step
        if self._learn_len < 1 or self._burnin_step < 0:
            raise ConfigError(
                f"policy.burnin_step={cfg.burnin_step}, learn_unroll_len={cfg.learn_unroll_len}, "
                f"unroll_len={whole}: sequences need at least one step to learn from"
            )
        choice = f"{type(self).__name__} has one choice"
        model_cfg = cfg.get("model") or {}
        one_size(model_cfg.get("action_shape", 1), "policy.model.action_shape", choice)
        super().__init__(cfg, *args, **kwargs)

    _network = "drqn"
    _act_options = {"inference": True}
    networks = {
        "discrete": (
            Call(
                {"logit": CHOICES, "next_state": STATES},
                takes={"obs": OBS, "prev_state": STATES},
                is_step=True,
            ),
            Call(
                {"logit": Shape("T B N"), "next_state": STATES},
                takes={"obs": Shape("T B *obs_shape"), "prev_state": STATES},
            ),
        )
    }

    def _get_n_sample(self) -> int | None:
        collect = self._cfg.collect
        return collect.get("each_iter_n_sample") or collect.get("n_sample")

    def _settings_without_effect(self) -> Mapping[str, str]:
        copies = at(self._cfg, "learn.target_update_freq") is not None
        instead = "the target network is a copy; set policy.learn.target_update_freq=None"
        idle = {"learn.target_update_theta": instead} if copies else {}
        return {**super()._settings_without_effect(), **idle}

    def _init_learn(self) -> None:
        cfg = self._cfg
        self._use_priority()
        self._gamma = cfg.discount_factor
        self._nstep = cfg.nstep
        self._optimizer = Adam(self._model.parameters(), lr=cfg.learn.learning_rate)
        self._target_model = follower(
            self._model, cfg.learn.target_update_theta, cfg.learn.get("target_update_freq")
        )

    def _batch(self, data: Samples) -> Sequences:
        batch = super()._batch(data)
        return {**batch, "action": self._shaped_action(batch["action"], leading=2)}

    def _losses(self, batch: Sequences) -> TeamLoss:
        q = self._q_values(self._model, batch)  # [L + 1, B, N]
        with torch.no_grad():
            target_q = self._q_values(self._target_model.forward, batch)
        error = self._td_errors(batch, q, target_q, self._nstep)
        losses, more = self._step_losses(batch, q, target_q, error)
        loss = self._mean_of_steps(batch, losses)
        first = q[0].detach()
        taken = first.gather(-1, batch["action"][self._burnin_step].unsqueeze(-1))
        log = {
            "q_value": q.detach().mean(),
            "target_q_value": target_q.mean(),
            "q_s_taken-a_t0": taken.mean(),
            "target_q_s_max-a_t0": target_q[0].amax(-1).mean(),
            "q_s_a-mean_t0": first.mean(),
            **{name: self._mean_of_steps(batch, part.detach()) for name, part in more.items()},
        }
        # Priorities use absolute errors; these are squared.
        return loss, error.detach().sqrt(), log

    def _q_values(self, network: Network, batch: Sequences) -> Tensor:
        """A network's values from the first learned step to the one after the last."""
        obs, burnin = batch["obs"], self._burnin_step
        states = tree_rows(batch["prev_state"])
        if burnin:
            with torch.no_grad():
                first = {"obs": tree_take(obs, slice(0, burnin)), "prev_state": states}
                # No gradient: this only replaces the stored state, which older weights computed.
                warm = network(first)["next_state"]
            # At the start of an episode there is no burn-in.
            warmed = batch["mask"][0].bool().tolist()
            states = [new if is_warm else old for new, old, is_warm in zip(warm, states, warmed)]
        return network({"obs": tree_take(obs, slice(burnin, None)), "prev_state": states})["logit"]

    def _mean_of_steps(self, batch: Sequences, losses: Tensor) -> Tensor:
        """The mean over sequences of the means over their steps ``[L, B]``."""
        mask = batch["mask"][self._burnin_step :]
        # Over steps first: an importance weight applies to a whole sequence.
        loss = (losses * mask).sum(0) / mask.sum(0)
        return loss.mean() if batch["weight"] is None else (loss * batch["weight"]).mean()

    def _priorities(self, error: Tensor, mask: Tensor) -> Tensor:
        return _ETA * (error * mask).amax(0) + (1 - _ETA) * super()._priorities(error, mask)

    def _step_losses(
        self, batch: Sequences, q: Tensor, target_q: Tensor, td_error: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of each step ``[L, B]``, here its squared error; and scalars to log."""
        return td_error, {}

    def _td_errors(self, batch: Sequences, q: Tensor, target_q: Tensor, nstep: int) -> Tensor:
        """Squared n-step errors ``[L, B]``; undefined at padding, which is at the end.

        Targets are cut at the end of the sequence, where they bootstrap from the observation after
        its last step.

        Args:
            q: The network's values of L + 1 observations, ``[L + 1, B, N]``.
            target_q: The target network's values, of the same shape.
        """
        action, reward, done, mask = (
            batch[name][self._burnin_step :] for name in ("action", "reward", "done", "mask")
        )
        length = len(action)
        left = mask.sum(0).long() - torch.arange(length, device=mask.device)[:, None]
        taken = left.clamp(1, nstep)
        # At padding, any valid index.
        after = (torch.arange(length, device=mask.device)[:, None] + taken).clamp(max=length)
        greedy = q.detach().argmax(-1)
        at = after.unsqueeze(-1).expand(-1, -1, q.shape[-1])
        data = q_nstep_td_data(
            q[:-1].flatten(0, 1),
            target_q.gather(0, at).flatten(0, 1),
            action.flatten(),
            greedy.gather(0, after).flatten(),
            _windows(reward, nstep).flatten(1),
            _windows(done, nstep).amax(0).flatten(),
            None,
        )
        td_error = (
            q_nstep_td_error_with_rescale if self._cfg.learn.value_rescale else q_nstep_td_error
        )
        gamma = self._gamma ** taken.flatten().to(q.dtype)
        _, error = td_error(data, self._gamma, nstep, value_gamma=gamma)
        return error.view(length, -1)

    def _init_collect(self) -> None:
        self._nstep = self._cfg.nstep
        super()._init_collect()


def _windows(per_step: Tensor, nstep: int) -> Tensor:
    """``[nstep, L, B]``: the values of each step and the next ones, zeros beyond the end."""
    padded = torch.cat([per_step, per_step.new_zeros(nstep - 1, *per_step.shape[1:])])
    return torch.stack([padded[k : k + len(per_step)] for k in range(nstep)])


@POLICY_REGISTRY.register("r2d3")
class R2D3Policy(DemonstrationPolicy, R2D2Policy):
    """Recurrent Replay Distributed DQN from Demonstrations (Paine et al. 2019).

    `serial_pipeline_r2d3` trains it and provides the expert. The fraction ``collect.pho`` of each
    batch are the expert's sequences. The loss of each step is that of DQfD (`DemonstrationPolicy`);
    the paper uses only its n-step TD loss.
    """

    paper = "Paine et al. 2019"
    config = dict(
        type="r2d3",
        burnin_step=2,
        learn=dict(
            # Number of the expert's sequences.
            expert_replay_buffer_size=100,
        ),
        # Fraction of demonstrations in a batch.
        collect=dict(pho=0.25),
    )

    def _get_train_columns(self, columns: Arrays, lengths: Lengths) -> Arrays:
        samples = super()._get_train_columns(columns, lengths)
        return {**samples, "is_expert": np.zeros(len(samples["null"]), np.float32)}

    def _losses(self, batch: Sequences) -> TeamLoss:
        loss, error, log = super()._losses(batch)
        return loss + self._squared_weights(), error, log

    _logged: tuple[str, ...] = ("nstep_loss", "1step_loss", "sl_loss")

    def _step_losses(
        self, batch: Sequences, q: Tensor, target_q: Tensor, td_error: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        learn = self._cfg.learn
        one_step = self._td_errors(batch, q, target_q, 1)
        action = batch["action"][self._burnin_step :]
        shortfall = self._shortfall(q[:-1], action, batch["is_expert"])
        loss = learn.lambda1 * td_error + learn.lambda_one_step_td * one_step
        return loss + learn.lambda2 * shortfall, {
            "nstep_loss": td_error,
            "1step_loss": one_step,
            "sl_loss": shortfall,
        }

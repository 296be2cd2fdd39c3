"""What policies share whose networks have a memory: states to act by, sequences to learn from."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from ding.model import model_wrap
from ding.policy._types import (
    Arrays,
    Eps,
    Lengths,
    Log,
    Network,
    Obs,
    Output,
    Samples,
    Sequences,
    TeamLoss,
    Tree,
)
from ding.policy.base_policy import Policy
from ding.policy.checks import check_sequences, to_floats
from ding.policy.sequences import sequence_batch, sequence_columns, sequence_counts, stack_states


class RecurrentPolicy(Policy):
    """Learns from sequences of steps, with the network's state before each (``prev_state``).

    Samples are as `sequences.sequence_columns` makes them: of ``_burnin_step`` steps, which bring
    the state up to date with the weights, and ``_learn_len`` that are learned from.

    A policy says what its losses are (`_losses`), and sets up ``_optimizer`` and ``_target_model``.
    """

    _saves_target = True
    _recurrent = True
    _transition_outputs: tuple[str, ...] = ("prev_state",)
    #: The wrapper that draws actions while collecting.
    _explorer = "eps_greedy_sample"
    #: What the network's ``forward`` is told when it acts.
    _act_options: Mapping[str, Any] = {}
    _burnin_step = 0
    _learn_len: int
    _optimizer: Any
    _target_model: Network

    def _get_unroll_len(self) -> int:
        return self._burnin_step + self._learn_len

    def _new_state(self) -> Tree:
        """The state of one environment whose episode begins; None if the network knows it."""
        return None

    def _batch(self, data: Samples) -> Sequences:
        """A batch of samples, time first; see `sequence_batch`."""
        batch: Any = sequence_batch(
            data,
            self._device,
            self._priority,
            self._priority_IS_weight,
            self._cfg.learn.ignore_done,
        )
        return batch

    def _learn(self, batch: Sequences) -> Log:
        """One update; what becomes of a sequence's ``priority`` see `_priorities`."""
        loss, error, log = self._losses(batch)
        loss_value = self._descend(loss, batch, self._optimizer)
        self._target_model.update(self._model)
        return {
            "cur_lr": self._optimizer.param_groups[0]["lr"],
            "total_loss": loss_value,
            **dict(zip(log, to_floats(*(value.detach() for value in log.values())))),
            "priority": self._priorities(error.detach().abs(), batch["mask"][self._burnin_step :]),
        }

    def _losses(self, batch: Sequences) -> TeamLoss:
        """The loss, the TD errors ``[T, B]`` of what is learned from, and what to log.

        Args:
            batch: See `sequence_batch`.
        """
        raise NotImplementedError

    def _check_batch(self, batch: Sequences) -> None:
        check_sequences(type(self).__name__, batch)

    def _sample_count(self, batch: Sequences) -> float:
        return batch["mask"].shape[1]

    def _priorities(self, error: Tensor, mask: Tensor) -> Tensor:
        """``[B]`` of absolute TD errors ``[T, B]``: their mean over all that is no padding."""
        return (error * mask).sum(0) / mask.sum(0)

    def _act(self, model: Network, obs: Obs, env_ids: list[int], **options: Any) -> Output:
        self._train_mode(False)
        output = model.forward({"obs": obs}, data_id=env_ids, **self._act_options, **options)
        acted = {name: output[name] for name in ("action", "logit")}
        if "prev_state" in output:
            like = self._collect_states.state_of(env_ids[0])
            acted["prev_state"] = stack_states(output["prev_state"], like)
        return acted

    def _init_collect(self) -> None:
        self._collect_states: Network = model_wrap(
            self._model,
            "hidden_state",
            state_num=None,
            save_prev_state=True,
            init_fn=self._new_state,
        )
        self._collect_model = model_wrap(self._collect_states, self._explorer)

    def _forward_collect_batch(self, obs: Obs, eps: Eps, env_ids: list[int]) -> Output:
        """ε-greedy actions; ``eps`` is one number, or one for each environment."""
        return self._act(self._collect_model, obs, env_ids, eps=eps)

    def _get_train_columns(self, columns: Arrays, lengths: Lengths) -> Arrays:
        return sequence_columns(columns, lengths, self._learn_len, self._burnin_step)

    def _count_train_samples(self, lengths: np.ndarray) -> np.ndarray:
        return sequence_counts(lengths, self._learn_len)

    def _reset_collect(self, data_id: list[int] | None = None) -> None:
        self._collect_states.reset(data_id=data_id)

    def _init_eval(self) -> None:
        self._eval_states: Network = model_wrap(
            self._model, "hidden_state", state_num=None, init_fn=self._new_state
        )
        self._eval_model = model_wrap(self._eval_states, "argmax_sample")

    def _forward_eval_batch(self, obs: Obs, env_ids: list[int]) -> Output:
        return self._act(self._eval_model, obs, env_ids)

    def _reset_eval(self, data_id: list[int] | None = None) -> None:
        self._eval_states.reset(data_id=data_id)

"""What policies share whose networks have a memory: states to act by, sequences to learn from."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ding.model import model_wrap
from ding.policy.base_policy import Policy
from ding.policy.sequences import sequence_batch, sequence_columns, sequence_counts, stack_states


class RecurrentPolicy(Policy):
    """Learns from sequences of steps, with the network's state before each (``prev_state``).

    Samples are as `sequences.sequence_columns` makes them: of ``_burnin_step`` steps, which bring
    the state up to date with the weights, and ``_learn_len`` that are learned from.
    """

    _saves_target = True
    _recurrent = True
    _transition_outputs: tuple[str, ...] = ("prev_state",)
    #: The wrapper that draws actions while collecting.
    _explorer = "eps_greedy_sample"
    _burnin_step = 0
    _learn_len: int

    def _get_unroll_len(self) -> int:
        return self._burnin_step + self._learn_len

    def _new_state(self) -> Any:
        """The state of one environment whose episode begins; None if the network knows it."""
        return None

    def _batch(self, data: Any, use_nstep: bool = False) -> dict[str, Any]:
        """A batch of samples, time first; see `sequence_batch`."""
        return sequence_batch(
            data,
            self._device,
            self._priority,
            self._priority_IS_weight,
            self._cfg.learn.ignore_done,
        )

    # ------------------------------------------------------------------ collect

    def _init_collect(self) -> None:
        self._collect_states: Any = model_wrap(
            self._model,
            "hidden_state",
            state_num=None,
            save_prev_state=True,
            init_fn=self._new_state,
        )
        self._collect_model = model_wrap(self._collect_states, self._explorer)

    def _stacked_states(self, states: Sequence[Any], env_ids: Sequence[int]) -> Any:
        """The states before a step of these environments as one tree."""
        return stack_states(states, self._collect_states.state_of(env_ids[0]))

    def _get_train_columns(self, columns: dict[str, Any], lengths: np.ndarray) -> dict[str, Any]:
        return sequence_columns(columns, lengths, self._learn_len, self._burnin_step)

    def _count_train_samples(self, lengths: np.ndarray) -> np.ndarray:
        return sequence_counts(lengths, self._learn_len)

    def _reset_collect(self, data_id: list[int] | None = None) -> None:
        self._collect_states.reset(data_id=data_id)

    # ------------------------------------------------------------------ eval

    def _init_eval(self) -> None:
        self._eval_states: Any = model_wrap(
            self._model, "hidden_state", state_num=None, init_fn=self._new_state
        )
        self._eval_model = model_wrap(self._eval_states, "argmax_sample")

    def _reset_eval(self, data_id: list[int] | None = None) -> None:
        self._eval_states.reset(data_id=data_id)

"""Base classes of policies with recurrent networks, for single agents and teams."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from ding.data import tree_take
from ding.model import model_wrap
from ding.model.template.agents import AgentsModel
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
)
from ding.policy.base_policy import Policy
from ding.policy.checks import check_sequences, floats
from ding.policy.learning import follower
from ding.policy.sequences import sequence_batch, sequence_columns, sequence_counts, stack_states
from ding.utils.errors import ConfigError, DataError
from ding.utils.types import Tree


class RecurrentPolicy(Policy):
    """Base of policies that learn from sequences and the network's initial state (``prev_state``).

    Samples are those of `sequences.sequence_columns`: ``_burnin_step`` steps, which only update the
    state to the current weights, and ``_learn_len`` trained steps.

    Subclasses define their losses (`_losses`), and set up ``_optimizer`` and ``_target_model``.
    """

    _saves_target = True
    _recurrent = True
    _transition_outputs: tuple[str, ...] = ("prev_state",)
    #: The wrapper that samples actions while collecting.
    _explorer = "eps_greedy_sample"
    #: Arguments of the network's ``forward`` in acting.
    _act_options: Mapping[str, Any] = {}
    _burnin_step = 0
    _learn_len: int
    _optimizer: Any
    _target_model: Network

    def _get_unroll_len(self) -> int:
        return self._burnin_step + self._learn_len

    def _new_state(self) -> Tree:
        """The initial state of one environment; None if the network provides it."""
        return None

    def _batch(self, data: Samples) -> Sequences:
        """Convert samples to a batch, time first; see `sequence_batch`."""
        batch: Any = sequence_batch(
            data,
            self._device,
            self._priority,
            self._priority_IS_weight,
            self._cfg.learn.ignore_done,
        )
        return batch

    def _learn(self, batch: Sequences) -> Log:
        """One update; for the ``priority`` of a sequence see `_priorities`."""
        loss, error, log = self._losses(batch)
        loss_value = self._descend(loss, batch, self._optimizer)
        self._target_model.update(self._model)
        return {
            "cur_lr": self._optimizer.param_groups[0]["lr"],
            "total_loss": loss_value,
            **floats(log),
            "priority": self._priorities(error.detach().abs(), batch["mask"][self._burnin_step :]),
        }

    def _losses(self, batch: Sequences) -> TeamLoss:
        """The loss, the TD errors ``[T, B]`` of the trained steps, and scalars to log.

        Args:
            batch: See `sequence_batch`.
        """
        raise NotImplementedError

    def _check_batch(self, batch: Sequences) -> None:
        check_sequences(type(self).__name__, batch)

    def _sample_count(self, batch: Sequences) -> float:
        return batch["mask"].shape[1]

    def _priorities(self, error: Tensor, mask: Tensor) -> Tensor:
        """Priorities ``[B]``: means of the absolute TD errors ``[T, B]``, without padding."""
        return (error * mask).sum(0) / mask.sum(0)

    def _act(self, model: Network, obs: Obs, env_ids: list[int], **options: Any) -> Output:
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


class TeamPolicy(RecurrentPolicy):
    """Base of cooperative multi-agent policies: simultaneous actions and a shared reward.

    Observations are dicts with ``agent_state`` ``[agents, n]``, ``global_state`` ``[m]`` and, if
    some actions may be illegal, ``action_mask`` ``[agents, actions]``; actions are int64
    ``[agents]``, the reward is the team's. Samples are sequences of ``collect.unroll_len`` steps
    with the network's state before them (``prev_state``).

    Subclasses define the loss (`_losses`), and set up ``_optimizer``.
    """

    config = dict(
        priority=False,
        priority_IS_weight=False,
        # Same as `model.agent_num`, which takes precedence.
        agent_num=None,
        learn=dict(
            # Update rate of the target network.
            target_update_theta=0.008,
            discount_factor=0.99,
            # For environments that end only by a time limit and do not report it.
            ignore_done=False,
        ),
        # Set exactly one of n_sample (sequences) and n_episode.
        collect=dict(
            unroll_len=10,
            env_num=None,
            # Episodes are cut into sequences as well.
            collector=dict(get_train_sample=True),
        ),
        eval=dict(env_num=None),
    )

    _discount_key = "learn.discount_factor"
    #: Parts of an observation that the network needs.
    _needed_parts: tuple[str, ...] = ("agent_state", "global_state")

    _model: Network

    def _check_model(self, model: Network) -> None:
        if not isinstance(model, AgentsModel):
            raise ConfigError(
                f"{type(self).__name__} needs a network of agents, such as "
                f"{self.default_model()[0]!r} (a ding.model.template.agents.AgentsModel); got "
                f"{type(model).__name__}"
            )

    def _init_learn(self) -> None:
        self._use_priority()
        self._gamma = self._cfg.learn.discount_factor
        self._target_model = follower(self._model, self._cfg.learn.target_update_theta)

    def _unroll(self, model: Network, batch: Sequences) -> Output:
        """A network's outputs for all T + 1 observations."""
        return model.unroll(batch["obs"], batch["prev_state"])

    def _mean(self, loss: Tensor, batch: Sequences) -> Tensor:
        """The mean of ``[T, B]`` without padding."""
        mask = batch["mask"]
        if batch["weight"] is not None:
            loss = loss * batch["weight"]
        return (loss * mask).sum() / mask.sum()

    def _sample_count(self, batch: Sequences) -> float:
        """Number of steps without padding, over which `_mean` averages."""
        return batch["mask"].sum().item()

    @property
    def _learn_len(self) -> int:  # type: ignore[override]
        return self._cfg.collect.unroll_len

    def _new_state(self) -> Tree:
        """The initial state of one environment."""
        return tree_take(self._model.initial_state(1), 0)

    def _act(self, model: Network, obs: Obs, env_ids: list[int], **options: Any) -> Output:
        self._check_obs(obs)
        return super()._act(model, obs, env_ids, **options)

    def _check_obs(self, obs: Obs) -> None:
        parts = obs if isinstance(obs, Mapping) else {}
        missing = [name for name in self._needed_parts if name not in parts]
        if missing:
            raise DataError(
                f"observations need {missing}, they have {sorted(parts) or 'no parts'}: "
                f"{type(self).__name__} is for teams, whose observations are dicts of "
                f"{list(self._needed_parts)}"
            )
        agents = obs["agent_state"].shape[1]
        if agents != self._model.agent_num:
            raise DataError(
                f"observations are of {agents} agents; policy.model.agent_num is "
                f"{self._model.agent_num}"
            )


def during(tree: Output) -> Output:
    """The first T of T + 1 steps, without states, which belong to no step."""
    return {name: part[:-1] for name, part in tree.items() if isinstance(part, Tensor)}


def after(tree: Output) -> Output:
    """The last T of T + 1 steps."""
    return {name: part[1:] for name, part in tree.items() if isinstance(part, Tensor)}

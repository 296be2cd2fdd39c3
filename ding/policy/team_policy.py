"""What policies of teams share: sequences to learn from, and networks with memories to act by."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ding.data import tree_take
from ding.model.template.agents import AgentsModel
from ding.policy._types import Network, Obs, Output, Sequences, Tree
from ding.policy.recurrent import RecurrentPolicy
from ding.utils.errors import ConfigError, DataError


class TeamPolicy(RecurrentPolicy):
    """Agents who act at once, each on what it has seen, and are paid together.

    Observations are dicts with ``agent_state`` ``[agents, n]``, ``global_state`` ``[m]`` and, if
    actions may be forbidden, ``action_mask`` ``[agents, actions]``; actions are int64
    ``[agents]``, the reward is the team's. Samples are sequences of ``collect.unroll_len`` steps
    with the network's state before them (``prev_state``).

    A policy of a team says what its loss is (`_losses`) and which optimiser follows it
    (`_make_optimizer`).
    """

    config = dict(
        priority=False,
        priority_IS_weight=False,
        # As `model.agent_num`, which is what counts.
        agent_num=None,
        learn=dict(
            # How far the target network follows at each update.
            target_update_theta=0.008,
            discount_factor=0.99,
            # For environments whose only end is a time limit that they do not report.
            ignore_done=False,
        ),
        # Give exactly one of n_sample (sequences) and n_episode.
        collect=dict(
            unroll_len=10,
            env_num=None,
            # Of episodes too, what is learned from are sequences.
            collector=dict(get_train_sample=True),
        ),
        eval=dict(env_num=None),
    )

    #: Parts of an observation that the network looks at.
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
        self._optimizer = self._make_optimizer()
        self._target_model = self._follower(self._cfg.learn.target_update_theta)

    def _make_optimizer(self) -> torch.optim.Optimizer:
        """The optimiser of all parameters."""
        raise NotImplementedError

    def _unroll(self, model: Network, batch: Sequences) -> Output:
        """What a network says of all T + 1 observations."""
        return model.unroll(batch["obs"], batch["prev_state"])

    def _mean(self, loss: Tensor, batch: Sequences) -> Tensor:
        """The mean of ``[T, B]`` over all that is no padding."""
        mask = batch["mask"]
        if batch["weight"] is not None:
            loss = loss * batch["weight"]
        return (loss * mask).sum() / mask.sum()

    def _sample_count(self, batch: Sequences) -> float:
        """Steps that are no padding: over which `_mean` averages."""
        return batch["mask"].sum().item()

    @property
    def _learn_len(self) -> int:  # type: ignore[override]
        return self._cfg.collect.unroll_len

    def _new_state(self) -> Tree:
        """The state of one environment whose episode begins."""
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
    """The first T of T + 1 steps; states, which are of no step, are left out."""
    return {name: part[:-1] for name, part in tree.items() if isinstance(part, Tensor)}


def after(tree: Output) -> Output:
    """The last T of T + 1 steps."""
    return {name: part[1:] for name, part in tree.items() if isinstance(part, Tensor)}

"""A policy's acting: batched cores, and the per-environment API derived from them.

The API maps dicts of environments to dicts of environments, by one call on the stacked arrays.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from ding.data import Columns, tree_map, tree_rows
from ding.envs import is_truncated
from ding.envs.env.answers import brief
from ding.policy._types import Arrays, Lengths, Obs, Output, Row
from ding.policy.common_utils import as_tensor, flatten_numbers, sample_columns
from ding.policy.modes import takes_indexed
from ding.policy.network_owner import NetworkOwner
from ding.rl_utils import get_train_sample
from ding.torch_utils.model_helper import set_training
from ding.utils.data import default_collate, default_decollate
from ding.utils.data.collate_fn import STATE_KEYS
from ding.utils.errors import DataError
from ding.utils.types import Tree


class Cores(NetworkOwner):
    """The collect and eval modes of a policy; subclasses define their batched cores.

    A subclass that overrides the per-environment methods also works everywhere, but more slowly.
    """

    _get_unroll_len: Callable[[], int]

    #: Policy outputs, other than the action, that are part of each transition.
    _transition_outputs: tuple[str, ...] = ()

    #: Whether acting depends on earlier observations: the batched cores receive the ids of the
    #: environments (``env_ids``), and samples may be sequences (`sequences`).
    _recurrent = False

    def _init_collect(self) -> None:
        """Set up the collect mode: exploration, ``_unroll_len``, ``_gamma``, ``_nstep``."""

    def _forward_collect_batch(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        """Act on a batch, exploring; the network is in evaluation mode.

        Args:
            obs: float32 ``[n, *obs_shape]`` on the policy's device, or a nested dict of them.
            kwargs: The collector's arguments; for a recurrent policy also ``env_ids``, n of them.

        Returns:
            Tensors ``[n, ...]``: ``action`` and the ``_transition_outputs``.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot collect: no _forward_collect")

    @takes_indexed
    def _get_train_columns(self, columns: Arrays, lengths: Lengths) -> Arrays:
        """Turn trajectories into training samples.

        Args:
            columns: Transitions of consecutive trajectories, in time: ``obs, next_obs, action,
                reward`` float32 ``[N]``, ``done`` bool ``[N]`` (terminated), ``collect_iter`` and
                the ``_transition_outputs``.
            lengths: int64 ``[n_traj]``, number of transitions of each trajectory; sums to N.

        Returns:
            The columns of the samples, ``reward`` as ``[N, nstep]``.
        """
        return {**columns, "reward": columns["reward"][:, None]}

    def _cuts_samples(self) -> bool:
        """Whether `_get_train_columns` determines the samples: it counts them, or one is a step."""
        return self._get_unroll_len() == 1 or self._overrides("_count_train_samples")

    def _count_train_samples(self, lengths: np.ndarray) -> np.ndarray:
        """Number of samples that `_get_train_columns` makes of each trajectory."""
        return lengths

    def _collect_columns(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        return self._acted("collecting", self._forward_collect_batch, obs, *args, **kwargs)

    def _acted(
        self, doing: str, core: Callable[..., Output], obs: Obs, *args: Any, **kwargs: Any
    ) -> Output:
        """Outputs of a batched core for observations, on the CPU."""
        self._train_mode(False)
        try:
            with torch.no_grad():
                output = core(self._model_input(obs), *args, **kwargs)
        except DataError as error:
            raise DataError(f"{type(self).__name__}, {doing}: {error}") from error
        except (TypeError, AttributeError) as error:
            if isinstance(obs, np.ndarray) or not type(self._model).__module__.startswith("ding."):
                raise
            raise DataError(
                f"{type(self).__name__}, {doing}: the network takes observations that are one "
                f"array, and the environments' are {brief(obs)}; env.env_wrapper=['flatten_obs'] "
                f"makes one of several ({error})"
            ) from error
        if not self._cuda:
            return output
        return {name: tree_map(lambda leaf: leaf.cpu(), value) for name, value in output.items()}

    def _reset_collect(self, data_id: list[int] | None = None) -> None:
        """Clear the state of the given environments; stateless policies have none."""

    def _init_eval(self) -> None:
        """Set up the eval mode: a greedy wrapper of the model."""

    def _forward_eval_batch(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        """Act on a batch, greedily; arguments as of `_forward_collect_batch`."""
        raise NotImplementedError(f"{type(self).__name__} cannot evaluate: no _forward_eval")

    def _eval_columns(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        return self._acted("evaluating", self._forward_eval_batch, obs, *args, **kwargs)

    def _reset_eval(self, data_id: list[int] | None = None) -> None:
        """Clear the state of the given environments; stateless policies have none."""

    def _train_mode(self, training: bool) -> None:
        """Set the model's mode if it differs: walking through all layers is slow."""
        if self._model.training is not training:
            set_training(self._model, training)

    @contextmanager
    def _as_acting(self) -> Iterator[None]:
        """Context with the network in evaluation mode and without gradients: values that are
        compared with outputs of collection must not depend on dropout or the rest of a batch."""
        was_training = self._model.training
        self._train_mode(False)
        try:
            with torch.no_grad():
                yield
        finally:
            self._train_mode(was_training)

    def _model_input(self, obs: Obs) -> Obs:
        if isinstance(obs, np.ndarray):
            return torch.from_numpy(obs).to(self._device, torch.float32)
        tensors = tree_map(as_tensor, obs)
        return tree_map(lambda leaf: leaf.to(self._device, torch.float32), tensors)

    def _forward_collect(
        self, data: Mapping[int, Obs], *args: Any, **kwargs: Any
    ) -> dict[int, Output]:
        return self._by_environment(self._collect_columns, data, *args, **kwargs)

    def _process_transition(self, obs: Obs, policy_output: Output, timestep: Any) -> Row:
        return {
            "obs": obs,
            "next_obs": timestep.obs,
            **{name: policy_output[name] for name in ("action", *self._transition_outputs)},
            "reward": timestep.reward,
            # A truncated episode is not terminal: its value is bootstrapped.
            "done": bool(timestep.done) and not is_truncated(timestep.info),
        }

    def _get_train_sample(self, transitions: Sequence[Row]) -> Sequence[Row]:
        if not len(transitions):
            return []
        samples, _ = self._get_train_samples(transitions, np.array([len(transitions)]))
        if self._cuts_samples():
            return samples
        return get_train_sample(list(samples), self._get_unroll_len())

    def _get_train_samples(
        self, transitions: Sequence[Row], lengths: Lengths
    ) -> tuple[Columns, Lengths]:
        """Training samples of consecutive trajectories, and the number of samples of each."""
        absent = {name for name, value in transitions[0].items() if value is None}
        if absent:
            transitions = [{k: v for k, v in t.items() if k not in absent} for t in transitions]
        columns = flatten_numbers(Columns.from_rows(transitions).columns)
        columns = tree_map(_plain_array, columns)
        columns["reward"] = columns["reward"].astype(np.float32, copy=False)
        samples = sample_columns(self._get_train_columns(columns, lengths))
        return samples, self._count_train_samples(lengths)

    def _forward_eval(self, data: Mapping[int, Obs]) -> dict[int, Output]:
        return self._by_environment(self._eval_columns, data)

    def _by_environment(
        self, act: Callable[..., Output], data: Mapping[int, Obs], *args: Any, **kwargs: Any
    ) -> dict[int, Output]:
        if self._recurrent:
            kwargs["env_ids"] = list(data)
        obs = default_collate(list(data.values()), cat_1dim=False)
        parts = tree_map(as_tensor, act(obs, *args, **kwargs))
        for name in STATE_KEYS:
            if name in parts:
                parts[name] = tree_rows(parts[name])
        return dict(zip(data, default_decollate(parts)))

    def _overrides(self, name: str) -> bool:
        return name in vars(self) or getattr(type(self), name) is not getattr(Cores, name)


def _plain_array(column: Tree) -> Tree:
    """A column of rows as an array, of the dtypes that networks take."""
    if isinstance(column, torch.Tensor):
        return column.numpy()
    # Scalars per row keep their dtype, as in columns.
    return column.astype(np.float32) if column.dtype == np.float64 and column.ndim > 1 else column

"""The modes of a policy: named tuples of its bound methods, with its batched cores attached."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ding.data import Columns
from ding.policy._types import Arrays, Lengths, Output, Row

_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class BatchedCollect:
    """The batched functions of a collect mode.

    Attributes:
        forward: ``(obs [n, *obs_shape] ndarray tree, **policy_kwargs) -> {name: array or CPU
            tensor [n, ...] or a tree of them}`` with at least ``action``.
        transition_outputs: Policy outputs, other than ``action``, that are part of a transition.
        get_train_columns: See `Policy._get_train_columns`.
        resets: Whether ``reset`` has an effect; otherwise collectors need not call it.
        recurrent: Whether ``forward`` also takes ``env_ids``, the environments of the observations.
        count_samples: See `Policy._count_train_samples`.
        takes_indexed: Whether `get_train_columns` accepts observations as `IndexedColumn`.
    """

    forward: Callable[..., Output]
    transition_outputs: tuple[str, ...]
    get_train_columns: Callable[[Arrays, np.ndarray], Arrays]
    resets: bool
    recurrent: bool
    count_samples: Callable[[np.ndarray], np.ndarray]
    takes_indexed: bool


@dataclass(frozen=True, slots=True)
class BatchedEval:
    """The batched functions of an eval mode; see `BatchedCollect`.

    Attributes:
        see_rewards: Called after each step with the environments' ids and rewards, for policies
            that need rewards to act.
    """

    forward: Callable[..., Output]
    resets: bool
    recurrent: bool
    see_rewards: Callable[[np.ndarray, np.ndarray], None] | None = None


def takes_indexed(method: _Method) -> _Method:
    """Decorator for a ``_get_train_columns`` that only passes observations on or reindexes them.

    It may then get ``obs`` and ``next_obs`` as `IndexedColumn`, which are copied only where they
    are stored. An overriding method gets arrays unless it is decorated itself.
    """
    method.takes_indexed = True  # type: ignore[attr-defined]
    return method


class LearnForward(Protocol):
    """Update from a batch: rows, or columns of the same leading length."""

    def __call__(self, data: Any, **policy_kwargs: Any) -> Any:
        """Returns values to log by name; a list of such dicts if there are several updates."""


class ActForward(Protocol):
    """Act in the environments that are ready."""

    def __call__(self, data: Mapping[int, Any], **policy_kwargs: Any) -> dict[int, dict[str, Any]]:
        """Map observations by environment id to outputs, with at least ``action``."""


class learn_function(NamedTuple):
    """Learn mode of a policy, ``policy.learn_mode``: updates and the training state.

    Attributes:
        forward: Updates from B samples: rows, `Columns`, or a dict of tensors ``[B, ...]``.
            Returns numbers to log, and ``priority`` ``[B]`` if the policy has one.
        monitor_vars: Names of the logged values.
        state_dict: Network, targets and optimisers.
        load_state_dict: Restores them.
        reset: Forgets recurrent states.
        info: A description of the policy.
        get_attribute: Returns ``cuda``, ``device`` or another attribute.
        set_attribute: Sets an attribute.

    Example:

        >>> import numpy as np
        >>> from ding.data import Columns
        >>> from ding.policy import DQNPolicy
        >>> cfg = DQNPolicy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2)
        >>> obs, one = np.zeros((8, 4), np.float32), np.ones(8, np.float32)
        >>> batch = Columns(dict(obs=obs, next_obs=obs, action=np.zeros(8, int)))
        >>> batch = batch.with_columns(reward=one, done=one == 0)
        >>> log = DQNPolicy(cfg).learn_mode.forward(batch)
        >>> log["priority"].shape
        torch.Size([8])
    """

    forward: LearnForward
    reset: Callable[..., None]
    info: Callable[[], str]
    monitor_vars: Callable[[], list[str]]
    get_attribute: Callable[[str], Any]
    set_attribute: Callable[[str, Any], None]
    state_dict: Callable[[], dict[str, Any]]
    load_state_dict: Callable[[dict[str, Any]], None]


class _CollectFunctions(NamedTuple):
    forward: ActForward
    process_transition: Callable[..., dict[str, Any]]
    get_train_sample: Callable[[list[Any]], Any]
    reset: Callable[..., None]
    get_attribute: Callable[[str], Any]
    set_attribute: Callable[[str, Any], None]
    state_dict: Callable[[], dict[str, Any]]
    load_state_dict: Callable[[dict[str, Any]], None]


class _EvalFunctions(NamedTuple):
    forward: ActForward
    reset: Callable[..., None]
    get_attribute: Callable[[str], Any]
    set_attribute: Callable[[str, Any], None]
    state_dict: Callable[[], dict[str, Any]]
    load_state_dict: Callable[[dict[str, Any]], None]


# `_replace` returns a tuple without ``batched``, so that a replaced function is called per row.


class collect_function(_CollectFunctions):
    """Collect mode of a policy, ``policy.collect_mode``: acting with exploration.

    Attributes:
        forward: Maps ``{env_id: obs}`` to ``{env_id: {"action": ...}}``, with keyword arguments
            such as ``eps``.
        process_transition: Makes a transition, a dict, from ``obs``, the output and a timestep.
        get_train_sample: Makes training samples from a trajectory, a list of transitions.
        reset: Clears recurrent states of ``data_id`` (environment ids), or all.
        state_dict: The network's weights.
        load_state_dict: Restores them.
        get_attribute: Returns ``cuda``, ``device`` or another attribute.
        set_attribute: Sets an attribute.
        batched: Its batched functions, if the policy has them.
        get_train_samples: ``get_train_sample`` for many trajectories at once: takes their
            transitions and lengths, and returns the samples and the number of them per trajectory;
            ``None`` if a subclass overrides ``get_train_sample``.

    Example:

        >>> import numpy as np
        >>> from ding.policy import DQNPolicy
        >>> cfg = DQNPolicy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2)
        >>> collect = DQNPolicy(cfg).collect_mode
        >>> obs = np.zeros(4, np.float32)
        >>> outputs = collect.forward({0: obs, 3: obs}, eps=0.1)
        >>> list(outputs), outputs[3]["action"].shape
        ([0, 3], torch.Size([1]))
    """

    batched: BatchedCollect | None = None
    get_train_samples: Callable[[Sequence[Row], Lengths], tuple[Columns, Lengths]] | None = None


class eval_function(_EvalFunctions):
    """Eval mode of a policy, ``policy.eval_mode``: acting without exploration.

    Arguments are those of `collect_function` that concern acting.

    Example:

        >>> import numpy as np
        >>> from ding.policy import DQNPolicy
        >>> cfg = DQNPolicy.default_config()
        >>> cfg.model.update(obs_shape=4, action_shape=2)
        >>> outputs = DQNPolicy(cfg).eval_mode.forward({0: np.zeros(4, np.float32)})
        >>> outputs[0]["action"].shape, outputs[0]["logit"].shape
        (torch.Size([1]), torch.Size([2]))
    """

    batched: BatchedEval | None = None


class command_function(NamedTuple):
    """``policy.command_mode``: keyword arguments of the other modes, by the run's progress."""

    get_setting_learn: Callable[[dict[str, Any]], dict[str, Any]]
    get_setting_collect: Callable[[dict[str, Any]], dict[str, Any]]
    get_setting_eval: Callable[[dict[str, Any]], dict[str, Any]]

"""The modes of a policy: namedtuples of its bound methods, with its batched cores beside them."""

from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

_Method = TypeVar("_Method", bound=Callable[..., Any])

_STATE = ("get_attribute", "set_attribute", "state_dict", "load_state_dict")


@dataclass(frozen=True, slots=True)
class BatchedCollect:
    """The columnar side of a collect mode.

    Attributes:
        forward: ``(obs [n, *obs_shape] ndarray tree, **policy_kwargs) -> {name: array or CPU
            tensor [n, ...] or a tree of them}`` with at least ``action``.
        transition_outputs: Policy outputs, beside ``action``, that belong to a transition.
        get_train_columns: See `Policy._get_train_columns`.
        resets: Whether ``reset`` does anything; without, collectors need not call it.
        recurrent: Whether ``forward`` takes ``env_ids``, those of the observations, besides.
        count_samples: See `Policy._count_train_samples`.
        takes_indexed: Whether `get_train_columns` takes observations as `IndexedColumn`.
    """

    forward: Callable[..., dict[str, Any]]
    transition_outputs: tuple[str, ...]
    get_train_columns: Callable[[dict[str, Any], np.ndarray], dict[str, Any]]
    resets: bool
    recurrent: bool
    count_samples: Callable[[np.ndarray], np.ndarray]
    takes_indexed: bool


@dataclass(frozen=True, slots=True)
class BatchedEval:
    """The columnar side of an eval mode; see `BatchedCollect`.

    Attributes:
        see_rewards: Called after each step with the environments' ids and their rewards, if the
            policy acts by these.
    """

    forward: Callable[..., dict[str, Any]]
    resets: bool
    recurrent: bool
    see_rewards: Callable[[np.ndarray, np.ndarray], None] | None = None


def takes_indexed(method: _Method) -> _Method:
    """Marks a ``_get_train_columns`` that hands observations on, at most with other indices.

    Then ``obs`` and ``next_obs`` may come as `IndexedColumn`, and are copied only where they are
    kept. A method that overrides it and needs arrays gets arrays, unless it is marked itself.
    """
    method.takes_indexed = True  # type: ignore[attr-defined]
    return method


def _mode(name: str, fields: Sequence[str]) -> type:
    """A namedtuple class with an attribute ``batched``, which ``_replace`` does not carry over.

    Whoever replaces one of the functions gets a mode without batched cores: theirs is called.
    """
    base = namedtuple(name, fields)  # type: ignore[misc]
    return type(name, (base,), {"batched": None, "__module__": __name__})


learn_function = _mode("learn_function", ["forward", "reset", "info", "monitor_vars", *_STATE])
collect_function = _mode(
    "collect_function", ["forward", "process_transition", "get_train_sample", "reset", *_STATE]
)
eval_function = _mode("eval_function", ["forward", "reset", *_STATE])
command_function = _mode(
    "command_function", ["get_setting_learn", "get_setting_collect", "get_setting_eval"]
)

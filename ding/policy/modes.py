"""The modes of a policy: namedtuples of its bound methods, with its batched cores beside them."""

from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_STATE = ("get_attribute", "set_attribute", "state_dict", "load_state_dict")


@dataclass(frozen=True, slots=True)
class BatchedCollect:
    """The columnar side of a collect mode.

    Attributes:
        forward: ``(obs [n, *obs_shape] ndarray tree, **policy_kwargs) -> {name: array or CPU
            tensor [n, ...] or a tree of them}`` with at least ``action``.
        transition_outputs: Policy outputs, beside ``action``, that belong to a transition.
        get_train_columns: See :meth:`Policy._get_train_columns`.
        resets: Whether ``reset`` does anything; without, collectors need not call it.
        recurrent: Whether ``forward`` takes ``env_ids``, those of the observations, besides.
        count_samples: See :meth:`Policy._count_train_samples`.
    """

    forward: Callable[..., dict[str, Any]]
    transition_outputs: tuple[str, ...]
    get_train_columns: Callable[[dict[str, Any], np.ndarray], dict[str, Any]]
    resets: bool
    recurrent: bool
    count_samples: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class BatchedEval:
    """The columnar side of an eval mode; see :class:`BatchedCollect`."""

    forward: Callable[..., dict[str, Any]]
    resets: bool
    recurrent: bool


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

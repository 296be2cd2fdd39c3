"""Whether actions can be taken, before they reach an environment."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.envs.vector_step import PlayerActions, WholeAction
from ding.utils.errors import ActionError

# Up to so many numbers, Python's own minimum is quicker than numpy's.
_FEW = 24
_INT64 = np.dtype(np.int64)

# Checks a batch [n, *action] and returns it as the environments take it.
BatchCheck = Callable[[np.ndarray, Sequence[int]], np.ndarray]


def batch_check(space: Any) -> BatchCheck:
    """The check of columns of actions for `space`; of spaces that it does not know, none."""
    if isinstance(space, spaces.Discrete):
        return _discrete_check(int(space.start), int(space.n))
    if isinstance(space, spaces.Box):
        return _box_check(space)
    return lambda actions, env_ids: actions


def check_players(space: Any, actions: PlayerActions, env_ids: Sequence[int]) -> PlayerActions:
    """The check of a battle's actions ``[n, players, *action_shape]``.

    Args:
        space: Of one player, or of all together: the latter says nothing of a single number.
    """
    if isinstance(space, spaces.Discrete):
        check = batch_check(space)
        players = range(actions.shape[1])
        columns = [check(np.asarray(actions[:, player]), env_ids) for player in players]
        return np.stack(columns, axis=1).view(PlayerActions)
    if actions.dtype.kind == "f" and not np.isfinite(actions).all():
        finite = np.isfinite(np.asarray(actions)).reshape(len(actions), -1).all(axis=1)
        position = int(finite.argmin())
        raise _refused(env_ids[position], np.asarray(actions[position]), "it holds NaN or infinity")
    return actions


def check_one(space: Any, env_id: int, action: Any) -> None:
    """Refuse one action that is out of a Discrete space's range, or NaN in a Box.

    A list holds one action per player.

    Raises:
        ActionError: Names the environment.
    """
    if isinstance(space, spaces.Discrete):
        if isinstance(action, list) and len(action) > 1:
            for of_player in action:
                check_one(space, env_id, of_player)
            return
        value = np.asarray(action)
        # Several numbers: of an environment's agents, whose space it says.
        if value.size == 0 or value.dtype.kind not in "iub":
            raise _refused(env_id, action, f"expected a whole number, for {space}")
        if ((value < space.start) | (value >= space.start + space.n)).any():
            raise _refused(env_id, action, f"it is not in {space}")
    elif isinstance(space, spaces.Box):
        value = np.asarray(action)
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise _refused(env_id, action, "it holds NaN or infinity")


def each_action(actions: Any) -> list[Any]:
    """The actions of a batch one by one, as the environments get them.

    Single numbers become arrays of shape ``(1,)``, and a battle's a list with one of them per
    player. They are copies, as an environment may change its action.
    """
    if isinstance(actions, PlayerActions):
        own = np.array(actions)  # no PlayerActions
        plain = own.ndim == 2 and own.dtype != object
        return [list(row) for row in (_numbers(own) if plain else own)]
    if isinstance(actions, np.ndarray) and actions.ndim == 1 and actions.dtype != object:
        return list(_numbers(actions.copy()))
    return list(actions)


def _numbers(actions: np.ndarray) -> np.ndarray:
    vectors = actions[..., None]
    return vectors.view(WholeAction) if vectors.dtype.kind in "iu" else vectors


def _discrete_check(start: int, count: int) -> BatchCheck:
    def check(actions: np.ndarray, env_ids: Sequence[int]) -> np.ndarray:
        if actions.dtype.kind not in "iub":
            raise ActionError(
                f"actions of dtype {actions.dtype} came, whole numbers were expected: "
                f"the action space is Discrete({count}, start={start})"
            )
        shape = actions.shape
        if len(shape) > 1 and actions.size != len(actions):
            # Environments of several agents often say the space of one of them.
            agents = np.repeat(env_ids, math.prod(shape[1:])).tolist()
            return check(actions.reshape(-1), agents).reshape(shape)
        if len(shape) > 1:
            actions = actions.reshape(-1)
        whole = actions if actions.dtype is _INT64 else actions.astype(np.int64)
        if len(whole) <= _FEW:
            values = whole.tolist()
            if start <= min(values) and max(values) < start + count:
                return whole
        # Seen as unsigned, what is below the start is far beyond the end: one comparison.
        shifted = (whole - start if start else whole).view(np.uint64)
        if np.maximum.reduce(shifted) >= count:
            position = int((shifted >= count).argmax())
            raise _refused(
                env_ids[position],
                actions[position],
                f"it is not in Discrete({count}, start={start})",
            )
        return whole

    return check


def _box_check(space: spaces.Box) -> BatchCheck:
    shape, size = space.shape, math.prod(space.shape)

    def check(actions: np.ndarray, env_ids: Sequence[int]) -> np.ndarray:
        if actions.shape[1:] != shape:
            if actions.size != len(actions) * size:
                raise ActionError(
                    f"actions of shape {actions.shape} came; {(len(actions), *shape)} was "
                    f"expected: the action space is {space}"
                )
            actions = actions.reshape(len(actions), *shape)
        if actions.dtype.kind == "f" and not np.isfinite(actions).all():
            finite = np.isfinite(actions).reshape(len(actions), -1).all(axis=1)
            position = int(finite.argmin())
            raise _refused(env_ids[position], actions[position], "it holds NaN or infinity")
        # A copy: an environment that clips in place must not change what the caller trains on.
        return actions.copy()

    return check


def _refused(env_id: int, action: Any, reason: str) -> ActionError:
    return ActionError(f"env {env_id} cannot take action {action!r}: {reason}", int(env_id))

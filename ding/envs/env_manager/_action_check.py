"""Whether actions can be taken, before they reach an environment, and how they get there."""

import math
from collections.abc import Sequence

import numpy as np
from gymnasium import spaces

from ding.envs.vector_step import Action, Actions, PlayerActions, Space, WholeAction
from ding.utils.errors import ActionError


class ActionCheck:
    """The check of actions for one space.

    Whole numbers have to be in a Discrete space's range, numbers for a Box finite. Actions for
    other spaces are not checked.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._box_shape = space.shape if isinstance(space, spaces.Box) else None
        self._is_discrete = isinstance(space, spaces.Discrete)
        if isinstance(space, spaces.Discrete):  # Python's numbers are quicker than those of a space
            self._start, self._end = int(space.start), int(space.start + space.n)

    def batch(self, actions: np.ndarray, env_ids: Sequence[int]) -> np.ndarray:
        """Columns ``[n, *action_shape]``, or ``PlayerActions``, as environments take them.

        Raises:
            ActionError: Names the first environment that cannot take its action.
        """
        axes = 1 + isinstance(actions, PlayerActions)
        if self._is_discrete:
            # More numbers than that: environments of several agents may declare the space of one.
            if actions.ndim > axes and actions.size == math.prod(actions.shape[:axes]):
                actions = actions.reshape(actions.shape[:axes])
            self._refuse_bad(actions, env_ids)
            return actions.astype(np.int64, copy=False)
        shape = self._box_shape
        if shape is None:
            return actions
        # The space of a battle may be that of all players together.
        if axes == 1 and actions.shape[1:] != shape:
            if actions.size != len(actions) * math.prod(shape):
                if actions.dtype.kind in "iub" and actions.size == len(actions):
                    return actions  # choices: users' environments may declare a Box for them
                raise ActionError(
                    f"actions of shape {actions.shape} came; {(len(actions), *shape)} was "
                    f"expected: the action space is {self._space}"
                )
            actions = actions.reshape(len(actions), *shape)
        self._refuse_bad(actions, env_ids)
        # A copy: an environment that clips in place must not change what the caller trains on.
        return actions.copy()

    def one(self, env_id: int, action: Action) -> None:
        """The action of one environment; a list holds one per player.

        Raises:
            ActionError: The environment cannot take it.
        """
        if self._is_discrete or self._box_shape is not None:
            parts = action if isinstance(action, list) else [action]
            for part in parts or [np.zeros(0)]:
                self._refuse_bad(np.asarray(part)[None], [env_id])

    def _refuse_bad(self, actions: np.ndarray, env_ids: Sequence[int]) -> None:
        kind = actions.dtype.kind
        if not self._is_discrete:
            if kind != "f" or np.isfinite(actions).all():
                return
            bad, reason = ~np.isfinite(actions), "it holds NaN or infinity"
        elif kind not in "iub" or not actions.size:
            bad = np.ones(len(actions), bool)
            reason = f"expected whole numbers, for {self._space}; its dtype is {actions.dtype}"
        else:
            values = actions.ravel().tolist()  # for the usual few quicker than numpy
            if self._start <= min(values) <= max(values) < self._end:
                return
            bad = (actions < self._start) | (actions >= self._end)
            reason = f"it is not in {self._space}"
        at = int(np.asarray(bad).reshape(len(actions), -1).any(axis=1).argmax())
        env_id, action = int(env_ids[at]), np.asarray(actions)[at]
        raise ActionError(f"env {env_id} cannot take action {action!r}: {reason}", env_id)


def each_action(actions: Actions) -> list[Action]:
    """The actions of a batch one by one, as the environments get them.

    Single numbers become arrays of shape ``(1,)``, and a battle's a list with one of them per
    player. They are copies, as an environment may change its action.
    """
    if isinstance(actions, PlayerActions):
        return [each_action(row) for row in np.array(actions)]  # no PlayerActions
    if isinstance(actions, np.ndarray) and actions.ndim == 1 and actions.dtype != object:
        vectors = actions[:, None].copy()
        return list(vectors.view(WholeAction) if vectors.dtype.kind in "iu" else vectors)
    return list(actions)

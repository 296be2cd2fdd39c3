"""Who used an env manager last: a collector that is deleted must not close it for others."""

import contextlib
import weakref
from typing import Any

_last_uses: weakref.WeakKeyDictionary[Any, object] = weakref.WeakKeyDictionary()


class EnvUse:
    """An env manager as one collector or evaluator uses it.

    Args:
        env: The env manager, or whatever else an evaluator judges in.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self._token = object()  # not this object, which would keep its own key alive
        if hasattr(env, "close"):
            with contextlib.suppress(TypeError):  # of a kind that cannot be referred to weakly
                _last_uses[env] = self._token

    def end(self) -> None:
        """Close the env manager at once, unless somebody else has begun to use it since."""
        if hasattr(self._env, "close") and _last_uses.get(self._env) is self._token:
            getattr(self._env, "abandon", self._env.close)()

"""Design patterns."""

import threading
from typing import Any


class SingletonMetaclass(type):
    """Metaclass of classes that have one instance: the first call makes it, each returns it."""

    _lock = threading.RLock()

    def __init__(cls, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        cls._instance: Any = None

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        with SingletonMetaclass._lock:
            if cls._instance is None:
                cls._instance = super().__call__(*args, **kwargs)
            return cls._instance

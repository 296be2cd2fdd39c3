"""A slave that lets functions answer, by their names, as DI-engine's slaves do."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from ding.interaction.slave import Slave

Callbacks = Mapping[str, Callable[..., Any]]
Own = TypeVar("Own", bound="CallbackSlave")


class CallbackSlave(Slave):
    """Hands the coordinator's tasks to callbacks.

    Args:
        callback_fn: Those that a subclass names; perhaps ``deal_with_left()``, called when the
            master has said goodbye, and ``deal_with_lost(cause)``, called when it was lost.
    """

    #: Names of the callbacks that answer.
    callbacks: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, callback_fn: Callbacks, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._callback_fn = callback_fn

    @classmethod
    def of(
        cls: type[Own], worker: Any, on_lost: Callable[[str], object], *args: Any, **kwargs: Any
    ) -> Own:
        """One whose callbacks are a worker's methods; for `HttpWorker`."""
        callbacks = {name: getattr(worker, name) for name in cls.callbacks}
        callbacks.update(deal_with_left=worker.released, deal_with_lost=on_lost)
        return cls(*args, callback_fn=callbacks, **kwargs)

    def _before_disconnection(self, data: Mapping[str, object]) -> None:
        if "deal_with_left" in self._callback_fn:
            self._callback_fn["deal_with_left"]()

    def _lost_connection(self, master_address: str, err: Exception) -> None:
        if "deal_with_lost" in self._callback_fn:
            cause = f"lost the coordinator at {master_address}: {type(err).__name__}: {err}"
            self._callback_fn["deal_with_lost"](cause)

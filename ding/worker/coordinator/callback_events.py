"""What sessions report, as calls of functions that somebody gave by name."""

from collections.abc import Callable, Mapping

from ding.envs.running_statistics import Statistics

from .chunk_buffer import ChunkBuffer

#: Functions that a coordinator of another kind gives.
CALLBACKS = (
    "deal_with_collector_send_data",
    "deal_with_collector_judge_finish",
    "deal_with_collector_finish_task",
    "deal_with_learner_get_data",
    "deal_with_learner_send_info",
    "deal_with_learner_judge_finish",
    "deal_with_learner_finish_task",
    "deal_with_increase_collector",
    "deal_with_decrease_collector",
)
Callbacks = Mapping[str, Callable[..., object]]


class CallbackEvents:
    """The methods of `RunEvents`: the functions of `CALLBACKS`; other events are passed over.

    Args:
        callbacks: The functions by their names, with the parameters of those methods.

    Raises:
        KeyError: One of them is missing.
    """

    def __init__(self, callbacks: Callbacks) -> None:
        missing = [name for name in CALLBACKS if name not in callbacks]
        if missing:
            raise KeyError(f"callback_fn lacks {', '.join(missing)}")
        vars(self).update({name: callbacks[name] for name in CALLBACKS})

    def learner_buffer(self, buffer_id: str) -> ChunkBuffer | None:
        return None

    def envstep(self) -> int:
        return 0

    def env_statistics(self) -> Statistics:
        return {}

    def _pass_over(self, *news: object) -> None:
        """Who gives functions has none for it."""

    collector_progress = task_running = task_closing = task_failed = _pass_over
    workers_changed = failed_worker = worker_left = warn = fatal = _pass_over

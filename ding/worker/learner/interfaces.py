"""What a learner trains with, and what its hooks see of it."""

import logging
from typing import Any, Protocol, TypeAlias

from ding.torch_utils import CountVar

#: What an update logs, by name: numbers, tensors, lists of them; priorities under ``priority``.
LogVars: TypeAlias = dict[str, Any]
#: Plain data and tensors, as checkpoints hold them.
State: TypeAlias = dict[str, Any]
#: What a policy's ``forward`` takes: rows, ``Columns``, or what a user's policy asks for.
TrainData: TypeAlias = Any


class Rewards(Protocol):
    """A reward model, as the learner sees it."""

    def state_dict(self) -> State:
        """All that a resumed run needs."""

    def load_state_dict(self, state_dict: State) -> None:
        """Go on from a state or from a `checkpoint`."""

    def checkpoint(self) -> State:
        """What a checkpoint of the policy holds."""


class LearnMode(Protocol):
    """A policy in the mode in which it learns: ``policy.learn_mode``."""

    def forward(self, data: TrainData, **kwargs: object) -> LogVars | list[LogVars | None] | None:
        """Update once, or several times with a list of logs."""

    def monitor_vars(self) -> list[str]:
        """Names of logged values that are worth a curve."""

    def info(self) -> str:
        """The policy in words."""

    def get_attribute(self, name: str) -> Any:
        """A setting of the policy."""

    def set_attribute(self, name: str, value: object) -> None:
        """Change a setting of the policy."""

    def reset(self, data_id: list[int] | None = None) -> None:
        """Forget hidden states."""

    def state_dict(self) -> State:
        """Model, optimizer and counters."""

    def load_state_dict(self, state_dict: State) -> None:
        """Go on from a state."""


class HookedLearner(Protocol):
    """A learner, as the hooks of this package see it; `BaseLearner` has the meanings."""

    ckpt_name: str | None
    collector_envstep: int
    exp_name: str
    instance_name: str
    log_buffer: dict[str, LogVars]
    rank: int
    reward_model: Rewards | None

    @property
    def last_iter(self) -> CountVar: ...

    @property
    def logger(self) -> logging.Logger: ...

    @property
    def only_monitor_rank0(self) -> bool: ...

    @property
    def policy(self) -> LearnMode: ...

    def info(self, s: str) -> None: ...

    def update_monitor(self) -> None: ...

    def log_monitor(self) -> None: ...

"""What a commander knows of a policy in training and of the tasks of collectors."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Trainee:
    """A policy that a learner trains.

    Attributes:
        policy_id: File of its weights under ``path_policy``.
        buffer_id: Where its data goes.
        player_id: Of a league.
        learner_step: Updates so far.
        envstep: Env steps that were collected for it.
    """

    policy_id: str
    buffer_id: str
    player_id: str | None = None
    learner_step: int = 0
    envstep: int = 0

    def facts(self) -> dict[str, int]:
        """What settings depend on."""
        return {"learner_step": self.learner_step, "envstep": self.envstep}


@dataclass(eq=False)
class Job:
    """What a collector is asked to do.

    Attributes:
        settings: Of ``collector_cfg``.
        league_job: What the league asked for.
        since: When it was handed out, seconds.
        steps: Env steps reported so far.
        is_closing: The collector was told to stop.
        is_last: It was handed out when training was over.
    """

    trainee: Trainee
    is_eval: bool
    settings: dict[str, Any] = field(default_factory=dict)
    league_job: dict[str, Any] | None = None
    since: float = 0.0
    steps: int = 0
    is_closing: bool = False
    is_last: bool = False

"""What a league hands out and takes back, as plain dicts that commanders pass on."""

from typing import Any, TypedDict

from ding.utils.errors import DataError

#: How a game ended for the first of its players.
OUTCOMES = WINS, DRAWS, LOSSES = "wins", "draws", "losses"


class LeagueJob(TypedDict, total=False):
    """A game to be played, or an evaluation; lists have an entry for each player of it.

    Attributes:
        launch_player: The id of the active player that it is for.
        agent_num: How many players; 1 in an evaluation.
        player_id: Who plays.
        checkpoint_path: Where the weights of each are.
        player_active_flag: Whether each is being trained.
        eval_opponent: What an evaluation is played against.
    """

    launch_player: str
    agent_num: int
    player_id: list[str]
    checkpoint_path: list[str]
    player_active_flag: list[bool]
    eval_opponent: str


class LeagueJobResult(LeagueJob, total=False):
    """A job whose games were played; for ``result`` see `flat_outcomes`."""

    result: list[object]


class PlayerInfo(TypedDict):
    """Training progress of an active player: its id and number of updates."""

    player_id: str
    train_iteration: int


def flat_outcomes(result: Any) -> list[str]:
    """The games of a result as one list.

    Args:
        result: ``'wins'``, ``'draws'`` or ``'losses'`` per game; lists of them may be nested, as
            workers report one list per environment.

    Raises:
        DataError: It holds something else.
    """
    outcomes, pending = [], [result]
    while pending:
        part = pending.pop()
        if isinstance(part, (list, tuple)):
            pending.extend(reversed(part))
        elif part in OUTCOMES:
            outcomes.append(part)
        else:
            raise DataError(f"a game's result is one of {', '.join(OUTCOMES)}, got {part!r}")
    return outcomes

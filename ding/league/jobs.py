"""What a league hands out, and what it is told: plain dicts, as commanders pass them on."""

from typing import TypedDict


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
    """A job whose games were played.

    Attributes:
        result: ``'wins'``, ``'draws'`` or ``'losses'`` of the first player for each game; lists may
            be nested, as workers report one for each environment.
    """

    result: list[object]


class PlayerInfo(TypedDict):
    """How far the training of an active player is: its id, and updates so far."""

    player_id: str
    train_iteration: int

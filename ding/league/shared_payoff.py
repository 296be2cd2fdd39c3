"""The games of a league, as plain dicts that commanders pass on, and who won how often."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypedDict, TypeVar

import numpy as np
from easydict import EasyDict

from ding.utils.errors import ConfigError, DataError
from ding.utils.types import State

_logger = logging.getLogger(__name__)
#: How a game ended for the first of its players.
OUTCOMES = WINS, DRAWS, LOSSES = "wins", "draws", "losses"
_REVERSED = {WINS: LOSSES, DRAWS: DRAWS, LOSSES: WINS}


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


def flat_outcomes(result: object) -> list[str]:
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


class Member(Protocol):
    player_id: str


_Player = TypeVar("_Player", bound=Member)


class BattleRecordDict(dict[str, float]):
    """Counts of ``wins``, ``draws``, ``losses`` and of all ``games``, all 0 at first."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys((*OUTCOMES, "games"), 0.0))

    def __mul__(self, decay: float) -> "BattleRecordDict":
        scaled = BattleRecordDict()
        scaled.update((key, count * decay) for key, count in self.items())
        return scaled


class BattleSharedPayoff(Generic[_Player]):
    """Decayed records of each pair of players.

    Args:
        cfg: ``decay``: what older games of a pair still count after a new one. With fewer
            (decayed) games than ``min_win_rate_games`` (8) a win rate is taken to be 0.5.
    """

    def __init__(self, cfg: EasyDict) -> None:
        decay, min_games = cfg["decay"], cfg.get("min_win_rate_games", 8)
        if not 0 < decay <= 1:
            raise ConfigError(f"payoff.decay must be in (0, 1], got {decay!r}")
        if (1 - decay) * min_games >= 1:
            raise ConfigError(
                f"with payoff.decay={decay} a pair never counts as {min_games} games "
                f"(payoff.min_win_rate_games), so that no win rate is ever known: raise decay "
                f"above {1 - 1 / min_games:g}, or lower min_win_rate_games below "
                f"{1 / (1 - decay):g}"
            )
        self._decay, self._min_games = decay, min_games
        self._players: dict[str, _Player] = {}
        self._data: dict[str, BattleRecordDict] = {}

    def __getitem__(
        self, players: tuple[_Player | Sequence[_Player], _Player | Sequence[_Player]]
    ) -> np.ndarray:
        """Win rates of home against away, a draw being half a win.

        Args:
            players: ``(home, away)``, each a player or a list of players.

        Returns:
            float64 [home, away]; one-dimensional when either side is a single player.
        """
        homes, aways = (p if isinstance(p, Sequence) else [p] for p in players)
        rates = [[self._win_rate(h.player_id, a.player_id) for a in aways] for h in homes]
        table = np.array(rates, dtype=np.float64).reshape(len(homes), len(aways))
        return table.reshape(-1) if 1 in table.shape else table

    @property
    def players(self) -> list[_Player]:
        """All players, active and historical, in the order in which they joined."""
        return list(self._players.values())

    def add_player(self, player: _Player) -> None:
        """Add a player; one whose id is known is replaced, and its records are kept."""
        self._players[player.player_id] = player

    def replace_players(self, players: Iterable[_Player]) -> None:
        """Have these players and no others; records are kept."""
        self._players = {player.player_id: player for player in players}

    def update(self, job_info: LeagueJobResult) -> bool:
        """Count the games of a finished job, but those of a player against itself.

        Returns:
            Whether they are valid; if not, none was counted and a warning says why.
        """
        try:
            home, away = self._checked_pair(job_info)
            outcomes = flat_outcomes(job_info.get("result"))
        except DataError as error:
            _logger.warning("the games of a job are not counted: %s", error)
            return False
        if home != away:
            self._count(home, away, outcomes)
        return True

    def get_key(self, home: str, away: str) -> tuple[str, bool]:
        """Under which key the games of two player ids are kept, and whether seen from `away`."""
        is_reversed = home > away
        first, second = (away, home) if is_reversed else (home, away)
        return f"{first} vs {second}", is_reversed

    def state_dict(self) -> State:
        """The records; the owner of the players keeps those."""
        return {key: dict(record) for key, record in self._data.items()}

    def load_state_dict(self, state_dict: State) -> None:
        """Replace all records by those of a `state_dict`."""
        self._data = {}
        for key, counts in state_dict.items():
            self._data[key] = BattleRecordDict()
            self._data[key].update(counts)

    def _checked_pair(self, job_info: LeagueJobResult) -> tuple[str, str]:
        pair = job_info.get("player_id")
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise DataError(f"player_id must be [home, away], got {pair!r}")
        known = list(self._players)  # in a list may be looked for what cannot be hashed
        unknown = [player_id for player_id in pair if player_id not in known]
        if unknown:
            raise DataError(f"no such player: {', '.join(map(repr, unknown))}")
        return pair[0], pair[1]

    def _count(self, home: str, away: str, outcomes: list[str]) -> None:
        key, is_reversed = self.get_key(home, away)
        record = self._data.get(key, BattleRecordDict())
        for outcome in outcomes:
            record *= self._decay
            record[_REVERSED[outcome] if is_reversed else outcome] += 1
            record["games"] += 1
        self._data[key] = record

    def _win_rate(self, home: str, away: str) -> float:
        key, is_reversed = self.get_key(home, away)
        record = self._data.get(key)
        if record is None or record["games"] < self._min_games or not record["games"]:
            return 0.5
        wins = record[LOSSES if is_reversed else WINS]
        # The counts are rounded one by one: a quotient may be just above 1.
        return min((wins + 0.5 * record[DRAWS]) / record["games"], 1.0)


def create_payoff(cfg: EasyDict) -> BattleSharedPayoff[Any]:
    """The payoff that ``cfg.type`` names; only ``'battle'`` exists."""
    payoff_type = cfg.get("type")
    if payoff_type != "battle":
        raise ConfigError(f"payoff.type must be 'battle', got {payoff_type!r}")
    return BattleSharedPayoff(cfg)

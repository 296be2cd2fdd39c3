"""Jobs and results of a league as plain dicts, and the win rates between players."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypedDict, TypeVar

import numpy as np
from easydict import EasyDict

from ding.utils.errors import ConfigError, DataError
from ding.utils.types import State

_logger = logging.getLogger(__name__)
#: Outcomes of a game for its first player.
OUTCOMES = WINS, DRAWS, LOSSES = "wins", "draws", "losses"
_REVERSED = {WINS: LOSSES, DRAWS: DRAWS, LOSSES: WINS}


class LeagueJob(TypedDict, total=False):
    """A game or an evaluation; lists have one entry per player.

    Attributes:
        launch_player: Id of the active player for which the job is.
        agent_num: Number of players; 1 in an evaluation.
        player_id: Ids of the players.
        checkpoint_path: Checkpoints of the players.
        player_active_flag: Whether each player is in training.
        eval_opponent: Opponent of an evaluation.
    """

    launch_player: str
    agent_num: int
    player_id: list[str]
    checkpoint_path: list[str]
    player_active_flag: list[bool]
    eval_opponent: str


class LeagueJobResult(LeagueJob, total=False):
    """A finished job; for ``result`` see `flat_outcomes`."""

    result: list[object]


class PlayerInfo(TypedDict):
    """Training progress of an active player: its id and number of updates."""

    player_id: str
    train_iteration: int


def flat_outcomes(result: object) -> list[str]:
    """The outcomes in a result as one list.

    Args:
        result: ``'wins'``, ``'draws'`` or ``'losses'`` per game; lists may be nested, because
            workers report one list per environment.

    Raises:
        DataError: The result contains another value.
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
    """Counts of ``wins``, ``draws``, ``losses`` and of all ``games``, initially 0."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys((*OUTCOMES, "games"), 0.0))

    def __mul__(self, decay: float) -> "BattleRecordDict":
        scaled = BattleRecordDict()
        scaled.update((key, count * decay) for key, count in self.items())
        return scaled


class BattleSharedPayoff(Generic[_Player]):
    """Decayed records of each pair of players.

    Args:
        cfg: Config. Each new game of a pair multiplies the counts of older games by ``decay``. With
            fewer (decayed) games than ``min_win_rate_games`` (8), the win rate is assumed to be
            0.5.
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
        """Win rates of home against away; a draw counts as half a win.

        Args:
            players: ``(home, away)``, each a player or a list of players.

        Returns:
            float64 [home, away]; one-dimensional if either side is a single player.
        """
        homes, aways = (p if isinstance(p, Sequence) else [p] for p in players)
        rates = [[self._win_rate(h.player_id, a.player_id) for a in aways] for h in homes]
        table = np.array(rates, dtype=np.float64).reshape(len(homes), len(aways))
        return table.reshape(-1) if 1 in table.shape else table

    @property
    def players(self) -> list[_Player]:
        """All players, active and historical, in the order in which they were added."""
        return list(self._players.values())

    def add_player(self, player: _Player) -> None:
        """Add a player; replaces a player with the same id, whose records are kept."""
        self._players[player.player_id] = player

    def replace_players(self, players: Iterable[_Player]) -> None:
        """Replace all players; records are kept."""
        self._players = {player.player_id: player for player in players}

    def update(self, job_info: LeagueJobResult) -> bool:
        """Count the games of a finished job, except games of a player against itself.

        Returns:
            Whether the result is valid; if not, no game is counted and a warning is logged.
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
        """The key of the record of two players, and whether the record is from `away`'s view."""
        is_reversed = home > away
        first, second = (away, home) if is_reversed else (home, away)
        return f"{first} vs {second}", is_reversed

    def state_dict(self) -> State:
        """The records, without the players, which the league saves."""
        return {key: dict(record) for key, record in self._data.items()}

    def load_state_dict(self, state_dict: State) -> None:
        """Replace all records with those of a `state_dict`."""
        self._data = {}
        for key, counts in state_dict.items():
            self._data[key] = BattleRecordDict()
            self._data[key].update(counts)

    def _checked_pair(self, job_info: LeagueJobResult) -> tuple[str, str]:
        pair = job_info.get("player_id")
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise DataError(f"player_id must be [home, away], got {pair!r}")
        known = list(self._players)  # a list: ids from a worker may not be hashable
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
        # The counts are rounded separately, so the quotient may be slightly above 1.
        return min((wins + 0.5 * record[DRAWS]) / record["games"], 1.0)


def create_payoff(cfg: EasyDict) -> BattleSharedPayoff[Any]:
    """Create the payoff of type ``cfg.type``; the only type is ``'battle'``."""
    payoff_type = cfg.get("type")
    if payoff_type != "battle":
        raise ConfigError(f"payoff.type must be 'battle', got {payoff_type!r}")
    return BattleSharedPayoff(cfg)

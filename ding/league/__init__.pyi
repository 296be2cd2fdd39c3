from .base_league import BaseLeague as BaseLeague, create_league as create_league
from .metric import (
    LeagueMetricEnv as LeagueMetricEnv,
    PlayerRating as PlayerRating,
    get_elo as get_elo,
    get_elo_array as get_elo_array,
)
from .one_vs_one_league import OneVsOneLeague as OneVsOneLeague
from .player import (
    ActivePlayer as ActivePlayer,
    HistoricalPlayer as HistoricalPlayer,
    NaiveSpPlayer as NaiveSpPlayer,
    Player as Player,
    create_player as create_player,
)
from .shared_payoff import (
    BattleRecordDict as BattleRecordDict,
    BattleSharedPayoff as BattleSharedPayoff,
    create_payoff as create_payoff,
)
from .starcraft_player import (
    LeagueExploiter as LeagueExploiter,
    MainExploiter as MainExploiter,
    MainPlayer as MainPlayer,
)

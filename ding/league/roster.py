"""Who is in a league: made from its config, restored from its state."""

import os
from collections.abc import Callable
from typing import Any

from easydict import EasyDict

from ding.league.metric import LeagueMetricEnv, PlayerRating
from ding.league.player import ActivePlayer, HistoricalPlayer, Player, create_player
from ding.league.shared_payoff import BattleSharedPayoff
from ding.utils import CheckpointNotFoundError, ConfigError
from ding.utils.errors import UnknownTypeError


class Roster:
    """The players of a league by id; all of them are in `payoff` too.

    Args:
        cfg: The league's.
        path_policy: The folder of the checkpoints.
        copy_file: Called with source and destination.
    """

    def __init__(
        self,
        cfg: EasyDict,
        payoff: BattleSharedPayoff[Player],
        metric_env: LeagueMetricEnv,
        path_policy: str,
        copy_file: Callable[[str, str], None],
    ) -> None:
        self._cfg, self._payoff, self._metric_env = cfg, payoff, metric_env
        self._path_policy, self._copy_file = path_policy, copy_file
        self.active: dict[str, ActivePlayer] = {}
        self.historical: dict[str, HistoricalPlayer] = {}
        if cfg.use_pretrain_init_historical and not cfg.use_pretrain:
            raise ConfigError("league.use_pretrain_init_historical needs league.use_pretrain=True")
        for category in cfg.player_category:
            members = self._make_active(category)
            if cfg.use_pretrain:
                self._start_from_pretrained(category, members)
        if not self.active:
            raise ConfigError(
                f"a league needs players: active_players and player_category give none, got "
                f"{dict(cfg.get('active_players', {}))} and {cfg.player_category}"
            )

    def add_historical(self, player: HistoricalPlayer) -> None:
        self._payoff.add_player(player)
        self.historical[player.player_id] = player

    def find(self, player_id: str) -> Player:
        """The active or historical player of that id.

        Raises:
            UnknownTypeError: There is none (also a `KeyError`).
        """
        player = self.active.get(player_id) or self.historical.get(player_id)
        return player or self.find_active(player_id)

    def find_active(self, player_id: str) -> ActivePlayer:
        """The active player of that id.

        Raises:
            UnknownTypeError: There is none (also a `KeyError`).
        """
        if player_id not in self.active:
            kind = "an active" if player_id in self.historical else "a"
            raise UnknownTypeError(
                f"{player_id!r} is not {kind} player of the league; active are: "
                f"{', '.join(self.active)}"
            )
        return self.active[player_id]

    def state_dict(self) -> dict:
        """All players as plain data."""
        return {
            "active": {name: player.state_dict() for name, player in self.active.items()},
            "historical": [player.state_dict() for player in self.historical.values()],
        }

    def load_state_dict(self, state_dict: dict) -> None:
        """Bring all players to a state, historical ones included.

        Raises:
            ConfigError: It is the state of a league of other active players.
        """
        if set(state_dict["active"]) != set(self.active):
            raise ConfigError(
                f"the saved league has the active players {', '.join(state_dict['active'])}, the "
                f"config asks for {', '.join(self.active)}; change active_players or "
                f"player_category back, or start a new experiment"
            )
        for player_id, state in state_dict["active"].items():
            self.active[player_id].load_state_dict(state)
        self.historical = {}
        self._payoff.replace_players(self.active.values())
        for state in state_dict["historical"]:
            self.add_historical(self._restored(state))

    def _make_active(self, category: str) -> list[ActivePlayer]:
        members = []
        for player_type, count in self._cfg.get("active_players", {}).items():
            for index in range(count):
                player_id = f"{player_type}_{category}_{index}"
                player: Any = create_player(
                    self._cfg,
                    player_type,
                    self._section_of(player_type),
                    category,
                    self._payoff,
                    os.path.join(self._path_policy, f"{player_id}_ckpt.pth"),
                    player_id,
                    0,
                    self._metric_env.create_rating(),
                )
                self._payoff.add_player(player)
                self.active[player_id] = player
                members.append(player)
        return members

    def _section_of(self, player_type: str) -> EasyDict:
        if player_type not in self._cfg:
            raise ConfigError(
                f"league.active_players asks for {player_type!r}, but there is no section "
                f"league.{player_type} that says how it is trained"
            )
        return self._cfg[player_type]

    def _start_from_pretrained(self, category: str, members: list[ActivePlayer]) -> None:
        source = self._cfg.pretrain_checkpoint_path.get(category)
        if source is None or not os.path.isfile(source):
            raise CheckpointNotFoundError(
                f"league.use_pretrain asks for a file in "
                f"league.pretrain_checkpoint_path.{category}, got {source!r}"
            )
        for player in members:
            # One that exists is of a run that is being resumed.
            if not os.path.exists(player.checkpoint_path):
                self._copy_file(source, player.checkpoint_path)
        if self._cfg.use_pretrain_init_historical:
            for player in members[:1]:
                frozen = player.snapshot(self._metric_env)
                self._copy_file(source, frozen.checkpoint_path)
                self.add_historical(frozen)

    def _restored(self, state: dict) -> HistoricalPlayer:
        return HistoricalPlayer(
            self.active[state["parent_id"]].cfg,
            state["category"],
            self._payoff,
            state["checkpoint_path"],
            state["player_id"],
            state["total_agent_step"],
            PlayerRating(**state["rating"]),
            parent_id=state["parent_id"],
        )

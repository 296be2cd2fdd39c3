"""Base class of leagues: players, jobs, snapshots and ratings."""

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from easydict import EasyDict

from ding.league.metric import LeagueMetricEnv
from ding.league.player import ActivePlayer, HistoricalPlayer, Player, create_player
from ding.league.shared_payoff import (
    BattleSharedPayoff,
    LeagueJob,
    LeagueJobResult,
    PlayerInfo,
    create_payoff,
)
from ding.utils import (
    LEAGUE_REGISTRY,
    CheckpointError,
    CheckpointNotFoundError,
    ConfigError,
    deep_merge_dicts,
    import_module,
)
from ding.utils.default_helper import Configurable
from ding.utils.errors import UnknownTypeError
from ding.utils.file_helper import open_regular, write_atomically
from ding.utils.types import Config, State


class BaseLeague(Configurable, ABC):
    """Base of leagues; subclasses define the jobs in `_get_job_info`.

    Checkpoints are in ``cfg.path_policy``, which is created. Learners write the checkpoints of
    active players; the league copies them for snapshots.

    Args:
        cfg: Config, merged over `default_config`; ``active_players`` and ``branch_probs`` replace
            the defaults as a whole.

    Attributes:
        keep_checkpoint: Copies a player's checkpoint for `judge_snapshot`; by default
            `save_checkpoint`, to be replaced if checkpoints are not in files.

    Raises:
        ConfigError: A value is invalid; the message contains the key.
    """

    config: Config = dict(
        league_type="base",
        import_names=["ding.league.base_league"],
        # Categories that need separate players, for instance races
        player_category=["default"],
        # Initialise every player with the pretrained checkpoint of its category
        use_pretrain=False,
        # Also add the pretrained checkpoint as a historical player
        use_pretrain_init_historical=False,
        pretrain_checkpoint_path=dict(default="default_cate_pretrain.pth"),
        payoff=dict(type="battle", decay=0.99, min_win_rate_games=8),
        metric=dict(mu=0, sigma=25 / 3, beta=25 / 3 / 2, tau=0.0, draw_probability=0.02),
    )

    def __init__(self, cfg: EasyDict) -> None:
        self._cfg = self._merged(cfg)
        self._turn = 0
        self.keep_checkpoint: Callable[[str, str], object] = self.save_checkpoint
        self.path_policy: str = self._cfg.get("path_policy", "policy")
        try:
            os.makedirs(self.path_policy, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"path_policy={self.path_policy!r} cannot be made: {error.strerror}"
            ) from error
        self.payoff: BattleSharedPayoff[Player] = create_payoff(self._cfg.payoff)
        self.metric_env = LeagueMetricEnv(**self._cfg.metric)
        self._active: dict[str, ActivePlayer] = {}
        self._historical: dict[str, HistoricalPlayer] = {}
        self._make_players()

    def get_job_info(self, player_id: str | None = None, eval_flag: bool = False) -> LeagueJob:
        """A job (opponent and checkpoints) for a player; None selects active players in turn."""
        if player_id is None:
            ids = self.active_players_ids
            player_id = ids[self._turn % len(ids)]
            self._turn += 1
        return self._get_job_info(self._find_active(player_id), eval_flag)

    def judge_snapshot(self, player_id: str, force: bool = False) -> bool:
        """Take a snapshot of an active player, a `HistoricalPlayer` with a separate checkpoint, if
        the player is trained enough.

        Args:
            force: Whether to take it in any case, unless there is one of the same iteration.

        Returns:
            Whether a snapshot was taken.

        Raises:
            CheckpointError: The checkpoint cannot be copied; the league is unchanged.
        """
        player = self._find_active(player_id)
        if not (force or player.is_trained_enough()):
            return False
        frozen = player.snapshot(self.metric_env)
        if frozen.player_id in self._historical:
            return False
        self.keep_checkpoint(player.checkpoint_path, frozen.checkpoint_path)
        player.start_phase()
        self._add_historical(frozen)
        self._mutate_player(player)
        return True

    def update_active_player(self, player_info: PlayerInfo) -> None:
        """Record the training progress of a player."""
        self._update_player(self._find_active(player_info["player_id"]), player_info)

    def finish_job(self, job_info: LeagueJobResult) -> None:
        """Record the games of a job, and update the ratings of its players.

        Games of a player against itself and evaluations (``agent_num`` of 1) change nothing; an
        invalid result is skipped with a warning.
        """
        if job_info.get("agent_num", 2) == 1:
            return
        if not self.payoff.update(job_info):
            return
        home, away = (self.get_player_by_id(name) for name in job_info["player_id"])
        if home is away:
            return
        home.rating, away.rating = self.metric_env.rate_1vs1(
            home.rating, away.rating, job_info["result"]
        )

    def get_player_by_id(self, player_id: str) -> Player:
        """The active or historical player with this id; raises an `UnknownTypeError` otherwise."""
        return self._historical.get(player_id) or self._find_active(player_id)

    @staticmethod
    def save_checkpoint(src_checkpoint: str, dst_checkpoint: str) -> None:
        """Copy a file; the copy appears under its name once it is complete.

        Raises:
            CheckpointNotFoundError: The source does not exist.
            CheckpointError: The source cannot be read, or the copy cannot be written.
        """
        try:
            source = open_regular(src_checkpoint)
        except FileNotFoundError as error:
            raise CheckpointNotFoundError(
                f"there is no checkpoint {src_checkpoint} to copy: a player's learner must have "
                f"saved it before"
            ) from error
        except OSError as error:
            raise CheckpointError(f"cannot read {src_checkpoint}: {error.strerror}") from error
        with source:
            write_atomically(dst_checkpoint, lambda stream: shutil.copyfileobj(source, stream))

    def player_rank(self, string: bool = False) -> str | dict[str, float]:
        """The ratings (μ − 3σ) of all players, the best first; with ``string`` as a text table."""
        players = sorted(self.payoff.players, key=lambda p: p.rating.exposure, reverse=True)
        ranks = {player.player_id: player.rating.exposure for player in players}
        if not string:
            return ranks
        width = max(len("player"), *(len(player_id) for player_id in ranks))
        rows = [f"{player_id:<{width}}  {rank:8.3f}" for player_id, rank in ranks.items()]
        return "\n".join([f"{'player':<{width}}  {'rating':>8}", *rows])

    @property
    def active_players(self) -> list[ActivePlayer]:
        """The players in training."""
        return list(self._active.values())

    @property
    def active_players_ids(self) -> list[str]:
        """The ids of `active_players`, in the same order."""
        return [player.player_id for player in self.active_players]

    @property
    def historical_players(self) -> list[HistoricalPlayer]:
        """The snapshots of players, the oldest first."""
        return list(self._historical.values())

    def state_dict(self) -> State:
        """Players, records and ratings as plain data, without the checkpoints."""
        return {
            "players": {
                "active": {name: player.state_dict() for name, player in self._active.items()},
                "historical": [player.state_dict() for player in self._historical.values()],
            },
            "payoff": self.payoff.state_dict(),
            "turn": self._turn,
        }

    def load_state_dict(self, state_dict: State) -> None:
        """Restore a `state_dict` of a league with the same config.

        Raises:
            ConfigError: The saved league has other active players; this league is unchanged.
        """
        saved = state_dict["players"]
        if set(saved["active"]) != set(self._active):
            raise ConfigError(
                f"the saved league has the active players {', '.join(saved['active'])}, the "
                f"config asks for {', '.join(self._active)}; change active_players or "
                f"player_category back, or start a new experiment"
            )
        for player_id, state in saved["active"].items():
            self._active[player_id].load_state_dict(state)
        self._historical = {}
        self.payoff.replace_players(self._active.values())
        for state in saved["historical"]:
            self._add_historical(self._active[state["parent_id"]].restored_copy(state))
        self.payoff.load_state_dict(state_dict["payoff"])
        self._turn = state_dict["turn"]

    def _merged(self, cfg: EasyDict) -> EasyDict:
        merged = EasyDict(deep_merge_dicts(self.default_config(), cfg))
        # These two replace the defaults: merging would add to them.
        if "active_players" in cfg:
            merged.active_players = cfg["active_players"]
        for name, section in cfg.items():
            if isinstance(section, dict) and "branch_probs" in section:
                merged[name].branch_probs = section["branch_probs"]
        return merged

    def _make_players(self) -> None:
        cfg = self._cfg
        if cfg.use_pretrain_init_historical and not cfg.use_pretrain:
            raise ConfigError("league.use_pretrain_init_historical needs league.use_pretrain=True")
        wanted = cfg.get("active_players", {})
        for category in cfg.player_category:
            members = [
                self._make_active(player_type, f"{player_type}_{category}_{index}", category)
                for player_type, count in wanted.items()
                for index in range(count)
            ]
            if cfg.use_pretrain:
                self._start_from_pretrained(category, members)
        if not self._active:
            raise ConfigError(
                f"a league needs players: active_players and player_category give none, got "
                f"{dict(wanted)} and {cfg.player_category}"
            )

    def _make_active(self, player_type: str, player_id: str, category: str) -> ActivePlayer:
        if player_type not in self._cfg:
            raise ConfigError(
                f"league.active_players asks for {player_type!r}, but there is no section "
                f"league.{player_type} that says how it is trained"
            )
        player: Any = create_player(
            *(self._cfg, player_type, self._cfg[player_type], category, self.payoff),
            os.path.join(self.path_policy, f"{player_id}_ckpt.pth"),
            *(player_id, 0, self.metric_env.create_rating()),
        )
        self.payoff.add_player(player)
        self._active[player_id] = player
        return player

    def _start_from_pretrained(self, category: str, members: list[ActivePlayer]) -> None:
        source = self._cfg.pretrain_checkpoint_path.get(category)
        if source is None or not os.path.isfile(source):
            raise CheckpointNotFoundError(
                f"league.use_pretrain asks for a file in "
                f"league.pretrain_checkpoint_path.{category}, got {source!r}"
            )
        for player in members:
            # An existing checkpoint belongs to the run that is being resumed.
            if not os.path.exists(player.checkpoint_path):
                self.save_checkpoint(source, player.checkpoint_path)
        if self._cfg.use_pretrain_init_historical and members:
            frozen = members[0].snapshot(self.metric_env)
            self.save_checkpoint(source, frozen.checkpoint_path)
            self._add_historical(frozen)

    def _find_active(self, player_id: str) -> ActivePlayer:
        if player_id not in self._active:
            kind = "an active" if player_id in self._historical else "a"
            raise UnknownTypeError(
                f"{player_id!r} is not {kind} player of the league; active are: "
                f"{', '.join(self._active)}"
            )
        return self._active[player_id]

    def _add_historical(self, player: HistoricalPlayer) -> None:
        self.payoff.add_player(player)
        self._historical[player.player_id] = player

    @abstractmethod
    def _get_job_info(self, player: ActivePlayer, eval_flag: bool = False) -> LeagueJob:
        """The job of a player, for `get_job_info`."""

    def _update_player(self, player: ActivePlayer, player_info: PlayerInfo) -> None:
        player.total_agent_step = player_info["train_iteration"]

    def _mutate_player(self, player: ActivePlayer) -> None:
        """Reset a player to the pretrained checkpoint, if there is one and `mutate` returns it."""
        if not self._cfg.use_pretrain:
            return
        pretrained = self._cfg.pretrain_checkpoint_path[player.category]
        reset_from = player.mutate({"reset_checkpoint_path": pretrained})
        if reset_from is not None:
            self.save_checkpoint(reset_from, player.checkpoint_path)


def create_league(cfg: EasyDict, *args: object) -> BaseLeague:
    """Create the league of the registered type ``cfg.league_type``.

    Args:
        cfg: Config; the modules in ``import_names`` are imported first.
    """
    import_module(cfg.get("import_names", []))
    if "league_type" not in cfg:
        raise ConfigError("league.league_type is missing, for instance 'one_vs_one'")
    return LEAGUE_REGISTRY.build(cfg["league_type"], cfg, *args)

"""The players of a league: active players in training, and historical players (snapshots)."""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from easydict import EasyDict

from ding.league.metric import LeagueMetricEnv, PlayerRating
from ding.league.shared_payoff import BattleSharedPayoff
from ding.utils import PLAYER_REGISTRY, ConfigError, import_module
from ding.utils.types import SavedState, State

_REQUIRED = ("one_phase_step", "branch_probs", "strong_win_rate")
_WEIGHTINGS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "squared": lambda win_rates: (1 - win_rates) ** 2,
    "linear": lambda win_rates: 1 - win_rates,
    "linear_capped": lambda win_rates: np.minimum(0.5, 1 - win_rates),
    "variance": lambda win_rates: win_rates * (1 - win_rates),
}


def pfsp(win_rates: np.ndarray, weighting: str) -> np.ndarray:
    """Opponent probabilities of prioritised fictitious self-play (Vinyals et al., 2019).

    Args:
        win_rates: Win rate against each opponent, float [N] in ``[0, 1]``.
        weighting: ``'squared'``, ``'linear'`` and ``'linear_capped'`` prefer strong opponents,
            ``'variance'`` opponents of equal strength.

    Returns:
        Probabilities, float64 [N]; uniform if all weights are zero.
    """
    if weighting not in _WEIGHTINGS:
        raise ValueError(f"weighting is one of {', '.join(_WEIGHTINGS)}, got {weighting!r}")
    win_rates = np.asarray(win_rates, dtype=np.float64)
    if win_rates.ndim != 1 or not len(win_rates) or not np.all((win_rates >= 0) & (win_rates <= 1)):
        raise ValueError(f"win_rates is a list of numbers in [0, 1], not empty; got {win_rates}")
    weights = _WEIGHTINGS[weighting](win_rates)
    total = weights.sum()
    if total < 1e-10:
        return np.full(len(win_rates), 1 / len(win_rates))
    return weights / total


class Player:
    """Base class of the players of a league.

    Args:
        cfg: The config section of the player's type, for instance ``league.naive_sp_player``.
        category: Category of the player, for instance its race.
        init_payoff: The payoff that all players share.
        total_agent_step: Number of training iterations so far.
    """

    def __init__(
        self,
        cfg: EasyDict,
        category: str,
        init_payoff: BattleSharedPayoff["Player"],
        checkpoint_path: str,
        player_id: str,
        total_agent_step: int,
        rating: PlayerRating,
    ) -> None:
        self.cfg, self.category, self.payoff = cfg, category, init_payoff
        self.checkpoint_path, self.player_id = checkpoint_path, player_id
        self.total_agent_step, self.rating = total_agent_step, rating


@PLAYER_REGISTRY.register("historical_player")
class HistoricalPlayer(Player):
    """A frozen snapshot of the active player ``parent_id``."""

    def __init__(self, *args: Any, parent_id: str) -> None:
        super().__init__(*args)
        self.parent_id = parent_id

    def state_dict(self) -> State:
        """The player as plain data."""
        names = ("player_id", "parent_id", "category", "checkpoint_path", "total_agent_step")
        return {**{name: getattr(self, name) for name in names}, "rating": asdict(self.rating)}


def is_historical(player: Player) -> bool:
    return isinstance(player, HistoricalPlayer)


class ActivePlayer(Player):
    """A player in training.

    ``cfg.branch_probs`` maps the names of methods of selecting an opponent to their probabilities;
    a subclass has a method ``_<name>_branch()`` for each name, which returns a player.
    ``cfg.eval_opponent_difficulty`` lists the opponents of evaluations, the easiest first.

    Raises:
        ConfigError: A key is missing, a branch is unknown, or the probabilities do not add up to 1.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._branches = self._checked_branches()
        # Seeded from numpy's global generator, which `set_pkg_seed` seeds.
        self._rng = np.random.default_rng(np.random.randint(0, 2**31 - 1, size=4))
        self._phase_start = self.total_agent_step
        self._eval_opponent_difficulty = self.cfg.get("eval_opponent_difficulty") or ["RULE_BASED"]
        self._difficulty = 0

    def is_trained_enough(self, select_fn: Callable[[Player], bool] | None = None) -> bool:
        """Whether a snapshot is due.

        True after one phase (``one_phase_step`` iterations since the last snapshot) if the win rate
        against each selected player is at least ``strong_win_rate``, and after two phases in any
        case.

        Args:
            select_fn: Returns whether a player is selected; by default, all historical players are.
        """
        passed = self.total_agent_step - self._phase_start
        if passed < self.cfg.one_phase_step:
            return False
        if passed >= 2 * self.cfg.one_phase_step:
            return True
        rivals = self._players(select_fn or is_historical)
        return bool(rivals) and bool(self._win_rates(rivals).min() >= self.cfg.strong_win_rate)

    def start_phase(self) -> None:
        """Start the phase until the next snapshot."""
        self._phase_start = self.total_agent_step

    def snapshot(self, metric_env: LeagueMetricEnv) -> HistoricalPlayer:
        """Create a snapshot of the current player; the caller must copy its checkpoint.

        Its rating is as uncertain as a new player's: earlier games were played with other weights.
        """
        stem, extension = os.path.splitext(self.checkpoint_path)
        step = self.total_agent_step
        return HistoricalPlayer(
            *(self.cfg, self.category, self.payoff, f"{stem}_{step}{extension}"),
            *(f"{self.player_id}_{step}_historical", step),
            metric_env.create_rating(mu=self.rating.mu),
            parent_id=self.player_id,
        )

    def restored_copy(self, state: SavedState) -> HistoricalPlayer:
        """Restore a snapshot of this player from the snapshot's `state_dict`."""
        return HistoricalPlayer(
            *(self.cfg, state["category"], self.payoff, state["checkpoint_path"]),
            *(state["player_id"], state["total_agent_step"], PlayerRating(**state["rating"])),
            parent_id=state["parent_id"],
        )

    def mutate(self, info: Mapping[str, str]) -> str | None:
        """The checkpoint to which the player is reset after a snapshot: the pretrained one,
        ``info["reset_checkpoint_path"]``, or None for no reset."""
        return None

    def get_job(self, eval_flag: bool = False) -> dict[str, Any]:
        """Select the next ``opponent``: a player, or for an evaluation a difficulty."""
        if eval_flag:
            return {"opponent": self._eval_opponent_difficulty[self._difficulty]}
        names = list(self._branches)
        name = names[self._rng.choice(len(names), p=list(self._branches.values()))]
        return {"opponent": getattr(self, f"_{name}_branch")()}

    @property
    def eval_difficulty(self) -> int:
        """The opponent of evaluations, counted from the easiest one, 0."""
        return self._difficulty

    def increment_eval_difficulty(self) -> bool:
        """Use the next harder opponent in evaluations; False if there is none."""
        if self._difficulty + 1 >= len(self._eval_opponent_difficulty):
            return False
        self._difficulty += 1
        return True

    def state_dict(self) -> State:
        """The state of the player, including rating and random generator, as plain data."""
        return {
            "checkpoint_path": self.checkpoint_path,
            "total_agent_step": self.total_agent_step,
            "rating": asdict(self.rating),
            "phase_start": self._phase_start,
            "difficulty": self._difficulty,
            "rng": json.dumps(self._rng.bit_generator.state),
        }

    def load_state_dict(self, state_dict: State) -> None:
        """Restore the player's state, including its random generator."""
        self.checkpoint_path = state_dict["checkpoint_path"]
        self.total_agent_step = state_dict["total_agent_step"]
        self.rating = PlayerRating(**state_dict["rating"])
        self._phase_start = state_dict["phase_start"]
        self._difficulty = min(state_dict["difficulty"], len(self._eval_opponent_difficulty) - 1)
        self._rng.bit_generator.state = json.loads(state_dict["rng"])

    def _players(self, select_fn: Callable[[Player], bool]) -> list[Player]:
        return [player for player in self.payoff.players if select_fn(player)]

    def _win_rates(self, players: Sequence[Player]) -> np.ndarray:
        return self.payoff[[self], list(players)].reshape(-1)

    def _pick(
        self, players: Sequence[Player], default: Player, weighting: str | None = None
    ) -> Player:
        """Draw one of `players`, uniformly or with `pfsp`; `default` if there are none."""
        if not players:
            return default
        chances = None if weighting is None else pfsp(self._win_rates(players), weighting)
        return players[self._rng.choice(len(players), p=chances)]

    def _copies_of(self, *parents: Player) -> list[Player]:
        ids = {parent.player_id for parent in parents}
        return self._players(lambda p: isinstance(p, HistoricalPlayer) and p.parent_id in ids)

    def _or_weaker_copy(self, opponent: Player, min_win_rate: float) -> Player:
        """The opponent; if the win rate is too low, a snapshot of it of about equal strength."""
        if opponent is self or self._win_rates([opponent])[0] > min_win_rate:
            return opponent
        return self._pick(self._copies_of(opponent), default=opponent, weighting="variance")

    def _checked_branches(self) -> dict[str, float]:
        kind = type(self).__name__
        missing = [key for key in _REQUIRED if key not in self.cfg]
        if missing:
            raise ConfigError(f"the league's section of {kind} lacks {', '.join(missing)}")
        branches = dict(self.cfg.branch_probs)
        unknown = [name for name in branches if not hasattr(self, f"_{name}_branch")]
        if unknown:
            raise ConfigError(
                f"branch_probs of {kind} names {', '.join(unknown)}, but the class has no method "
                f"{', '.join(f'_{name}_branch' for name in unknown)}"
            )
        chances = branches.values()
        # Users may write thirds as 0.333; `Generator.choice` needs an exact sum.
        if any(p < 0 for p in chances) or not math.isclose(sum(chances), 1, abs_tol=0.01):
            raise ConfigError(f"branch_probs of {kind} must be >= 0 and add up to 1: {branches}")
        return {name: p / sum(chances) for name, p in branches.items()}


@PLAYER_REGISTRY.register("naive_sp_player")
class NaiveSpPlayer(ActivePlayer):
    """Active player with naive (``sp``) and prioritised fictitious self-play (``pfsp``)."""

    def _pfsp_branch(self) -> Player:
        return self._pick(self._players(is_historical), default=self, weighting="squared")

    def _sp_branch(self) -> Player:
        return self


def create_player(cfg: EasyDict, player_type: str, *args: object, **kwargs: object) -> Player:
    """Create a player of a registered type with the other arguments.

    Args:
        cfg: Config of the league; the modules in ``import_names`` are imported first.
    """
    import_module(cfg.get("import_names", []))
    return PLAYER_REGISTRY.build(player_type, *args, **kwargs)

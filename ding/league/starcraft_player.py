"""The three roles of the AlphaStar league (Vinyals et al., 2019)."""

from collections.abc import Callable, Mapping

import numpy as np

from ding.league.player import ActivePlayer, Player, is_historical
from ding.utils import PLAYER_REGISTRY, ConfigError


def _is_main(player: Player) -> bool:
    return isinstance(player, MainPlayer)


@PLAYER_REGISTRY.register("main_player")
class MainPlayer(ActivePlayer):
    """Main agent of the league, trained to beat all other players. It is never reset.

    Opponents against which its win rate is below ``cfg.min_valid_win_rate`` (0.3) are considered
    too strong to learn from.
    """

    def _pfsp_branch(self) -> Player:
        return self._pick(self._players(is_historical), default=self, weighting="squared")

    def _sp_branch(self) -> Player:
        main = self._pick(self._players(_is_main), default=self)
        return self._or_weaker_copy(main, self.cfg.get("min_valid_win_rate", 0.3))

    def _verification_branch(self) -> Player:
        """A snapshot of an exploiter that beats it, or an older snapshot of a main player against
        which its win rate has dropped."""
        exploiters = self._players(lambda p: isinstance(p, MainExploiter))
        copies = self._copies_of(*exploiters)
        if copies and self._win_rates(copies).min() < self.cfg.get("min_valid_win_rate", 0.3):
            return self._pick(copies, default=self, weighting="squared")
        copies = self._copies_of(self._pick(self._players(_is_main), default=self))
        copies = copies[: _forgotten_length(self._win_rates(copies))]
        if copies and self._win_rates(copies).min() < self.cfg.strong_win_rate:
            return self._pick(copies, default=self, weighting="squared")
        return self._sp_branch()


@PLAYER_REGISTRY.register("main_exploiter")
class MainExploiter(ActivePlayer):
    """Exploits weaknesses of the current main players.

    If the win rate against a main player is at most ``cfg.min_valid_win_rate`` (0.1), the opponent
    is a snapshot of that player, because the player itself is too strong to learn from.
    """

    def is_trained_enough(self, select_fn: Callable[[Player], bool] | None = None) -> bool:
        return super().is_trained_enough(select_fn or _is_main)

    def mutate(self, info: Mapping[str, str]) -> str:
        """Always returns the pretrained checkpoint."""
        return info["reset_checkpoint_path"]

    def _main_players_branch(self) -> Player:
        mains = self._players(_is_main)
        if not mains:
            raise ConfigError("a main_exploiter needs a main_player in league.active_players")
        main = self._pick(mains, default=self)
        return self._or_weaker_copy(main, self.cfg.get("min_valid_win_rate", 0.1))


@PLAYER_REGISTRY.register("league_exploiter")
class LeagueExploiter(ActivePlayer):
    """Exploits weaknesses of the whole league.

    ``cfg.mutate_prob`` (0.25) is the probability of a reset after a snapshot.
    """

    def mutate(self, info: Mapping[str, str]) -> str | None:
        is_reset = self._rng.random() < self.cfg.get("mutate_prob", 0.25)
        return info["reset_checkpoint_path"] if is_reset else None

    def _pfsp_branch(self) -> Player:
        return self._pick(self._players(is_historical), default=self, weighting="linear_capped")


def _forgotten_length(win_rates: np.ndarray) -> int:
    """Length of the list, oldest first, without the last snapshots of non-increasing win rates."""
    # Win rates normally drop with newer snapshots; a lower win rate against an older snapshot than
    # against a newer one shows forgetting.
    rises = np.flatnonzero(np.diff(win_rates) > 0)
    return int(rises[-1]) + 2 if len(rises) else 0

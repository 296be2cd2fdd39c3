"""The league for two-player games."""

from ding.league.base_league import BaseLeague
from ding.league.player import ActivePlayer
from ding.league.shared_payoff import LeagueJob
from ding.utils import LEAGUE_REGISTRY
from ding.utils.types import Config


@LEAGUE_REGISTRY.register("one_vs_one")
class OneVsOneLeague(BaseLeague):
    """League whose jobs are games of an active player against an opponent it selects."""

    config: Config = dict(
        BaseLeague.config,
        league_type="one_vs_one",
        import_names=["ding.league"],
        # Number of players per category, by type
        active_players=dict(naive_sp_player=1),
        naive_sp_player=dict(
            # Learner iterations
            one_phase_step=10,
            # Probability of playing against a historical player, and against itself
            branch_probs=dict(pfsp=0.5, sp=0.5),
            strong_win_rate=0.7,
        ),
    )

    def _get_job_info(self, player: ActivePlayer, eval_flag: bool = False) -> LeagueJob:
        opponent = player.get_job(eval_flag)["opponent"]
        players = [player] if eval_flag else [player, opponent]
        job_info: LeagueJob = {
            "agent_num": len(players),
            "launch_player": player.player_id,
            "player_id": [p.player_id for p in players],
            "checkpoint_path": [p.checkpoint_path for p in players],
            "player_active_flag": [isinstance(p, ActivePlayer) for p in players],
        }
        if eval_flag:
            job_info["eval_opponent"] = opponent
        return job_info

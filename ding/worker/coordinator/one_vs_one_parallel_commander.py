"""The commander of two-player games, whose players belong to a league."""

import logging
import math
import os
from collections import Counter
from typing import Any

from easydict import EasyDict

from ding.league import ActivePlayer, BaseLeague, create_league
from ding.league.shared_payoff import LeagueJob
from ding.utils import COMMANDER_REGISTRY, durations
from ding.utils.errors import CheckpointError, CheckpointNotFoundError, ConfigError
from ding.utils.types import Settings, State
from ding.worker.tasks import CollectorReport, CollectorTask, LearnerNews

from ._commander_tasks import OpenTask, Trainee, section, task_env
from .solo_parallel_commander import PolicyCommander

_logger = logging.getLogger(__name__)


@COMMANDER_REGISTRY.register("one_vs_one")
class OneVsOneCommander(PolicyCommander):
    """Trains every active player of a league by games, with a learner and a buffer each.

    The league chooses the opponent: the player itself, or a frozen snapshot. Evaluations are games
    of one player against the opponents ``eval_opponent_difficulty`` of its section in the league's
    config, which the environment provides (``env.eval_opponent``, with one player less). Only
    against the last of them does ``env.stop_value`` mean convergence.

    Args:
        cfg: The main config. ``policy.other.commander.league`` (or ``policy.other.league``) is the
            league's config, ``policy.other.commander.path_policy`` the folder of the weights.

    Raises:
        ConfigError: The league's config is invalid.
    """

    config: State = dict(collector_task_space=2)

    def __init__(self, cfg: Settings) -> None:
        super().__init__(cfg)
        self._eval_turn = 0
        self._snapshot_pauses: dict[str, float] = {}  # until when, by player
        self._league = self._make_league()
        players = self._league.active_players
        self.policy_num = len(players)
        if self._learners.space < len(players):
            raise ConfigError(
                f"policy.other.commander.learner_task_space is {self._learners.space}, but the "
                f"league has {len(players)} active players, each of which needs a learner"
            )
        for player in players:
            # Several runs may share the folder.
            player.checkpoint_path += f".{self._run_id}"
            self._waiting.append(_trainee(player).with_own_buffer())

    @property
    def league(self) -> BaseLeague:
        """The league whose players train."""
        return self._league

    def update_learner_info(self, task_id: str, info: LearnerNews) -> None:
        """Process a learner's report with ``learner_step``; saves a snapshot when due."""
        super().update_learner_info(task_id, info)
        trainee = self._learners.opened.get(task_id)
        if trainee is not None:
            self._tell_league(trainee)

    def get_collector_task(self) -> CollectorTask | None:
        # All players must be known, since each may be another's opponent.
        if len(self._current) < len(self._league.active_players):
            return None
        return super().get_collector_task()

    def finish_collector_task(self, task_id: str, finished_task: CollectorReport) -> bool:
        """Process the end of a collector's task; its games count in the league.

        Returns:
            Whether an evaluation against the hardest opponent reached ``env.stop_value``.
        """
        job = self._collectors.opened.get(task_id)
        if job is not None and job.league_job is not None and not job.is_eval:
            # A task that was closed early may have no finished game.
            result = finished_task.get("game_result") or []
            if result:
                self._league.finish_job({**job.league_job, "result": result})
        return super().finish_collector_task(task_id, finished_task)

    def weights_files(self) -> list[str]:
        players = [*self._league.active_players, *self._league.historical_players]
        return [os.path.basename(player.checkpoint_path) for player in players]

    def state_dict(self) -> State:
        # Players whose learner has not begun are in training, too.
        own = {"league": self._league.state_dict(), "eval_turn": self._eval_turn}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state_dict: State) -> None:
        self._league.load_state_dict(state_dict["league"])
        self._eval_turn = state_dict.get("eval_turn", 0)
        super().load_state_dict(state_dict)
        begun = {trainee.player_id for trainee in self._current}
        self._waiting += [
            _trainee(player).with_own_buffer()
            for player in self._league.active_players
            if player.player_id not in begun
        ]

    def _new_trainee(self) -> Trainee | None:
        return None

    def _learner_settings(self, trainee: Trainee) -> dict[str, object]:
        # Files and curves of several players are in the same folder.
        return {"player_id": trainee.player_id} if self.policy_num > 1 else {}

    def _source(self, job: OpenTask) -> str:
        name = super()._source(job)
        return f"{name}_{job.trainee.player_id}" if self.policy_num > 1 else name

    def _let_go(self, trainee: Trainee) -> None:
        self._current.remove(trainee)
        self._waiting.append(trainee.with_own_buffer())

    def _make_job(self, is_eval: bool) -> OpenTask:
        unfinished = [t for t in self._current if t.learner_step < self._train_iterations]
        trainee = self._whose_turn(unfinished or self._current, is_eval)
        league_job = self._league.get_job_info(trainee.player_id, eval_flag=is_eval)
        settings = _game(league_job)
        if is_eval:
            env = {**task_env(self._cfg, True), "eval_opponent": league_job["eval_opponent"]}
            player: Any = self._league.get_player_by_id(str(trainee.player_id))
            settings = {**settings, "env": env, "eval_stage": player.eval_difficulty}
        return OpenTask(trainee, is_eval, settings, league_job)

    def _whose_turn(self, trainees: list[Trainee], is_eval: bool) -> Trainee:
        """The next player, in turn, of those with the fewest collectors. Evaluations rotate
        separately: between long tasks, they would otherwise always select the same player."""
        if is_eval:
            self._eval_turn += 1
            return trainees[(self._eval_turn - 1) % len(trainees)]
        first = self._turn % len(trainees)
        self._turn += 1
        collecting = Counter(
            job.trainee.player_id for job in self._collectors.opened.values() if not job.is_eval
        )
        return min(
            trainees[first:] + trainees[:first], key=lambda trainee: collecting[trainee.player_id]
        )

    def _is_goal(self, job: OpenTask | None) -> bool:
        if job is None or job.trainee.player_id is None:
            return True
        player: Any = self._league.get_player_by_id(job.trainee.player_id)
        return not player.increment_eval_difficulty()

    def _tell_league(self, trainee: Trainee) -> None:
        player_id = str(trainee.player_id)
        if self.keep_weights is not None and (
            type(self._league).save_checkpoint is BaseLeague.save_checkpoint
        ):
            self._league.keep_checkpoint = self._keep_weights
        self._league.update_active_player(
            {"player_id": player_id, "train_iteration": trainee.learner_step}
        )
        if self.clock() < self._snapshot_pauses.get(player_id, -math.inf):
            return
        try:
            self._league.judge_snapshot(player_id)
        except CheckpointNotFoundError:
            return  # its learner has not published weights yet: retry at its next report
        except (CheckpointError, OSError) as error:
            # A full disk: a learner reports several times in a second.
            self._snapshot_pauses[player_id] = self.clock() + durations.SNAPSHOT_RETRY
            _logger.warning("no snapshot of %s was kept: %s", player_id, error)

    def _keep_weights(self, path: str, as_path: str) -> None:
        """Copy a player's weights to where the run stores them."""
        assert self.keep_weights is not None
        self.keep_weights(os.path.basename(path), os.path.basename(as_path))

    def _make_league(self) -> BaseLeague:
        own = self._own.get("league") or section(self._cfg, "policy", "other").get("league") or {}
        cfg = EasyDict({"league_type": "one_vs_one", **own})
        if "path_policy" not in cfg:
            cfg.path_policy = self._own.get("path_policy") or os.path.join(
                self._cfg.get("exp_name", "default_experiment"), "policy"
            )
        if cfg.get("use_pretrain"):
            raise ConfigError(
                "league.use_pretrain does not reach the learners of a parallel run; let them begin "
                "from a checkpoint with policy.learn.learner.hook.load_ckpt_before_run"
            )
        return create_league(cfg)


def _trainee(player: ActivePlayer) -> Trainee:
    return Trainee(os.path.basename(player.checkpoint_path), "", player_id=player.player_id)


def _game(league_job: LeagueJob) -> dict[str, object]:
    """The fields of a collector's task that describe the players."""
    return {
        "agent_num": league_job["agent_num"],
        "policy_update_path": [os.path.basename(p) for p in league_job["checkpoint_path"]],
        "policy_update_flag": [
            is_active and player_id == league_job["launch_player"]
            for is_active, player_id in zip(
                league_job["player_active_flag"], league_job["player_id"]
            )
        ],
    }

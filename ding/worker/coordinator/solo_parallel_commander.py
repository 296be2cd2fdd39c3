"""The commander of one policy, and the base of training commanders: tasks, evaluations, ends."""

import math
import time
import uuid
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict

from ding.envs import env_seeds
from ding.utils import COMMANDER_REGISTRY, durations
from ding.utils.default_helper import first_goal
from ding.utils.types import Settings, State
from ding.worker.tasks import (
    CollectorCounts,
    CollectorInfo,
    CollectorReport,
    CollectorTask,
    FailedTask,
    LearnerInfo,
    LearnerNews,
    LearnerTask,
)

from ._commander_tasks import (
    BaseCommander,
    OpenTask,
    TaskSpace,
    Trainee,
    collector_task,
    command_settings,
    commander_section,
    epsilon,
    learner_task,
    section,
    task_env,
    write_scalars,
)
from .run_facts import as_count, mean_return

_LAST_EVAL_TRIES = 3
#: Maximum excess of a running task's ε over the current ε.
MAX_EPS_LAG = 0.1
#: Evaluation intervals after which a collector's task is closed without waiting for episodes.
EPISODE_PATIENCE = 10


class PolicyCommander(BaseCommander):
    """Base of training commanders: one learner per trainee, many collectors.

    One collector evaluates every ``eval_interval`` seconds, never two at once, and a last time at
    the end of training (``learn.learner.train_iterations``, or ``max_env_step`` steps of all
    collectors). If a goal ends the run, evaluations come sooner as long as they take less than
    ``eval_share`` of the collectors' time: between two evaluations, a policy can reach the goal and
    lose it again. A single collector evaluates at most half of the time.

    Collectors of the fraction ``greedy_share`` of the env steps explore from the beginning as
    little as all do at the end: the others act at random and never try what the policy considers
    good, so the policy would not learn where that fails (Ape-X, Horgan et al. 2018, gives each
    actor a separate ε).

    Args:
        cfg: The main config.

    Attributes:
        clock: Returns the time in seconds.
    """

    config: State = dict(
        collector_task_space=1,
        learner_task_space=1,
        eval_interval=60,
        eval_share=0.0,
        greedy_share=0.0,
        max_env_step=math.inf,
    )
    #: Whether a collector's first task is an evaluation.
    _begins_with_eval = False

    def __init__(self, cfg: Settings) -> None:
        self._cfg = cfg
        self._own = commander_section(cfg, type(self))
        self.clock = time.monotonic
        self._collectors = TaskSpace[OpenTask]("collector_task", self._own.collector_task_space)
        self._learners = TaskSpace[Trainee]("learner_task", self._own.learner_task_space)
        self._setting = command_settings(cfg) if section(cfg, "policy").get("type") else None
        self._run_id = uuid.uuid4().hex[:8]
        self._stop_value = float(first_goal(section(cfg, "env").get("stop_value", math.inf)))
        self._train_iterations = float(
            section(cfg, "policy", "learn", "learner").get("train_iterations", math.inf)
        )
        self._waiting: list[Trainee] = []  # without a learner, before the end of training
        self._current: list[Trainee] = []  # the trainees that collectors work for
        self._turn = 0
        self._next_eval: float | None = None
        self._eval_failures = 0
        self._has_trained_all = False  # up to `_train_iterations`
        self._is_ending = False

    # ------------------------------------------------------------------ learners

    def get_learner_task(self) -> LearnerTask | None:
        """A task for an idle learner, or None."""
        if not self._learners.has_room or self._is_over:
            return None
        trainee = self._waiting.pop(0) if self._waiting else self._new_trainee()
        if trainee is None:
            return None
        task_id = self._learners.open(trainee)
        if trainee not in self._current:
            self._current.append(trainee)
        if self._next_eval is None:
            self._next_eval = self.clock()
            if not self._begins_with_eval:
                self._next_eval += self._own.eval_interval
        settings = self._learner_settings(trainee)
        return learner_task(self._cfg, task_id, trainee.policy_id, trainee.buffer_id, **settings)

    def _learner_settings(self, trainee: Trainee) -> dict[str, object]:
        """Fields of ``learner_cfg`` that this commander adds to a learner's task."""
        return {}

    def finish_learner_task(self, task_id: str, finished_task: LearnerInfo) -> str:
        """Process the end of a learner's task.

        Returns:
            The id of the buffer that is not needed any more.
        """
        trainee = self._learners.close(task_id)
        if trainee is None:
            return str(finished_task.get("buffer_id") or "")
        trainee.trained(finished_task)
        buffer_id = trainee.buffer_id
        if trainee.learner_step >= self._train_iterations:
            self._has_trained_all = not self._learners.opened and not self._waiting
        elif not self._is_ending:
            self._let_go(trainee)
        return buffer_id

    def update_learner_info(self, task_id: str, info: LearnerNews) -> None:
        """Process a learner's report with ``learner_step``."""
        trainee = self._learners.opened.get(task_id)
        if trainee is not None:
            trainee.trained(info)

    def notify_fail_learner_task(self, task: FailedTask) -> None:
        """Queue its policy for another learner, which continues where this one stopped."""
        trainee = self._learners.close(task.get("task_id"))
        if trainee is not None:
            self._waiting.append(trainee)

    # ------------------------------------------------------------------ collectors

    def get_collector_task(self) -> CollectorTask | None:
        if not self._current or not self._collectors.has_room or self.converged_reason:
            return None
        is_eval = self._is_eval_due()
        if self._is_trained_out and not is_eval:
            return None
        job = self._make_job(is_eval)
        if is_eval:
            self._next_eval = self.clock() + self._own.eval_interval
        job.since, job.is_last = self.clock(), self._is_trained_out
        job.is_greedy = not is_eval and self._wants_greedy(job.trainee)
        task_id = self._collectors.open(job)
        settings = self._task_settings(job)
        return collector_task(self._cfg, task_id, job.trainee.buffer_id, **settings)

    def _task_settings(self, job: OpenTask) -> dict[str, object]:
        """Fields that this commander adds to a collector's task."""
        settings: dict[str, object] = {
            "eval_flag": job.is_eval,
            "policy_update_path": job.trainee.policy_id,
            "env": task_env(self._cfg, job.is_eval),
            "seed": as_count(self._cfg.get("seed")),
        }
        if not job.is_eval:  # evaluations use the same seeds, to be comparable
            name = f"task {self._collectors.issued + 1}"
            # Without this seed, all tasks of a collector would begin with the same episodes.
            settings["seed"] = env_seeds(as_count(self._cfg.get("seed")), name, 1)[0]
        if self._setting is not None:
            job.collect_setting = self._collect_setting(job)
            settings["collect_setting"] = job.collect_setting
        return {**settings, **job.settings}

    def _collect_setting(self, job: OpenTask) -> Mapping[str, object]:
        """Settings from the policy's command mode for the current progress of training."""
        assert self._setting is not None
        facts = {**job.trainee.facts(), "greedy": job.is_greedy}
        return self._setting[job.is_eval](facts)

    def update_collect_progress(self, task_id: str, info: CollectorCounts) -> None:
        job = self._collectors.opened.get(task_id)
        if job is not None:
            job.count(info.get("cur_step"))

    def increase_collector_task_space(self) -> None:
        self._collectors.space += 1

    def decrease_collector_task_space(self) -> None:
        self._collectors.space = max(0, self._collectors.space - 1)  # open tasks stay open

    def judge_collector_finish(self, task_id: str, info: CollectorInfo) -> bool:
        """Whether a collector's task is over.

        An endless task is closed if an evaluation finds no idle collector, or if its settings are
        old; but each environment must first have had the time to end an episode. The next task
        starts new episodes, so otherwise late parts of an episode would never be collected.
        """
        if super().judge_collector_finish(task_id, info):
            return True
        job = self._collectors.opened.get(task_id)
        if job is None or job.is_eval:
            return False
        job.is_whole = job.is_whole or self._has_had_episodes(job, info)
        if not job.is_closing:
            is_wanted_back = job.is_whole and self._is_wanted_back(task_id, job)
            job.is_closing = self._is_trained_out or is_wanted_back
        return job.is_closing

    def finish_collector_task(self, task_id: str, finished_task: CollectorReport) -> bool:
        """Process the end of a collector's task.

        Returns:
            Whether an evaluation reached ``env.stop_value``.
        """
        job = self._collectors.close(task_id)
        is_eval = job.is_eval if job else bool(finished_task.get("eval_flag", False))
        if job is not None and not is_eval:
            job.count(finished_task.get("step_count"))
        if self.tb_logger is not None and job is not None:
            source, counts = self._source(job), (job.trainee.learner_step, job.trainee.envstep)
            write_scalars(self.tb_logger, source, is_eval, finished_task, *counts)
        return self._judge_evaluation(job, finished_task) if is_eval else False

    def _source(self, job: OpenTask) -> str:
        """Whose scalars a task's report becomes."""
        return job.source

    def notify_fail_collector_task(self, task: FailedTask) -> None:
        """Allow another task in its place; a failed evaluation is due again soon."""
        job = self._collectors.close(task.get("task_id"))
        if job is not None and job.is_eval:
            self._retry_evaluation(str(task.get("message") or "its collector failed"))

    def _has_had_episodes(self, job: OpenTask, info: CollectorInfo) -> bool:
        """Whether as many episodes have ended as there are environments, or they take too long."""
        age = self.clock() - job.since
        if "cur_episode" not in info or age >= EPISODE_PATIENCE * self._own.eval_interval:
            return True
        env_num = section(self._cfg, "env").get("collector_env_num") or 1
        return as_count(info["cur_episode"]) >= env_num

    def _is_wanted_back(self, task_id: str, job: OpenTask) -> bool:
        """Whether to close a task: it is the longest one and an evaluation needs its collector, or
        its settings are older than ``eval_interval``, or its ε is too high by now."""
        if self._is_eval_due(self.clock() - durations.EVAL_GRACE):
            jobs = {key: job for key, job in self._collectors.opened.items() if job.is_whole}
            # An evaluation needs one collector, and the longest task has the oldest settings.
            oldest = min(jobs, key=lambda key: jobs[key].since)
            return oldest == task_id and not any(job.is_closing for job in jobs.values())
        # The task after a limited one gets new settings anyway.
        is_endless = not section(self._cfg, "env").get("collector_episode_num")
        if self._setting is None or not is_endless:
            return False
        if self.clock() - job.since >= self._own.eval_interval:
            return True
        too_much = epsilon(job.collect_setting) - epsilon(self._collect_setting(job))
        return too_much > MAX_EPS_LAG  # false if ε is unknown (NaN)

    def _wants_greedy(self, trainee: Trainee) -> bool:
        """Whether the trainee's next collector should explore little."""
        share = float(self._own.greedy_share)
        others = [
            job.is_greedy
            for job in self._collectors.opened.values()
            if job.trainee is trainee and not job.is_eval
        ]
        if others:
            return sum(others) + 1 <= share * (len(others) + 1)
        return trainee.greedy_steps < share * trainee.envstep

    # ------------------------------------------------------------------ evaluations

    def _is_eval_due(self, now: float | None = None) -> bool:
        if any(job.is_eval for job in self._collectors.opened.values()) or self._is_over:
            return False
        now = self.clock() if now is None else now
        return self._next_eval is not None and (self._is_trained_out or now >= self._next_eval)

    def _judge_evaluation(self, job: OpenTask | None, info: CollectorReport) -> bool:
        reward = mean_return(info, is_eval=True)
        if reward is None:
            reported = {name: info.get(name) for name in ("reward_mean", "real_episode_count")}
            self._retry_evaluation(f"it gave no mean return of whole episodes: {reported}")
            return False
        self._eval_failures = 0
        if job is not None and self._next_eval is not None:
            now = self.clock()
            # Sooner than the interval if evaluations are cheap: between two, a policy may reach its
            # goal and lose it again.
            self._next_eval = min(self._next_eval, now + self._rest(job))
            if not self._collectors.opened:  # the only collector must collect, too
                self._next_eval = max(self._next_eval, now + (now - job.since))
        # Foreign collectors do not report the update of their weights.
        is_trained = "policy_iter" not in info or as_count(info["policy_iter"]) > 0
        if reward >= self._stop_value and is_trained and self._is_goal(job):
            reached = f"mean return {reward:.4g} reached stop_value {self._stop_value:g}"
            self.converged_reason = reached
        elif job is not None and job.is_last:
            self._finish(f"the last evaluation's mean return was {reward:.4g}")
        return self.converged_reason is not None

    def _rest(self, job: OpenTask) -> float:
        """Seconds to pause after an evaluation, so that evaluations keep to their share of time."""
        share = float(self._own.eval_share * self._own.collector_task_space)
        if not share or math.isinf(self._stop_value):
            return math.inf
        took = self.clock() - job.since
        return took * max(1 / share - 1, 0.0)

    def _retry_evaluation(self, cause: str) -> None:
        self._eval_failures += 1
        self._next_eval = self.clock() + min(durations.EVAL_RETRY, self._own.eval_interval)
        if self._is_trained_out and self._eval_failures >= _LAST_EVAL_TRIES:
            self._finish(f"the last evaluation failed: {cause}")

    def _finish(self, cause: str) -> None:
        limit = f"{self._train_iterations:.0f} iterations were trained"
        if not self._has_trained_all:
            limit = f"reached max_env_step {self._own.max_env_step:.0f}"
        self.finished_reason = f"{limit}; {cause}"

    @property
    def _is_trained_out(self) -> bool:
        steps = sum(trainee.envstep for trainee in self._current)
        return self._has_trained_all or steps >= self._own.max_env_step

    @property
    def _is_over(self) -> bool:
        return bool(self.converged_reason or self.finished_reason)

    # ------------------------------------------------------------------ kinds of commanders

    @abstractmethod
    def _new_trainee(self) -> Trainee | None:
        """The trainee of the next learner, if there is one."""

    def _let_go(self, trainee: Trainee) -> None:
        """The learner of a trainee was stopped before the end of training."""

    @abstractmethod
    def _make_job(self, is_eval: bool) -> OpenTask:
        """The next collector's task, for one of the current trainees."""

    def _is_goal(self, job: OpenTask | None) -> bool:
        """Whether an evaluation that reached ``stop_value`` ends the run."""
        return True

    # ------------------------------------------------------------------ state

    def weights_files(self) -> list[str]:
        return [trainee.policy_id for trainee in self._current]

    def note_end(self) -> bool:
        self._is_ending = True
        return True

    def state_dict(self) -> State:
        due = self._next_eval
        till_eval = None if due is None else max(0.0, due - self.clock())
        return {
            "_turn": self._turn,
            "_run_id": self._run_id,
            "trainees": [asdict(trainee) for trainee in self._current],
            "till_eval": till_eval,
            "issued": [self._learners.issued, self._collectors.issued],
        }

    def load_state_dict(self, state_dict: State) -> None:
        self._turn, self._run_id = state_dict["_turn"], state_dict["_run_id"]
        self._current = [Trainee(**fields) for fields in state_dict["trainees"]]
        # Including trainees with all updates: only a learner publishes weights to evaluate.
        self._waiting, self._has_trained_all = [*self._current], False
        wait = state_dict["till_eval"]
        self._next_eval = None if wait is None else self.clock() + wait
        self._learners.opened.clear()
        self._collectors.opened.clear()
        self._learners.issued, self._collectors.issued = state_dict["issued"]


@COMMANDER_REGISTRY.register("solo")
class SoloCommander(PolicyCommander):
    """One policy and one buffer, made with the learner's task; all collectors work for them.

    A second learner has no task until the first one is lost: it is in reserve.
    """

    config: State = dict(eval_share=0.1, greedy_share=0.5)
    _begins_with_eval = True

    def _new_trainee(self) -> Trainee | None:
        if self._is_trained_out or self._current:
            return None
        uid = uuid.uuid4().hex[:8]
        return Trainee(policy_id=f"policy_{uid}", buffer_id=f"buffer_{uid}")

    def _let_go(self, trainee: Trainee) -> None:
        self._current.remove(trainee)

    def _make_job(self, is_eval: bool) -> OpenTask:
        return OpenTask(self._current[-1], is_eval)

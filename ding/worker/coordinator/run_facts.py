"""Facts of a running parallel run: counters, rates, failures, and validated worker reports."""

import itertools
import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

from ding.envs.running_statistics import Statistics, merged
from ding.utils import durations
from ding.utils.errors import DingError
from ding.utils.types import State
from ding.utils.usage import FIGURES
from ding.worker.seams import TaskFailure
from ding.worker.tasks import CollectorReport, LearnerInfo

KEPT_FAILURES = 10
#: Maximum number of a custom policy's numbers that are shown.
MOST_NUMBERS = 8
#: A cause that workers report this often in a short time counts as permanent, despite progress.
SAME_CAUSE_LIMIT = 10
#: The attributes from which another coordinator resumes.
_SAVED = (
    *("envstep", "episodes", "train_iter", "episode_return", "last_eval_return"),
    *("best_return", "best_stage", "env_statistics"),
)


def as_number(value: object) -> float | None:
    """The value as a finite number; ``None`` if it is not one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None  # type: ignore[arg-type]


def as_count(value: object) -> int:
    """The value as a count; 0 if it is not a number."""
    number = as_number(value)
    return 0 if number is None or number < 0 else int(number)


def usage_figures(reported: object) -> dict[str, float]:
    """The CPU, memory and GPU figures in a report; invalid ones are left out."""
    given = reported if isinstance(reported, Mapping) else {}
    numbers = {name: as_number(given.get(name)) for name in FIGURES}
    return {name: value for name, value in numbers.items() if value is not None and value >= 0}


def own_numbers(reported: object) -> dict[str, float]:
    """A custom policy's numbers in a report, at most `MOST_NUMBERS`; invalid ones are left out."""
    given = reported if isinstance(reported, Mapping) else {}
    first = itertools.islice(given.items(), MOST_NUMBERS)
    numbers = {one_line(name, 40): as_number(value) for name, value in first}
    return {name: value for name, value in numbers.items() if value is not None}


def mean_return(info: CollectorReport, is_eval: bool) -> float | None:
    """The mean return in a collector's report.

    ``None`` if there is no episode, and for an incomplete evaluation, since the episodes that have
    ended are short ones.
    """
    if as_number(info.get("real_episode_count")) == 0:
        return None
    if is_eval and info.get("collector_done") is False:
        return None
    return as_number(info.get("reward_mean"))


def one_line(text: object, most: int = 600) -> str:
    """A text for the terminal: without control characters, and limited in length."""
    line = " ".join(str(text).split())
    return "".join(letter for letter in line if letter.isprintable())[:most]


def error_line(error: BaseException) -> str:
    """An error in one line, with its type unless it is a `DingError`."""
    if isinstance(error, DingError):
        return one_line(error)
    return one_line(f"{type(error).__name__}: {error}").removesuffix(":")


class DataRate(TypedDict):
    """Rate at which collectors provide data."""

    samples_per_s: float
    bytes_per_s: float


class PolicyStatus(TypedDict):
    """Age of a policy's weights: update of those published last, seconds since, and number of
    updates that collectors are behind. ``None`` if unknown."""

    iter: int | None
    age_s: float | None
    lag_iters: int | None


class FailureStatus(TypedDict):
    """A failure: its time (seconds since the epoch), worker, task and cause."""

    time: float
    worker: str
    task: str | None
    cause: str


@dataclass
class _Policy:
    """Number of updates; update and time of the published weights; update of those in use."""

    step: int = 0
    iter: int | None = None
    time: float = 0.0
    used: int | None = None


class Rate:
    """Amount per second over the last seconds."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, float]] = deque()
        self._total = 0.0

    def add(self, amount: float, now: float) -> None:
        self._total += amount
        if self._marks and now - self._marks[-1][0] < 0.1:
            self._marks[-1] = (self._marks[-1][0], self._marks[-1][1] + amount)
        else:
            self._marks.append((now, amount))
        self._forget(now)

    def per_second(self, now: float) -> float:
        self._forget(now)
        if not self._marks:
            return 0.0
        return self._total / max(now - self._marks[0][0], 1.0)

    def _forget(self, now: float) -> None:
        while self._marks and self._marks[0][0] < now - durations.DATA_RATE_SPAN:
            self._total -= self._marks.popleft()[1]


class RunFacts:
    """Counters and rates.

    Attributes:
        clock: Returns the time in seconds.
        best_stage: How hard the evaluation was that gave ``best_return``, see `TaskState`.
        troubles: What keeps workers from a part of their work, by their names.
    """

    def __init__(self) -> None:
        self.clock = time.monotonic
        self.started = self.clock()
        self.envstep = self.episodes = self.train_iter = 0
        self.episode_return: float | None = None
        self.last_eval_return: float | None = None
        self.best_return: float | None = None
        self.best_stage = 0
        self.failures: deque[FailureStatus] = deque(maxlen=KEPT_FAILURES)
        self.troubles: dict[str, str] = {}
        self.env_statistics: Statistics = {}
        self._steps: dict[str, int] = {}
        self._samples, self._bytes = Rate(), Rate()
        self._workers: defaultdict[str, Rate] = defaultdict(Rate)
        self._policies: defaultdict[str, _Policy] = defaultdict(_Policy)

    def collected(self, worker: str | None, samples: int, size: int) -> None:
        """Count a chunk."""
        now = self.clock()
        self._samples.add(samples, now)
        self._bytes.add(size, now)
        if worker is not None:
            self._workers[worker].add(samples, now)

    def observed(self, news: object) -> str | None:
        """Add a collector's statistics of normalising environments (`Statistics` as numbers and
        lists); returns the error if they are invalid."""
        try:
            self.env_statistics = merged([self.env_statistics, cast(Statistics, news)])
        except (AttributeError, KeyError, TypeError, ValueError) as err:
            return f"env_statistics {one_line(news, 80)} cannot be added up: {err}"
        return None

    def stepped(self, task_id: str, steps: object) -> int:
        """Count a collect task's env steps, ``steps`` so far; returns the run's total."""
        new = max(0, as_count(steps) - self._steps.get(task_id, 0))
        self._steps[task_id] = self._steps.get(task_id, 0) + new
        self.envstep += new
        return self.envstep

    def finished(self, task_id: str, is_eval: bool, info: CollectorReport, stage: int = 0) -> bool:
        """A collector's task is done; whether it was the best evaluation so far: of those of the
        highest ``stage``, the one with the highest return."""
        reward = mean_return(info, is_eval)
        if not is_eval:
            self.stepped(task_id, info.get("step_count"))
        self._steps.pop(task_id, None)
        if not is_eval:
            self.episodes += as_count(info.get("real_episode_count"))
            self.episode_return = self.episode_return if reward is None else reward
            return False
        if reward is None:
            return False
        self.last_eval_return = reward
        best = self.best_return
        is_best = best is None or (stage, reward) > (self.best_stage, best)
        if is_best:
            self.best_return, self.best_stage = reward, stage
        return is_best

    def trained(self, policy_id: str, info: LearnerInfo) -> int:
        """Process a learner's report on training; returns its step."""
        step = as_count(info.get("learner_step"))
        self.train_iter = max(self.train_iter, step)
        policy = self._policies[policy_id]
        policy.step = max(policy.step, step)
        published = info.get("policy_iter")
        if published is not None and as_count(published) != policy.iter:
            policy.iter, policy.time = as_count(published), self.clock()
        return step

    def note_trouble(self, worker: str, trouble: object) -> str | None:
        """Record what prevents a part of a worker's work, if anything; returns it if it is
        new."""
        if not trouble:
            self.troubles.pop(worker, None)
            return None
        before, self.troubles[worker] = self.troubles.get(worker), one_line(trouble)
        return None if before is not None else self.troubles[worker]

    def with_root(self, reason: str) -> str:
        """The reason of a failed run, after the earlier troubles of other workers."""
        troubles = [f"{worker}: {trouble}" for worker, trouble in self.troubles.items()]
        return "; ".join([*troubles, reason])

    def used(self, policy_id: str, policy_iter: object) -> None:
        """A collector used the policy of that update."""
        self._policies[policy_id].used = as_count(policy_iter)

    def failed(self, failure: TaskFailure) -> None:
        """A task failed, or a worker was lost; the task's env steps remain counted."""
        self._steps.pop(failure.task_id or "", None)
        entry: FailureStatus = {
            "time": round(time.time(), 3),
            "worker": failure.worker,
            "task": failure.task_id,
            "cause": one_line(failure.cause),
        }
        self.failures.append(entry)

    def forget_worker(self, worker: str) -> None:
        """Remove the figures of a worker that has left; another may join under its name."""
        self._workers.pop(worker, None)
        self.troubles.pop(worker, None)

    def rate_of(self, worker: str) -> float | None:
        """Samples per second of a collector."""
        rate = self._workers.get(worker)
        return None if rate is None else rate.per_second(self.clock())

    def data_rate(self) -> DataRate:
        now = self.clock()
        return {
            "samples_per_s": round(self._samples.per_second(now), 1),
            "bytes_per_s": round(self._bytes.per_second(now), 1),
        }

    def policies(self) -> dict[str, PolicyStatus]:
        """The age of each policy's weights."""
        now = self.clock()
        return {
            name: {
                "iter": policy.iter,
                "age_s": None if policy.iter is None else round(now - policy.time, 2),
                "lag_iters": None if policy.used is None else max(0, policy.step - policy.used),
            }
            for name, policy in self._policies.items()
        }

    def state_dict(self) -> State:
        return {name: getattr(self, name) for name in _SAVED}

    def load_state_dict(self, state_dict: State) -> None:
        # States of earlier versions have no stage.
        vars(self).update({name: state_dict[name] for name in _SAVED if name in state_dict})


class RetryLimit:
    """Counts failures per group of tasks; up to ``max_retry`` in a row without progress are
    retried. Workers that are lost together, such as those of one host, count as one failure.
    Learners' failures are also counted per policy, reset only by that policy's progress."""

    def __init__(self, max_retry: int) -> None:
        self._max = max_retry
        self._in_a_row: Counter[tuple[str, str]] = Counter()  # by group and policy
        self._lost_at: dict[str, float] = {}  # time of the last counted loss
        # For each group, times and causes of failures that workers reported.
        self._reported: defaultdict[str, deque[tuple[float, str]]]
        self._reported = defaultdict(lambda: deque(maxlen=SAME_CAUSE_LIMIT))
        # By policy: the step that its learner has reached, and its step at the last failure.
        self._steps: Counter[str] = Counter()
        self._marks: dict[str, int] = {}

    def progress(self, group: str, policy_id: str = "") -> None:
        """A task of the group has made progress."""
        for of in ("", policy_id):
            self._in_a_row.pop((group, of), None)

    def trained(self, step: int, policy_id: str = "") -> None:
        """A learner has reached that step; progress only beyond the step of its last failure."""
        self._steps[policy_id] = max(self._steps[policy_id], step)
        if step > self._marks.get(policy_id, -1):
            self.progress("learner", policy_id)

    def failed(
        self,
        group: str,
        failure: TaskFailure,
        now: float,
        created: float = math.inf,
        policy_id: str = "",
    ) -> str | None:
        """Count a failure of a task with the creation time ``created``, a learner's for
        ``policy_id``; returns why the run must end, or None."""
        if failure.lost:
            if created < self._lost_at.get(group, -math.inf):
                return None
            self._lost_at[group] = now
        if group == "learner":
            # A learner that was killed may resume before that step: any step counts as progress.
            self._marks[policy_id] = self._steps[policy_id] if failure.by_worker else -1
        for of in dict.fromkeys(("", policy_id)):
            self._in_a_row[group, of] += 1
            if (count := self._in_a_row[group, of]) > self._max:
                tasks = f"{group} tasks of {of}" if of else f"{group} tasks"
                cause = f"last at {failure.worker}: {failure.cause}"
                return f"{tasks} failed {count} times in a row, {cause}"
        reported = self._reported[group]
        if failure.by_worker:
            reported.append((now, failure.cause))
        if len(reported) == SAME_CAUSE_LIMIT:
            seconds = reported[-1][0] - reported[0][0]
            if seconds < durations.SAME_CAUSE_SPAN and len({cause for _, cause in reported}) == 1:
                return f"{group} tasks failed {SAME_CAUSE_LIMIT} times like this: {failure.cause}"
        return None

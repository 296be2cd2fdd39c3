"""The dicts of a run: the tasks that commanders hand out, and workers' reports on them.

They are dicts because users' commanders and DI-engine's workers write and read them, too. Any key
may be missing. What comes from a worker is JSON of the right shape as far as messages look
(`ding.worker.messages`); numbers in it are counted with only after `as_count` or `as_number`.
"""

from collections.abc import Mapping
from typing import TypedDict


class FailedTask(TypedDict, total=False):
    """A task that failed, or that no worker took: its fields, and the cause."""

    task_id: str
    message: str  # the cause, in a line


# ---------------------------------------------------------------------- collectors


class CollectorTask(TypedDict, total=False):
    """What a collector is asked to do."""

    task_id: str  # unlike that of any task before
    buffer_id: str  # where its samples go
    #: The collector's settings (``policy.collect.collector``) with ``policy``, ``env`` and
    #: ``exp_name``; ``collect_setting``, keyword arguments of the policy's ``forward``;
    #: ``eval_flag``, whether it evaluates; ``seed``; ``policy_update_path``, the name of the
    #: weights, or a list of one for each player.
    collector_cfg: Mapping[str, object]


class CollectorCounts(TypedDict, total=False):
    """The counts of a collector's task."""

    cur_episode: int  # episodes so far
    cur_sample: int  # samples
    cur_step: int  # env steps
    policy_iter: int  # update of the weights in use


class ChunkMeta(CollectorCounts, total=False):
    """The description of samples that were stored together."""

    data_id: str  # their name in the sample store
    sample_num: int  # how many there are; without it one, of a foreign collector
    size: int  # bytes
    collect_iter: int | list[int]  # update of the weights that collected them: of all, or of each
    priority: float | list[float]  # one priority for all of them, or one for each; >= 0
    #: What normalising environments have seen since: by wrapper, ``count``, ``mean`` and ``m2``.
    env_statistics: Mapping[str, object]
    unroll_split_begin: int  # the step that is the sample, of a foreign collector's trajectory
    unroll_len: int  # steps of the sample; 1


class CollectorInfo(CollectorCounts, total=False):
    """How far a collector's task is."""

    task_id: str | None
    collector_done: bool  # it has nothing more to collect
    written: int  # bytes of its chunks
    waiting: str | None  # what it waits for, such as ``space``; ``None`` if it works
    waiting_bytes: int  # size of the chunk that waits for space
    warning: str  # something that the operator should know
    #: CPU, memory and GPU of its process, see `ding.utils.usage.reported_usage`.
    usage: Mapping[str, object]


class CollectorReport(TypedDict, total=False):
    """How a collector's task ended."""

    task_id: str
    buffer_id: str | None
    eval_flag: bool  # whether it was an evaluation
    collector_done: bool  # whether it came to its own end
    real_episode_count: int  # episodes
    step_count: int  # env steps
    sample_count: int  # samples
    duration: float  # seconds; so are the averages ``avg_time_per_...``, ``None`` of nothing
    avg_time_per_step: float | None
    avg_time_per_train_sample: float | None
    avg_time_per_episode: float | None
    avg_step_per_episode: float | None  # env steps
    avg_sample_per_episode: float | None
    #: Mean of the returns (``reward_std``: their standard deviation); ``None`` without an episode.
    reward_mean: float | None
    reward_std: float | None
    reward_raw: list[float]  # the return of each episode
    episode_info: list[list[float]]  # ``[env_id, return, env steps]`` of each episode
    #: Of games for two, ``wins``, ``draws`` or ``losses`` of the first player in each; lists may be
    #: nested.
    game_result: list[object]
    collect_setting: Mapping[str, object]  # that of the task
    train_iter: int  # update of the weights that it played with
    policy_iter: int  # the same, of an evaluation whose weights were kept
    eval_policy: str  # name under which they were kept


# ---------------------------------------------------------------------- learners


class LearnerTask(TypedDict, total=False):
    """What a learner is asked to do."""

    task_id: str  # unlike that of any task before
    policy_id: str  # name under which it publishes its weights
    buffer_id: str  # where its batches come from
    learner_cfg: Mapping[str, object]  # ``policy.learn.learner`` with ``exp_name``
    replay_buffer_cfg: Mapping[str, object]  # ``policy.other.replay_buffer``
    policy: Mapping[str, object]  # the policy's config
    state_path: str  # where it keeps its state; the coordinator says so if the commander does not


class LearnerInfo(TypedDict, total=False):
    """How far a learner's task is, or how it ended; it also contains what the policy logs."""

    task_id: str
    learner_step: int  # updates so far
    learner_done: bool  # it has made its last one
    policy_iter: int  # update of the weights that were published last
    envstep: int  # env steps of all collectors, as far as it knows
    iters_per_second: float  # updates per second, of late
    iteration_seconds: float  # seconds that the update under way has taken
    wait_share: float  # part of its time, 0 to 1, that training waited for batches
    #: CPU, memory and GPU of its process, see `ding.utils.usage.reported_usage`.
    usage: Mapping[str, object]
    numbers: Mapping[str, object]  # what a user's policy logs in addition to its base, means
    policy_id: str  # name of its weights, in a report
    buffer_id: str | None  # its task's, in a report


class LearnerNews(LearnerInfo, total=False):
    """What has happened in training since a learner's last report."""

    #: For the buffer, lists with an entry for each sample: ``priority`` (>= 0),
    #: ``replay_unique_id`` and ``replay_buffer_idx``.
    priority_info: Mapping[str, object]
    bad_chunks: list[tuple[str, str]]  # chunks that cannot be read: name and cause of each
    warnings: list[str]  # what the operator should know
    trouble: str | None  # what keeps it from a part of its work, ``None`` for nothing
    waiting: str | None  # what it waits for; ``None`` if it works

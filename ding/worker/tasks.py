"""The dicts of a run: commanders' tasks, and workers' reports on them.

They are dicts because custom commanders and DI-engine's workers also read and write them. Any key
may be missing. Workers' data is JSON whose shape is only checked where messages need it
(`ding.worker.messages`); convert its numbers by `as_count` or `as_number` before using them.
"""

from collections.abc import Mapping
from typing import TypedDict


class FailedTask(TypedDict, total=False):
    """The fields of a task that failed, or that no worker took; and the cause."""

    task_id: str
    message: str  # the cause, in one line


# ---------------------------------------------------------------------- collectors


class CollectorTask(TypedDict, total=False):
    """A collector's task."""

    task_id: str  # unique in the run
    buffer_id: str  # buffer of its samples
    #: The collector's settings (``policy.collect.collector``) with ``policy``, ``env`` and
    #: ``exp_name``; ``collect_setting``, keyword arguments of the policy's ``forward``;
    #: ``eval_flag``, whether it evaluates; ``seed``; ``policy_update_path``, the name of the
    #: weights, or a list with one name per player.
    collector_cfg: Mapping[str, object]


class CollectorCounts(TypedDict, total=False):
    """The counts of a collector's task."""

    cur_episode: int  # episodes so far
    cur_sample: int  # samples
    cur_step: int  # env steps
    policy_iter: int  # update of the weights in use


class ChunkMeta(CollectorCounts, total=False):
    """Metadata of samples that were stored together."""

    data_id: str  # their name in the sample store
    sample_num: int  # number of samples; without it one, from a foreign collector
    size: int  # bytes
    collect_iter: int | list[int]  # update of the weights that collected them: one for all, or each
    priority: float | list[float]  # one priority for all, or one for each; >= 0
    #: New statistics of normalising environments: by wrapper, ``count``, ``mean`` and ``m2``.
    env_statistics: Mapping[str, object]
    unroll_split_begin: int  # the step that is the sample, in a foreign collector's trajectory
    unroll_len: int  # steps of the sample; 1


class CollectorInfo(CollectorCounts, total=False):
    """Progress of a collector's task."""

    task_id: str | None
    collector_done: bool  # whether nothing remains to collect
    written: int  # bytes of its chunks
    waiting: str | None  # what it waits for, such as ``space``; ``None`` if it is working
    waiting_bytes: int  # size of the chunk that waits for space
    warning: str  # a warning for the operator
    #: CPU, memory and GPU of its process, see `ding.utils.usage.reported_usage`.
    usage: Mapping[str, object]


class CollectorReport(TypedDict, total=False):
    """A collector's final report on a task."""

    task_id: str
    buffer_id: str | None
    eval_flag: bool  # whether it was an evaluation
    collector_done: bool  # whether the task ended by itself
    real_episode_count: int  # episodes
    step_count: int  # env steps
    sample_count: int  # samples
    duration: float  # seconds, as are the averages ``avg_time_per_...``; ``None`` if undefined
    avg_time_per_step: float | None
    avg_time_per_train_sample: float | None
    avg_time_per_episode: float | None
    avg_step_per_episode: float | None  # env steps
    avg_sample_per_episode: float | None
    #: Mean of the returns (``reward_std``: their standard deviation); ``None`` without episodes.
    reward_mean: float | None
    reward_std: float | None
    reward_raw: list[float]  # the return of each episode
    episode_info: list[list[float]]  # ``[env_id, return, env steps]`` of each episode
    #: For two-player games, ``wins``, ``draws`` or ``losses`` of the first player in each; lists
    #: may be nested.
    game_result: list[object]
    collect_setting: Mapping[str, object]  # the task's setting
    train_iter: int  # update of the weights that it used
    policy_iter: int  # the same, in an evaluation whose weights were kept
    eval_policy: str  # name under which they were kept


# ---------------------------------------------------------------------- learners


class LearnerTask(TypedDict, total=False):
    """A learner's task."""

    task_id: str  # unique in the run
    policy_id: str  # name under which it publishes its weights
    buffer_id: str  # buffer of its batches
    learner_cfg: Mapping[str, object]  # ``policy.learn.learner`` with ``exp_name``
    replay_buffer_cfg: Mapping[str, object]  # ``policy.other.replay_buffer``
    policy: Mapping[str, object]  # the policy's config
    state_path: str  # path of its saved state; set by the coordinator if the commander does not


class LearnerInfo(TypedDict, total=False):
    """Progress or final report of a learner's task, with the policy's log."""

    task_id: str
    learner_step: int  # updates so far
    learner_done: bool  # whether all updates were made
    policy_iter: int  # update of the weights that were published last
    envstep: int  # env steps of all collectors, as known to the learner
    iters_per_second: float  # recent updates per second
    iteration_seconds: float  # duration of the current update so far, in seconds
    wait_share: float  # fraction of its time, 0 to 1, that training waited for batches
    #: CPU, memory and GPU of its process, see `ding.utils.usage.reported_usage`.
    usage: Mapping[str, object]
    numbers: Mapping[str, object]  # means of what only a custom policy logs, not its base class
    policy_id: str  # name of its weights, in a final report
    buffer_id: str | None  # the task's buffer, in a final report


class LearnerNews(LearnerInfo, total=False):
    """News of training since a learner's last report."""

    #: For the buffer, lists with one entry per sample: ``priority`` (>= 0),
    #: ``replay_unique_id`` and ``replay_buffer_idx``.
    priority_info: Mapping[str, object]
    bad_chunks: list[tuple[str, str]]  # chunks that cannot be read: name and cause of each
    warnings: list[str]  # for the operator
    trouble: str | None  # what prevents a part of its work, ``None`` for nothing
    waiting: str | None  # what it waits for; ``None`` if it is working

"""The dicts of a run: the tasks that commanders hand out, and workers' reports on them.

They are dicts because users' commanders and DI-engine's workers write and read them, too. Any key
may be missing. What comes from a worker is JSON of the right shape as far as messages look
(`ding.worker.messages`); numbers in it are counted with only after `as_count` or `as_number`.
"""

from collections.abc import Mapping
from typing import TypedDict


class FailedTask(TypedDict, total=False):
    """A task that failed, or that no worker took: its fields, and the cause.

    Attributes:
        message: The cause, in a line.
    """

    task_id: str
    message: str


# ---------------------------------------------------------------------- collectors


class CollectorTask(TypedDict, total=False):
    """What a collector is asked to do.

    Attributes:
        task_id: Unlike that of any task before.
        buffer_id: Where its samples go.
        collector_cfg: The collector's settings (``policy.collect.collector``) with ``policy``,
            ``env`` and ``exp_name``; ``collect_setting``, keyword arguments of the policy's
            ``forward``; ``eval_flag``, whether it evaluates; ``seed``; ``policy_update_path``, the
            name of the weights, or a list of one for each player.
    """

    task_id: str
    buffer_id: str
    collector_cfg: Mapping[str, object]


class CollectorCounts(TypedDict, total=False):
    """The counts of a collector's task.

    Attributes:
        cur_episode: Episodes so far.
        cur_sample: Samples.
        cur_step: Env steps.
        policy_iter: Update of the weights in use.
    """

    cur_episode: int
    cur_sample: int
    cur_step: int
    policy_iter: int


class ChunkMeta(CollectorCounts, total=False):
    """The description of samples that were stored together.

    Attributes:
        data_id: Their name in the sample store.
        sample_num: How many there are; without it one, of a foreign collector.
        size: Bytes.
        collect_iter: Update of the weights that collected them: of all, or of each.
        priority: One priority for all of them, or one for each; >= 0.
        env_statistics: What normalising environments have seen since: by wrapper, ``count``,
            ``mean`` and ``m2``.
        unroll_split_begin: The step that is the sample, of a foreign collector's trajectory.
        unroll_len: Steps of the sample; 1.
    """

    data_id: str
    sample_num: int
    size: int
    collect_iter: int | list[int]
    priority: float | list[float]
    env_statistics: Mapping[str, object]
    unroll_split_begin: int
    unroll_len: int


class CollectorInfo(CollectorCounts, total=False):
    """How far a collector's task is.

    Attributes:
        collector_done: It has nothing more to collect.
        written: Bytes of its chunks.
        waiting: What it waits for, such as ``space``; ``None`` if it works.
        waiting_bytes: Size of the chunk that waits for space.
        warning: Something that the operator should know.
        usage: CPU, memory and GPU of its process, see `ding.utils.usage.reported_usage`.
    """

    task_id: str | None
    collector_done: bool
    written: int
    waiting: str | None
    waiting_bytes: int
    warning: str
    usage: Mapping[str, object]


class CollectorReport(TypedDict, total=False):
    """How a collector's task ended.

    Attributes:
        eval_flag: Whether it was an evaluation.
        collector_done: Whether it came to its own end.
        real_episode_count: Episodes.
        step_count: Env steps.
        sample_count: Samples.
        duration: Seconds; so are the averages ``avg_time_per_...``, ``None`` of nothing.
        avg_step_per_episode: Env steps.
        reward_mean: Mean of the returns (``reward_std``: their standard deviation); ``None``
            without an episode.
        reward_raw: The return of each episode.
        episode_info: ``[env_id, return, env steps]`` of each episode.
        game_result: Of games for two, ``wins``, ``draws`` or ``losses`` of the first player in
            each; lists may be nested.
        collect_setting: That of the task.
        train_iter: Update of the weights that it played with.
        policy_iter: The same, of an evaluation whose weights were kept.
        eval_policy: Name under which they were kept.
    """

    task_id: str
    buffer_id: str | None
    eval_flag: bool
    collector_done: bool
    real_episode_count: int
    step_count: int
    sample_count: int
    duration: float
    avg_time_per_step: float | None
    avg_time_per_train_sample: float | None
    avg_time_per_episode: float | None
    avg_step_per_episode: float | None
    avg_sample_per_episode: float | None
    reward_mean: float | None
    reward_std: float | None
    reward_raw: list[float]
    episode_info: list[list[float]]
    game_result: list[object]
    collect_setting: Mapping[str, object]
    train_iter: int
    policy_iter: int
    eval_policy: str


# ---------------------------------------------------------------------- learners


class LearnerTask(TypedDict, total=False):
    """What a learner is asked to do.

    Attributes:
        task_id: Unlike that of any task before.
        policy_id: Name under which it publishes its weights.
        buffer_id: Where its batches come from.
        learner_cfg: ``policy.learn.learner`` with ``exp_name``.
        replay_buffer_cfg: ``policy.other.replay_buffer``.
        policy: The policy's config.
        state_path: Where it keeps its state; the coordinator says so if the commander does not.
    """

    task_id: str
    policy_id: str
    buffer_id: str
    learner_cfg: Mapping[str, object]
    replay_buffer_cfg: Mapping[str, object]
    policy: Mapping[str, object]
    state_path: str


class LearnerInfo(TypedDict, total=False):
    """How far a learner's task is, or how it ended; it also contains what the policy logs.

    Attributes:
        learner_step: Updates so far.
        learner_done: It has made its last one.
        policy_iter: Update of the weights that were published last.
        envstep: Env steps of all collectors, as far as it knows.
        iters_per_second: Updates per second, of late.
        iteration_seconds: Seconds that the update under way has taken.
        wait_share: Part of its time, 0 to 1, that training waited for batches.
        usage: CPU, memory and GPU of its process, see `ding.utils.usage.reported_usage`.
        policy_id: Name of its weights, in a report.
        buffer_id: Its task's, in a report.
    """

    task_id: str
    learner_step: int
    learner_done: bool
    policy_iter: int
    envstep: int
    iters_per_second: float
    iteration_seconds: float
    wait_share: float
    usage: Mapping[str, object]
    policy_id: str
    buffer_id: str | None


class LearnerNews(LearnerInfo, total=False):
    """What has happened in training since a learner's last report.

    Attributes:
        priority_info: For the buffer, lists with an entry for each sample: ``priority`` (>= 0),
            ``replay_unique_id`` and ``replay_buffer_idx``.
        bad_chunks: Chunks that cannot be read: name and cause of each.
        warnings: What the operator should know.
        trouble: What keeps it from a part of its work, ``None`` for nothing.
        waiting: What it waits for; ``None`` if it works.
    """

    priority_info: Mapping[str, object]
    bad_chunks: list[tuple[str, str]]
    warnings: list[str]
    trouble: str | None
    waiting: str | None

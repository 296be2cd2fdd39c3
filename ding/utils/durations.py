"""Every duration of the package, in seconds.

They are in one module because many depend on each other: a caller's timeout must be longer than
the time that the callee may take, or the cause of a failure is lost.
`tests/utils/test_durations.py` checks these relations. Use them as ``durations.NAME``, so that a
test can change one for all users.
"""

# ------------------------------------------------------------------ the end of any run

#: Longest time from a signal to the end of the last process, even if something hangs.
END_PROMISE = 5.0
#: A second signal within this span is a forwarded copy of the first (shells, process managers).
SAME_REQUEST = 0.5

# ------------------------------------------------------------------ serial runs

#: After a signal, a round of collecting and updates may take this long to finish.
COLLECT_GRACE = 2.0
#: After a signal: time until an unfinished environment step, or update, is abandoned.
LEAVE_STEP = 1.5
LEAVE_UPDATE = 2.5
#: After a signal: time until a main thread that does not react, and components that do not close,
#: are abandoned.
MAIN_THREAD_LOST = 3.3
CLOSE_LIMIT = 4.4
#: Minimum wait for components to close after a signal, however late they began to close.
CLOSE_LOOK = 1.0
#: Limit of a save in place of an abandoned main thread, and of a save when nothing hangs: disks can
#: be slow, and a partial state is useless.
LAST_SAVE = 1.2
SAVE_LIMIT = 30.0
#: Time for the main thread to leave an environment that exceeded its limit.
LEAVE_HANG = 2.0
#: Default limit of one environment's step or reset, and extra time that the watchdog waits after
#: the env manager's own limit.
ENV_LIMIT = 60.0
ENV_LIMIT_GRACE = 2.0
#: Time until a warning about a slow environment, and about a slow update.
WARN_ENV = 5.0
WARN_UPDATE = 60.0
#: Time without the end of an episode until a warning.
WARN_EPISODE = 60.0
#: Interval of the watchdog's checks.
WATCH_LOOK = 0.25

#: Time for a run of a sweep, or of several seeds, to save and end before it is killed.
COMMAND_END = SAVE_LIMIT + END_PROMISE

#: Interval of saving the state, and minimum wait after a failed save.
SAVE_INTERVAL = 25.0
SAVE_RETRY = 60.0

#: Minimum interval of measuring CPU, memory and GPU of a process.
USAGE_SPAN = 5.0

# ------------------------------------------------------------------ processes of a parallel run

#: Time until a process reports that it is ready; a spawned process imports everything again.
FORK_START = 10.0
SPAWN_START = 60.0
#: At a normal end: time for the coordinator until its parent stops the workers, and time until all
#: processes have ended.
COORDINATOR_ENDING = 8.0
ALL_ENDING = 10.0
#: The same after a signal, or a failure.
COORDINATOR_STOPPING = 2.0
ALL_STOPPING = 3.5
#: Limit of joining the threads of a run in one process.
LOCAL_JOIN = 1.0
#: Time for a part to stop before its process ends.
PART_STOP = 3.5
#: Limit of joining the thread of a part.
PART_JOIN = 1.0
#: Waits before the n-th restart of a dead process; the last wait also applies to later restarts.
RESTART_WAITS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
#: Once a process has lived this long, its earlier deaths no longer count.
GOOD_LIFE = 600.0
#: Pause between attempts to start a worker that lacks resources, and time until this is reported.
SPAWN_PAUSE = 0.1
SPAWN_PATIENCE = 10.0
#: Time until a killed process has ended.
KILLED_GONE = 5.0

# ------------------------------------------------------------------ coordinator

#: Window over which the workers' shares of waiting time are measured.
WAIT_SHARE_SPAN = 10.0
#: Interval of polling the commander, whose tasks may depend on the time.
COORDINATOR_TICK = 0.2
#: At the end of the run: time for the loop and then the open tasks to end, and time for notifying
#: the workers and stopping the server.
LOOP_CLOSE = 1.0
COMM_CLOSE = 6.0
#: Interval of a worker's heartbeats, and time without a heartbeat until the worker counts as lost.
HEARTBEAT = 2.0
HEARTBEAT_TOLERANCE = 4.0
#: Minimum interval of heartbeats per worker in the run: many workers send them less often, so that
#: all together send at most a hundred per second.
HEARTBEAT_EACH = 0.01
#: Limits of a worker's answer: a step of a task, its start (creating environments may be slow), its
#: end, and an update of a worker that answers only after training.
STEP_TIMEOUT = 8.0
START_TIMEOUT = 60.0
CLOSE_TIMEOUT = 20.0
LEARN_TIMEOUT = 600.0
#: Maximum time without a report on a task.
COLLECTOR_TASK_TIMEOUT = 30
LEARNER_TASK_TIMEOUT = 600
#: Interval of saving the coordinator's state.
COORDINATOR_SAVE_INTERVAL = 2.0
#: A peer that does not answer a probe within this time loses its name to a new peer.
PROBE_TIMEOUT = 0.5
#: Pauses between attempts to connect to a worker, the first and the longest.
CONNECT_PAUSES = (0.1, 2.0)
#: Pauses of a worker after consecutive failures, the first and the longest.
WORKER_RESTS = (0.2, 10.0)
#: Time for the starter of a worker that no longer listens to report the cause.
CAUSE_WAIT = 0.5
#: Time for a worker that rejoins to end its earlier task.
WORKER_END = 4.0
#: How long a worker may hold a request before it answers that there is nothing new.
POLL = 0.5
#: Interval of polling a collector that waits for the learner.
RATE_LOOK = 0.1
#: Pauses between requests to a foreign worker, which answers at once, the first and the longest.
FOREIGN_PAUSES = (0.01, 0.25)
#: A cause that repeats within this span counts as permanent, even if there was progress.
SAME_CAUSE_SPAN = 60.0
#: Window over which samples per second are measured.
DATA_RATE_SPAN = 5.0
#: How long an evaluation waits for an idle collector, and the wait after a failed evaluation.
EVAL_GRACE = 0.5
EVAL_RETRY = 1.0
#: How long a league waits with a player's snapshot that could not be kept.
SNAPSHOT_RETRY = 10.0
#: Timeout of ``ding status``.
STATUS_TIMEOUT = 5.0

# ------------------------------------------------------------------ workers

#: Timeout of joining: the coordinator connects to the worker before it answers.
JOIN_TIMEOUT = 10.0
#: Pauses between attempts to join, the first and the longest; time after which a worker gives up:
#: at its start (the coordinator may start much later), and after the coordinator lost it.
JOIN_PAUSES = (0.05, 2.0)
JOIN_PATIENCE = 600.0
REJOIN_PATIENCE = 60.0
JOIN_CLOSE = 1.0
#: How long a worker waits for new data before it answers, by default and at most.
ANSWER_WAIT = 0.5
COLLECTOR_LONGEST_WAIT = 5.0
LEARNER_LONGEST_WAIT = 10.0

# ------------------------------------------------------------------ collectors

#: Limit of a step or reset: of all environments if the slow one is unknown, and of one environment
#: in a process, whose error must be raised first.
COLLECTOR_STEP_LIMIT = 8.0
ENV_PROCESS_LIMIT = 6.0
#: Limits of creating the environments, and of closing them.
ENV_LAUNCH_LIMIT = 60.0
ENV_CLOSE = 3.0
#: Time until a slow step is inspected, and the interval of these checks.
STEP_LOOK_AFTER = 1.0
STEP_LOOK = 0.25
#: Time for a collector to end its step, and for its report.
COLLECTOR_STOP = 3.0
COLLECTOR_REPORT = 15.0
#: Wait for the first version of a policy, and the interval of checking for it.
POLICY_FIRST_WAIT = 10.0
POLICY_LOOK = 0.1
#: A collector that cannot send samples for this long counts as waiting for the learner or for room.
SEND_WAIT = 0.02
#: Age at which samples are sent; minimum time between chunks, each of which costs a file and a
#: message; how long a message waits for further chunks.
CHUNK_AGE = 0.05
CHUNK_SPAN = 0.02
MESSAGE_GATHER = 0.02
#: The same wait per collector in the run, so that all together send a few hundred messages per
#: second to the coordinator; and its maximum, which is below the interval of heartbeats.
MESSAGE_GATHER_EACH = 0.002
MESSAGE_GATHER_MOST = 1.8
#: How long a full disk is retried, and the pause between attempts.
DISK_PATIENCE = 30.0
DISK_PAUSE = 1.0
#: Interval at which a waiting collector checks whether it was closed.
COLLECTOR_WAIT_LOOK = 1.0
#: Interval of sending the statistics of normalising environments.
ENV_STATISTICS_SPAN = 0.2

# ------------------------------------------------------------------ learners

#: Limits of the first iteration, which includes set-up, and of later iterations (at least; ten
#: times the longest so far, if that is more).
FIRST_ITERATION_TIMEOUT = 60.0
ITERATION_TIMEOUT = 8.0
#: Time for the training thread to stop.
LEARNER_STOP = 4.0
#: Seconds of training to keep ready as batches, in addition to the time they take to arrive.
BATCHES_AHEAD = 0.1
#: Interval of saving the learner's state; window over which updates per second are measured.
LEARNER_SAVE_INTERVAL = 2.0
UPDATE_RATE_SPAN = 1.0
#: Minimum interval of publishing the policy; pauses between attempts after a failure, the first and
#: the longest; time after which publishing fails.
PUBLISH_INTERVAL = 0.05
PUBLISH_PAUSES = (0.1, 1.0)
PUBLISH_PATIENCE = 10.0
#: Team of learners: time until all have met after a common start, and limit of each reduction.
GROUP_MEET = 10.0
GROUP_REDUCTION = 20.0

# The aggregator is between the coordinator and the team, and must answer within the coordinator's
# timeouts.
AGGREGATOR_STEP = 6.0
AGGREGATOR_START = 34.0
#: Wait for missing learners when a task starts.
AGGREGATOR_GATHER = 18.0
AGGREGATOR_CLOSE = 15.0
#: Time to end the other learners' tasks after a failure, and to find out which learner died.
TEAM_ABORT = 16.0
ROOT_CAUSE_WAIT = 5.0

# ------------------------------------------------------------------ Ray

#: Limit of fetching objects to a node: base, because a dead node does not answer, and per byte
#: (2 MB/s). The request's limit grows by the same amount.
RAY_FETCH = 4.0
RAY_FETCH_PER_BYTE = 5e-7
#: Interval at which the driver checks its workers, nodes and the head; timeout of one probe; time
#: without an answer after which a node, the head of a Ray that the run has started, and the head of
#: an existing cluster (default of the config) count as dead.
RAY_LOOK = 0.5
RAY_PROBE = 1.0
RAY_NODE_TOLERANCE = 2.0
RAY_HEAD_GONE = 4.0
RAY_HEAD_AWAY = 45.0
#: Interval of the driver's heartbeats to its workers; time without a heartbeat after which workers
#: end (default and minimum of the config); and limit of a worker's answer to a new driver.
RAY_BEAT = 4.0
RAY_DRIVER_AWAY = 60.0
RAY_DRIVER_AWAY_LEAST = 10.0
RAY_ADOPT = 4.0
#: Duration of one wait for Ray to place a worker on a node, which may delay the end of a run.
RAY_PLACE = 0.5
#: Time to leave a cluster, and to leave one whose connection a signal interrupted.
RAY_LEAVE = 5.0
RAY_LEAVE_EARLY = 1.5
#: Time for Ray's processes to end after that.
RAY_PROCESS_END = 2.0
#: Interval of checking for processes that an abandoned Ray still starts.
RAY_KILL_LOOK = 0.1

# ------------------------------------------------------------------ HTTP

CONNECT_TIMEOUT = 3.0
#: Timeout of one answer of a peer, and the pause between attempts.
REQUEST_TIMEOUT = 5.0
REQUEST_RETRY = 1.0
#: Timeout of the last request of a peer that ends.
LAST_REQUEST = 1.0
#: Default and minimum interval of slaves' heartbeats, and of the master's checks; a slave is lost
#: after five missing heartbeats.
SLAVE_HEARTBEAT = 3.0
SLAVE_HEARTBEAT_LEAST = 0.2
SLAVE_CHECK = 1.0
SLAVE_CHECK_LEAST = 0.1
SLAVE_TOLERANCE = 17.0
#: Time to end open requests, a master's callbacks and goodbyes, and a slave's task.
SERVER_STOP = 2.0
MASTER_STOP = 3.0
SLAVE_STOP = 5.0
#: Timeouts of a request's head and body; an idle connection may last longer.
HEAD_TIMEOUT = 10.0
BODY_TIMEOUT = 60.0
IDLE_TIMEOUT = 120.0
#: Limit of discarding an unread body.
DISCARD_TIMEOUT = 2.0
#: When descriptors, threads or memory run short: pause between attempts to accept; time without a
#: failure after which the shortage is over; time with failures after which the server stops.
SHORTAGE_PAUSE = 0.05
SHORTAGE_CALM = 5.0
SHORTAGE_LIMIT = 30.0

# ------------------------------------------------------------------ processes of environments

#: Extra time for a worker to report a call that it ended because of its limit.
ENV_REPORT_GRACE = 1.0
#: Time until a worker that was killed, or whose pipe is closed, has ended.
ENV_JOIN = 1.0
#: Time until workers that were asked to close are killed.
ENV_CLOSE_PATIENCE = 5.0
#: In a worker: limit of its environments' ``close``, and interval of checking the parent.
ENV_CLOSE_LIMIT = 30.0
ENV_PARENT_LOOK = 5.0
#: How long saving a state waits for a running step.
ENV_SETTLE = 0.5

# ------------------------------------------------------------------ files, logs, display

#: Longest time that log rows wait in memory.
LOG_FLUSH = 2.0
#: A disk write without progress for this long is reported; a run that ends after a signal does
#: not wait for it.
DISK_STALL = 3.0
#: How long a run's end waits for its trackers, after a signal and otherwise.
TRACKER_HASTE = 1.0
TRACKER_END = 4.0
#: Maximum time between creating a file and locking it.
FILE_LOCK = 1.0
#: Time to remove the files of used data, to end a data loader's threads, and to end the thread that
#: copies batches to a GPU.
USED_DATA_CLOSE = 30.0
LOADER_CLOSE = 10.0
FETCHER_CLOSE = 5.0
#: Timeouts of a data loader's batch and of a shared file's lock.
LOADER_BATCH = 600.0
LOCK_TIMEOUT = 60.0
#: Timeout of Slurm's commands.
SLURM_TIMEOUT = 60.0
#: Timeout of asking ``git`` for the current commit.
GIT_TIMEOUT = 1.0
#: Intervals of the plain display's lines, of its lines after evaluations, and of the live display;
#: window of the displayed rates, and minimum span that yields a rate.
PLAIN_LINES = 5.0
PLAIN_EVAL_LINES = 1.0
LIVE_PICTURES = 0.25
DISPLAY_RATE_SPAN = 5.0
DISPLAY_RATE_LEAST = 0.1
#: Time after which a repeated line counts as a new one.
REPEATS_SPAN = 30.0

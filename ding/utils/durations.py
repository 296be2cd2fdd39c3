"""Every duration of the package, in seconds.

They are here together because many work only if one is shorter than another: whoever waits for
something has to be more patient than what it waits for is allowed to take, or a cause is lost.
`tests/utils/test_durations.py` says which. Use them as ``durations.NAME``, so that a test can
change one for everybody.
"""

# ------------------------------------------------------------------ the end of any run

#: From a signal to the end of the last process, whatever hangs.
END_PROMISE = 5.0
#: Whoever forwards a signal that reached the whole process group sends it a second time.
SAME_REQUEST = 0.5

# ------------------------------------------------------------------ serial runs

#: A signal lets a collection go on for so long, so that the round can end as it would have.
COLLECT_GRACE = 2.0
#: After a signal: when a step of environments, or an update, is left where it is.
LEAVE_STEP = 1.5
LEAVE_UPDATE = 2.5
#: After a signal: when a main thread that does not react is done without, and when components
#: that do not close are.
MAIN_THREAD_LOST = 3.3
CLOSE_LIMIT = 4.4
#: Components that close in haste are looked at for so long, however late they began.
CLOSE_LOOK = 1.0
#: What saving may take in the place of a main thread that is lost, and what it may take if
#: nothing hangs: disks can be slow, and half a state is none.
LAST_SAVE = 1.2
SAVE_LIMIT = 30.0
#: The main thread has so long to leave an environment that has hung for too long.
LEAVE_HANG = 2.0
#: What one environment may take for a step or a reset if its config does not say; the watch
#: waits a little longer than the env manager itself.
ENV_LIMIT = 60.0
ENV_LIMIT_GRACE = 2.0
#: When the user is warned of what takes so long: an environment, an update.
WARN_ENV = 5.0
WARN_UPDATE = 60.0
#: From one look of the watch to the next.
WATCH_LOOK = 0.25

#: A run of a sweep, or of several seeds, that is told to end has so long before it is killed: it
#: may have to save first.
COMMAND_END = SAVE_LIMIT + END_PROMISE

#: A state is saved this often, however few updates there were, and not sooner after a failure.
SAVE_INTERVAL = 25.0
SAVE_RETRY = 60.0

# ------------------------------------------------------------------ processes of a parallel run

#: Until a process says that it works; a spawned one imports everything anew.
FORK_START = 10.0
SPAWN_START = 60.0
#: At the end of a run that nobody interrupts: what the coordinator has until its parent tells
#: the workers, and until all processes are gone.
COORDINATOR_ENDING = 8.0
ALL_ENDING = 10.0
#: The same after a signal, or a failure.
COORDINATOR_STOPPING = 2.0
ALL_STOPPING = 3.5
#: Threads of a run that lives in one process have ended by then, when it has.
LOCAL_JOIN = 1.0
#: What a part that was told to stop has to do so, before its process ends.
PART_STOP = 3.5
#: The thread of a part ends with it.
PART_JOIN = 1.0
#: Before a dead process is started again: the n-th time, and all later ones.
RESTART_WAITS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
#: Life after which earlier deaths of a process no longer count.
GOOD_LIFE = 600.0
#: Between tries to start a worker for which there is no room yet, and until that is told.
SPAWN_PAUSE = 0.1
SPAWN_PATIENCE = 10.0
#: A process that was killed is gone by then.
KILLED_GONE = 5.0

# ------------------------------------------------------------------ coordinator

#: Shares of time that workers wait are of about so long.
WAIT_SHARE_SPAN = 10.0
#: From one look at the commander, whose tasks may depend on the time, to the next.
COORDINATOR_TICK = 0.2
#: What the loop, and then the open tasks, have to end at the end of the run; and in which
#: workers are told of it and the server stops.
LOOP_CLOSE = 1.0
COMM_CLOSE = 6.0
#: Signs of life of a worker: between them, and without any until it is lost.
HEARTBEAT = 2.0
HEARTBEAT_TOLERANCE = 4.0
#: What a worker has for one step of a task, for beginning it (environments may be slow to make),
#: for ending it, and for an update of one that answers after training only.
STEP_TIMEOUT = 8.0
START_TIMEOUT = 60.0
CLOSE_TIMEOUT = 20.0
LEARN_TIMEOUT = 600.0
#: What may pass without news of a task.
COLLECTOR_TASK_TIMEOUT = 30
LEARNER_TASK_TIMEOUT = 600
#: From one save of the coordinator's state to the next.
COORDINATOR_SAVE_INTERVAL = 2.0
#: A silent peer is taken for dead then, when another wants its name.
PROBE_TIMEOUT = 0.5
#: Between tries to connect to a worker, the first and the longest.
CONNECT_PAUSES = (0.1, 2.0)
#: A worker rests after failures in a row, the first time and at most.
WORKER_RESTS = (0.2, 10.0)
#: In which whoever started a worker that does not listen any more may tell why.
CAUSE_WAIT = 0.5
#: A worker that comes again has so long to end what it did before.
WORKER_END = 4.0
#: A worker of ours may wait so long before it says that there is nothing new.
POLL = 0.5
#: A collector that has to wait for the learner is asked so often what it has to tell.
RATE_LOOK = 0.1
#: Between questions to a worker that answers at once that there is nothing new.
FOREIGN_PAUSES = (0.01, 0.25)
#: A cause that comes again and again in this span is there to stay, progress or not.
SAME_CAUSE_SPAN = 60.0
#: The line of a failure waits for news of who gets the task.
FAILURE_LINE_WAIT = 2.0
#: Over which samples per second are measured.
DATA_RATE_SPAN = 5.0
#: An evaluation waits for a collector to become idle by itself, and after a failed one.
EVAL_GRACE = 0.5
EVAL_RETRY = 1.0
#: Before a request to the operator in Kubernetes is sent again.
OPERATOR_RETRY = 0.5
#: An answer to ``ding status``.
STATUS_TIMEOUT = 5.0

# ------------------------------------------------------------------ workers

#: A worker that joins: the coordinator connects to it before it answers.
JOIN_TIMEOUT = 10.0
#: Between tries to join, the first and the longest, and until they are given up: at first, as
#: the coordinator may be started much later, and when it is lost.
JOIN_PAUSES = (0.05, 2.0)
JOIN_PATIENCE = 600.0
REJOIN_PATIENCE = 60.0
JOIN_CLOSE = 1.0
#: An answer without news waits for some, if the coordinator does not say, and at most.
ANSWER_WAIT = 0.5
COLLECTOR_LONGEST_WAIT = 5.0
LEARNER_LONGEST_WAIT = 10.0

# ------------------------------------------------------------------ collectors

#: What one environment may take for a step or a reset, and all of them where one cannot tell
#: which is at work; in a process of its own, so that its error comes first.
COLLECTOR_STEP_LIMIT = 8.0
ENV_PROCESS_LIMIT = 6.0
#: Making the environments, and closing them.
ENV_LAUNCH_LIMIT = 60.0
ENV_CLOSE = 3.0
#: When it is looked where the time of a step goes, and how often the task looks.
STEP_LOOK_AFTER = 1.0
STEP_LOOK = 0.25
#: What a collector gets to end its step, and when its report is waited for.
COLLECTOR_STOP = 3.0
COLLECTOR_REPORT = 15.0
#: For the first version of a policy, and between two looks for it.
POLICY_FIRST_WAIT = 10.0
POLICY_LOOK = 0.1
#: A collector that could not send its samples for so long has waited for the learner, or for room.
SEND_WAIT = 0.02
#: Samples are sent when they are so old; from chunk to chunk, each of which costs a file and a
#: message; and a message waits for others.
CHUNK_AGE = 0.05
CHUNK_SPAN = 0.02
MESSAGE_GATHER = 0.02
#: The same with many collectors: so much for each of them, that all together ask no more than some
#: hundred questions a second of the coordinator; at most, the other.
MESSAGE_GATHER_EACH = 0.002
MESSAGE_GATHER_MOST = 2.0
#: For room on a full disk, and between two tries to write.
DISK_PATIENCE = 30.0
DISK_PAUSE = 1.0
#: A collector that waits for anything looks whether it is closed.
COLLECTOR_WAIT_LOOK = 1.0
#: Between messages of what normalising environments have seen.
ENV_STATISTICS_SPAN = 0.2

# ------------------------------------------------------------------ learners

#: The first iteration sets up things; of those after it ten times the longest is allowed, too.
FIRST_ITERATION_TIMEOUT = 60.0
ITERATION_TIMEOUT = 8.0
#: What the training thread has to end when it is asked to.
LEARNER_STOP = 4.0
#: Training that is to wait ready as batches, beside the time that these take to come.
BATCHES_AHEAD = 0.1
#: From one state to the next, and over which updates per second are measured.
LEARNER_SAVE_INTERVAL = 2.0
UPDATE_RATE_SPAN = 1.0
#: From one version of the policy to the next; between tries after a failure, the first and the
#: longest, and until they are given up.
PUBLISH_INTERVAL = 0.05
PUBLISH_PAUSES = (0.1, 1.0)
PUBLISH_PATIENCE = 10.0
#: Learners that train together: until all have come, who are told to at the same time, and in
#: each reduction.
GROUP_MEET = 10.0
GROUP_REDUCTION = 20.0

# The aggregator stands between the coordinator and these, and has to answer before that gives up.
AGGREGATOR_STEP = 6.0
AGGREGATOR_START = 30.0
#: For learners that are missing when a task comes.
AGGREGATOR_GATHER = 25.0
AGGREGATOR_CLOSE = 15.0
#: Ending the tasks of the others when one has failed, and looking for what made them fail.
TEAM_ABORT = 16.0
ROOT_CAUSE_WAIT = 1.0

# ------------------------------------------------------------------ Ray

#: Bringing objects to a node: one that just died does not answer, and a request still has to; and
#: for each byte of them, as over a network of 2 MB/s. The request gets as much more time.
RAY_FETCH = 4.0
RAY_FETCH_PER_BYTE = 5e-7
#: Between looks of the driver at its workers, their nodes and the cluster's head; an attempt to
#: reach one of these; and until one that does not answer is taken for dead: a node, the head of a
#: Ray that the run has started, and that of another cluster unless the config says something else.
RAY_LOOK = 0.5
RAY_PROBE = 1.0
RAY_NODE_TOLERANCE = 2.0
RAY_HEAD_GONE = 4.0
RAY_HEAD_AWAY = 45.0
#: Between signs of life of the driver to workers that outlive it; until they end without any,
#: unless the config says something else, and the least that it may say; and in which a worker has
#: to answer another driver.
RAY_BEAT = 4.0
RAY_DRIVER_AWAY = 60.0
RAY_DRIVER_AWAY_LEAST = 10.0
RAY_ADOPT = 4.0
#: A worker is waited for this long at a time, while Ray looks for a node with room for it: the end
#: of a run waits for it.
RAY_PLACE = 0.5
#: Leaving a cluster; one to which a signal has kept the run from connecting has nothing to lose.
RAY_LEAVE = 5.0
RAY_LEAVE_EARLY = 1.5
#: What Ray's processes have to end after that.
RAY_PROCESS_END = 2.0
#: Between looks for processes that a Ray which is being given up has started meanwhile.
RAY_KILL_LOOK = 0.1

# ------------------------------------------------------------------ HTTP

CONNECT_TIMEOUT = 3.0
#: One answer of a peer, and between tries to get one.
REQUEST_TIMEOUT = 5.0
REQUEST_RETRY = 1.0
#: The last request of a peer that ends: there is no time for more.
LAST_REQUEST = 1.0
#: Heartbeats of slaves of a master that does not say, its looks at them, and the least that may
#: be asked for; a slave is lost after five that did not come.
SLAVE_HEARTBEAT = 3.0
SLAVE_HEARTBEAT_LEAST = 0.2
SLAVE_CHECK = 1.0
SLAVE_CHECK_LEAST = 0.1
SLAVE_TOLERANCE = 17.0
#: The end: of requests under way, of a master's callbacks and goodbyes, of a slave's task.
SERVER_STOP = 2.0
MASTER_STOP = 3.0
SLAVE_STOP = 5.0
#: Until the head of a request, and its body, has come; a connection may rest longer than that.
HEAD_TIMEOUT = 10.0
BODY_TIMEOUT = 60.0
IDLE_TIMEOUT = 120.0
#: For reading away a body that nobody wanted.
DISCARD_TIMEOUT = 2.0
#: Where descriptors, threads or memory are short: between tries to accept, without a failure
#: until that is over, and with failures until the server gives up.
SHORTAGE_PAUSE = 0.05
SHORTAGE_CALM = 5.0
SHORTAGE_LIMIT = 30.0

# ------------------------------------------------------------------ processes of environments

#: A worker itself ends calls that take too long; it has this much more to report that.
ENV_REPORT_GRACE = 1.0
#: A worker that was killed, or whose pipe has ended, is gone by then.
ENV_JOIN = 1.0
#: Until workers that were asked to close are killed.
ENV_CLOSE_PATIENCE = 5.0
#: In a worker: its environments' ``close``, and between looks at whether the parent lives.
ENV_CLOSE_LIMIT = 30.0
ENV_PARENT_LOOK = 5.0
#: A step under way may hold up the saving of a state.
ENV_SETTLE = 0.5

# ------------------------------------------------------------------ files, logs, display

#: Until what is told is on disk.
LOG_FLUSH = 2.0
#: A write to disk that makes no progress for so long is reported; a run that ends after a signal
#: does not wait for it.
DISK_STALL = 3.0
#: Trackers: what a run's start waits for them, what one call may take until the tracker is called
#: no more, and what the run's end waits for all of them, after a signal and otherwise.
TRACKER_START = 5.0
TRACKER_CALL = 60.0
TRACKER_HASTE = 1.0
TRACKER_END = 4.0
#: From a file's making to its lock.
FILE_LOCK = 1.0
#: Closing waits for the files of used data, and for the threads of a data loader and of what
#: fetches batches to a GPU.
USED_DATA_CLOSE = 30.0
LOADER_CLOSE = 10.0
FETCHER_CLOSE = 5.0
#: A data loader's batch, and a lock on a file that others share.
LOADER_BATCH = 600.0
LOCK_TIMEOUT = 60.0
#: An answer of Slurm's commands.
SLURM_TIMEOUT = 60.0
#: ``git`` is asked what is run.
GIT_TIMEOUT = 1.0
#: Between lines of the plain display, also when an evaluation has ended, and pictures of the live
#: one; over which its rates are measured, and the least span that gives one.
PLAIN_LINES = 5.0
PLAIN_EVAL_LINES = 1.0
LIVE_PICTURES = 0.25
DISPLAY_RATE_SPAN = 5.0
DISPLAY_RATE_LEAST = 0.1
#: Until the count of lines that repeat is shown.
REPEATS_SPAN = 30.0

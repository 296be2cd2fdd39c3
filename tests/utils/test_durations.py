"""Waits that only work if one is shorter than another."""

import ast
import pathlib
import re

import pytest

import ding
from ding.utils import durations as d

# Each chain rises; equal neighbours are a shared limit.
CHAINS = {
    # From a signal to a serial run's end: what goes less well comes later.
    "leave a step, then do without the main thread": (
        *(d.LEAVE_STEP, d.LEAVE_UPDATE, d.MAIN_THREAD_LOST),
        *(d.CLOSE_LIMIT, d.END_PROMISE),
    ),
    "a round may end before its thread is given up": (d.COLLECT_GRACE, d.MAIN_THREAD_LOST),
    "the state of a lost main thread is saved in time": (
        *(d.MAIN_THREAD_LOST, d.MAIN_THREAD_LOST + d.LAST_SAVE, d.END_PROMISE),
    ),
    "a disk that does not answer is known when the main thread is given up": (
        *(d.DISK_STALL, d.MAIN_THREAD_LOST),
    ),
    "trackers end within a run's end": (d.TRACKER_HASTE, d.END_PROMISE - d.MAIN_THREAD_LOST),
    "trackers have less time after a signal": (d.TRACKER_HASTE, d.TRACKER_END),
    "closing is looked at before its limit": (d.CLOSE_LOOK, d.CLOSE_LIMIT),
    "a run that lives is not ended as one that is held": (d.WATCH_LOOK, d.ENV_LIMIT),
    "the user is warned of a slow env before it ends the run": (d.WARN_ENV, d.ENV_LIMIT),
    # Processes of a parallel run.
    "one request is not taken for two": (d.SAME_REQUEST, d.COORDINATOR_STOPPING),
    "workers hear of a stop from their parent at last": (
        *(d.COORDINATOR_STOPPING, d.ALL_STOPPING, d.END_PROMISE),
    ),
    "a part ends itself before it is killed": (d.COLLECTOR_STOP, d.PART_STOP, d.ALL_STOPPING),
    "a run ends quicker if it is interrupted": (d.ALL_STOPPING, d.ALL_ENDING),
    "the coordinator lets its workers go before its parent does": (
        *(2 * d.LOOP_CLOSE + d.COMM_CLOSE, d.COORDINATOR_ENDING, d.ALL_ENDING),
    ),
    "goodbyes fit into the coordinator's end": (d.SERVER_STOP, d.MASTER_STOP, d.COMM_CLOSE),
    "a forked process comes up sooner": (d.FORK_START, d.SPAWN_START),
    "a crash loop ends before its deaths are forgotten": (sum(d.RESTART_WAITS), d.GOOD_LIFE),
    # A step of a task: the innermost gives up first, so that its cause is the one that is reported.
    "an env process, its collector, the coordinator": (
        *(d.ENV_PROCESS_LIMIT + d.ENV_REPORT_GRACE, d.COLLECTOR_STEP_LIMIT, d.STEP_TIMEOUT),
    ),
    "environments are made, a policy is there, a task begins": (
        *(d.POLICY_FIRST_WAIT, d.ENV_LAUNCH_LIMIT, d.START_TIMEOUT),
    ),
    "a collector's report comes before its task is given up": (
        *(d.COLLECTOR_STOP, d.COLLECTOR_REPORT, d.CLOSE_TIMEOUT),
    ),
    "environments close before their collector is hung": (d.ENV_CLOSE, d.COLLECTOR_REPORT),
    "a worker's answer without news is an answer in time": (
        *(d.ANSWER_WAIT, d.COLLECTOR_LONGEST_WAIT, d.STEP_TIMEOUT),
    ),
    "the coordinator polls within a step": (d.POLL, d.STEP_TIMEOUT),
    "a chunk on a dead node is given up before the step": (d.POLL + d.RAY_FETCH, d.STEP_TIMEOUT),
    "the run knows of a dead node before Ray does": (
        *(d.RAY_LOOK + d.RAY_PROBE + d.RAY_NODE_TOLERANCE, d.STEP_TIMEOUT),
    ),
    "a worker on Ray hears of its driver before it ends": (
        *(2 * (d.RAY_BEAT + d.RAY_LOOK + d.RAY_PROBE) - d.RAY_PROBE, d.RAY_DRIVER_AWAY_LEAST),
    ),
    "a run that a signal kept from Ray ends in time": (2 * d.RAY_LEAVE_EARLY, d.END_PROMISE),
    "the run knows of a dead head before a step fails of it": (
        *(d.RAY_LOOK + d.RAY_PROBE, d.RAY_HEAD_GONE, d.STEP_TIMEOUT),
    ),
    "a collector that answers sends no heartbeats": (d.MESSAGE_GATHER_MOST, d.HEARTBEAT),
    "messages gather while a collector may wait": (
        2 * d.MESSAGE_GATHER_MOST,
        d.COLLECTOR_LONGEST_WAIT,
    ),
    "a worker that comes again has ended what it did": (
        *(d.COLLECTOR_STOP, d.LEARNER_STOP, d.WORKER_END),
    ),
    "a learner stops before its task is given up": (
        *(d.LEARNER_STOP, d.AGGREGATOR_CLOSE, d.TEAM_ABORT, d.CLOSE_TIMEOUT),
    ),
    "weights are published before a learner's task ends": (
        *(d.PUBLISH_INTERVAL, d.LEARNER_STOP / 2),
    ),
    "the aggregator answers before the coordinator gives up": (d.AGGREGATOR_STEP, d.STEP_TIMEOUT),
    "the aggregator's learners come and begin in time": (
        *(d.AGGREGATOR_GATHER + d.AGGREGATOR_START, d.START_TIMEOUT),
    ),
    "learners meet before their start is given up": (d.GROUP_MEET, d.AGGREGATOR_START),
    "a hung learner is found before the others' reductions fail": (
        *(d.ITERATION_TIMEOUT, d.GROUP_REDUCTION),
    ),
    "a cause may come before a restarted worker rests no longer": (
        *(d.CAUSE_WAIT, d.HEARTBEAT_TOLERANCE),
    ),
    # Signs of life.
    "one heartbeat may be lost": (2 * d.HEARTBEAT, d.HEARTBEAT_TOLERANCE),
    "five heartbeats may be lost": (5 * d.SLAVE_HEARTBEAT, d.SLAVE_TOLERANCE),
    "heartbeats are looked at between two": (d.SLAVE_CHECK, d.SLAVE_HEARTBEAT),
    "a silent process is asked within its tolerance": (d.PROBE_TIMEOUT, d.HEARTBEAT),
    # HTTP.
    "who joins waits while the coordinator connects": (
        *(d.CONNECT_TIMEOUT, d.REQUEST_TIMEOUT, d.CONNECT_TIMEOUT + d.REQUEST_TIMEOUT),
        *(d.JOIN_TIMEOUT, d.REJOIN_PATIENCE, d.JOIN_PATIENCE),
    ),
    "a connection rests longer than a request may take": (
        *(d.HEAD_TIMEOUT, d.BODY_TIMEOUT, d.IDLE_TIMEOUT),
    ),
    "a last request fits into a master's end": (d.LAST_REQUEST, d.MASTER_STOP),
    "a shortage is over before the server gives up": (
        *(d.SHORTAGE_PAUSE, d.SHORTAGE_CALM, d.SHORTAGE_LIMIT),
    ),
    # Saving.
    "a save that failed is not tried sooner than the next is due": (d.SAVE_INTERVAL, d.SAVE_RETRY),
}


@pytest.mark.parametrize("what", CHAINS)
def test_who_waits_is_the_more_patient(what):
    chain = CHAINS[what]
    assert list(chain) == sorted(chain)


def test_all_are_positive_and_in_seconds():
    for name, value in vars(d).items():
        if name.isupper():
            steps = value if isinstance(value, tuple) else (value,)
            assert all(0 <= step <= 600 for step in steps), name
            assert list(steps) == sorted(steps), name


#: What may be one, for parsing takes time.
WAITS = re.compile(r"\b(wait|wait_for|join|sleep|settimeout)\([^()]*\d")


def test_no_wait_has_a_literal_number():
    root = pathlib.Path(ding.__file__).parent
    found = [
        f"{path.relative_to(root)}:{call.lineno}: {ast.unparse(call)}"
        for path in root.rglob("*.py")
        if WAITS.search(text := path.read_text(encoding="utf-8"))
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and _waits(call)
    ]
    assert found == []


def _waits(call: ast.Call) -> bool:
    """Whether it is one of the functions that wait, with a number."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name not in ("wait", "wait_for", "join", "sleep", "settimeout"):
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(isinstance(one, ast.Constant) and type(one.value) in (int, float) and one.value > 0
               for one in given)  # fmt: skip

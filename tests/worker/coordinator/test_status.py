"""The status that the operator sees."""

import logging

import pytest

from ding.utils.console import Console
from ding.worker.coordinator.run_facts import (
    MOST_NUMBERS,
    SAME_CAUSE_LIMIT,
    RetryLimit,
    RunFacts,
    own_numbers,
)
from ding.worker.coordinator.run_status import (
    MAX_LINES,
    RunView,
    brief_facts,
    who_waits,
    worker_lines,
)
from ding.worker.coordinator.worker_session import WaitShares
from ding.worker.seams import TaskFailure


def worker(kind="collector", state="running", waits_for=None, share=0.5, **more):
    rates = {"samples_per_s": None, "iters_per_s": None}
    waits = {"waits_for": waits_for, "wait_shares": {waits_for: share} if waits_for else {}}
    return {"kind": kind, "state": state, "task_id": "t", **waits, **rates, **more}


@pytest.mark.parametrize(
    ("workers", "words"),
    [
        ({}, "no learner is connected; no collector is connected"),
        ({"l": worker("learner"), "c": worker()}, "no worker waits"),
        (
            {"l": worker("learner", waits_for="data"), "c": worker()},
            "learner waits for data 50% of the time",
        ),
        (
            {"l": worker("learner"), "c0": worker(waits_for="space"), "c1": worker()},
            "2 collectors wait for space for samples 25% of the time",
        ),
        ({"l": worker("learner"), "c": worker(waits_for="space", share=0.001)}, "no worker waits"),
        ({"l": worker("learner", "connecting"), "c": worker()}, "no learner is connected"),
        (
            {"l": worker("learner", waits_for="collectors"), "c": worker(waits_for="learner")},
            "learner waits for collectors (samples per insert) 50% of the time; "
            "collector waits for the learner (samples per insert) 50% of the time",
        ),
    ],
)
def test_who_waits_for_whom(workers, words):
    assert who_waits(workers) == words


def test_waiting_is_a_share_of_the_last_seconds():
    shares = WaitShares(0.0)
    assert shares.at(0.0) == {}
    shares.change("data", 1.0)
    assert shares.at(1.0) == {"data": 0.0}
    shares.change(None, 2.0)
    assert shares.at(2.0) == {"data": pytest.approx(0.5, abs=0.05)}
    shares.change("collectors", 2.0)
    assert shares.at(1000.0) == {"data": 0.0, "collectors": 1.0}
    shares.change("data", 1000.0)
    shares.change("data", 1000.1)
    assert shares.at(1001.0) == {"data": pytest.approx(0.1, abs=0.02), "collectors": 0.905}


def status(workers, **more):
    return {
        "data_rate": {"samples_per_s": 1234.0, "bytes_per_s": 2.5e6},
        "policy": {"p": {"lag_iters": 7}, "q": {"lag_iters": None}},
        "buffers": {
            "b": {"bytes": 3_000_000, "count": 5, "capacity": 10, "samples_per_insert": None}
        },
        "workers": workers,
        "waits": "no worker waits",
        "envstep": 40,
        "train_iter": 2,
        "episode_return": 1.5,
        "best_return": 3.0,
        **more,
    }


def test_facts_in_few_words():
    facts = brief_facts(status({"l": worker("learner"), "c": worker(state="idle")}))
    assert facts == [
        *("1,234 samples/s", "2.50 MB/s", "policy lag 7 iters", "data files 3.0 MB"),
        *("collectors 0/1", "learners 1/1", "no worker waits"),
    ]


def test_numbers_of_a_users_policy_are_facts():
    learner = worker("learner", numbers={"kept": 5.0, "ratio": 0.12345})
    facts = brief_facts(status({"c": worker(), "l": learner}))
    assert facts[-3:] == ["kept 5", "ratio 0.1235", "no worker waits"]


@pytest.mark.parametrize("reported", [None, 3, [1.0], {"a": "x", "b": float("nan"), "c": [1]}])
def test_reported_numbers_that_are_nonsense_are_left_out(reported):
    assert own_numbers(reported) == {}


def test_some_reported_numbers_are_shown():
    assert own_numbers({"a\x1b[2J": 1, "b": None}) == {"a[2J": 1.0}
    assert len(own_numbers(dict.fromkeys(map(str, range(1000)), 1.0))) == MOST_NUMBERS


@pytest.mark.parametrize(("reached", "words"), [(5.9731, ["5.97 of 6 samples/insert"]), (None, [])])
def test_facts_report_how_often_samples_are_drawn(reached, words):
    now = status({"l": worker("learner"), "c": worker()})
    now["buffers"]["b"]["samples_per_insert"] = {"target": 6.0, "reached": reached}
    assert [fact for fact in brief_facts(now) if "insert" in fact] == words


def test_a_line_for_each_worker_as_far_as_there_is_room():
    one = worker(task_id="task_3", samples_per_s=12.0, is_eval=True, waits_for="space")
    line = worker_lines(status({"collector0": one}))[0]
    for words in ("collector0", "running", "task_3 (evaluation)", "12 samples/s", "space"):
        assert words in line
    many = worker_lines(status({f"c{i:03}": worker() for i in range(100)}))
    assert len(many) == MAX_LINES
    assert many[-1] == f"... and {100 - MAX_LINES + 1} workers more"


def test_console_shows_workers_and_facts(capsys):
    with Console("run", mode="plain") as console:
        view = RunView(console, logging.getLogger("test"))
        view.evaluated(9.0)
        view.draw(lambda: status({"l": worker("learner")}))
        assert console.progress.lines[0].startswith("l")
    out = capsys.readouterr().out
    for words in ("eval 9", "step 40", "buffer 5/10", "1,234 samples/s", "policy lag 7 iters"):
        assert words in out


def test_a_failure_is_one_line_with_worker_task_and_cause(capsys):
    with Console("run", mode="plain") as console:
        view = RunView(console, logging.getLogger("test"))
        view.failed(TaskFailure("c1", "no sign of life", "t1", lost=True))
        view.failed(TaskFailure("l0", "loss is NaN", "t2"))
        view.failed(TaskFailure("c2", "gone", lost=True))
    lines = [line[9:] for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [
        "c1 lost (task t1): no sign of life",
        "l0 failed (task t2): loss is NaN",
        "c2 lost: gone",
    ]


def test_facts_count_steps_of_tasks_once():
    facts = RunFacts()
    facts.stepped("a", 10)
    facts.stepped("a", 8)
    facts.stepped("b", 5)
    facts.finished("a", False, {"step_count": 12, "reward_mean": 2.0, "real_episode_count": 3})
    assert (facts.envstep, facts.episodes, facts.episode_return) == (17, 3, 2.0)
    assert facts.finished("e", True, {"reward_mean": 5.0, "step_count": 100})
    assert not facts.finished("e", True, {"reward_mean": 4.0})
    assert not facts.finished("e", True, {"reward_mean": "nan"})
    assert (facts.envstep, facts.best_return, facts.last_eval_return) == (17, 5.0, 4.0)
    for cut in ({"real_episode_count": 0}, {"collector_done": False}):
        assert not facts.finished("e", True, {"reward_mean": 9.0, **cut})
    facts.finished("c", False, {"reward_mean": 0.0, "real_episode_count": 0})
    assert (facts.best_return, facts.last_eval_return, facts.episode_return) == (5.0, 4.0, 2.0)


def test_policy_lag():
    facts = RunFacts()
    facts.trained("p", {"learner_step": 30, "policy_iter": 20})
    facts.used("p", 12)
    policy = facts.policies()["p"]
    assert (policy["iter"], policy["lag_iters"]) == (20, 18)
    assert policy["age_s"] < 5


def test_rates_fade():
    now = [100.0]
    facts = RunFacts()
    facts.clock = lambda: now[0]
    for _ in range(20):
        facts.collected("c", 50, 1000)
        now[0] += 0.1
    assert facts.data_rate()["samples_per_s"] == pytest.approx(500, rel=0.1)
    assert facts.rate_of("c") == pytest.approx(500, rel=0.1)
    now[0] += 60
    assert facts.data_rate() == {"samples_per_s": 0.0, "bytes_per_s": 0.0}


def failure(cause="x", by_worker=True):
    return TaskFailure("w", cause, "t", by_worker=by_worker)


def test_failures_in_a_row_end_the_run():
    limit = RetryLimit(2)
    assert limit.failed("collector", failure(), 0.0) is None
    assert limit.failed("evaluation", failure(), 0.0) is None
    assert limit.failed("collector", failure(), 0.0) is None
    limit.progress("collector")
    assert limit.failed("collector", failure(), 0.0) is None
    assert limit.failed("collector", failure(), 0.0) is None
    assert "3 times in a row" in limit.failed("collector", failure("disk full"), 0.0)


def test_workers_that_are_lost_together_are_one_failure():
    limit, lost = RetryLimit(1), TaskFailure("w", "no heartbeat", "t", lost=True)
    assert [limit.failed("collector", lost, 10.0 + n, created=5.0) for n in range(8)] == [None] * 8
    assert "2 times in a row" in limit.failed("collector", lost, 20.0, created=12.0)


def test_training_the_same_steps_again_is_no_progress():
    limit = RetryLimit(1)
    limit.trained(10)
    assert limit.failed("learner", failure("NaN"), 0.0) is None
    limit.trained(9)
    limit.trained(10)
    assert "NaN" in limit.failed("learner", failure("NaN"), 0.0)
    limit.trained(11)
    assert limit.failed("learner", failure("NaN"), 0.0) is None


def test_each_policy_s_learner_has_to_get_on_by_itself():
    limit = RetryLimit(2)
    for step in (10, 20):
        limit.trained(step, "a")
        assert limit.failed("learner", failure(f"NaN {step}"), 0.0, policy_id="b") is None
    limit.trained(30, "a")
    ended = limit.failed("learner", failure("NaN 30"), 0.0, policy_id="b")
    assert ended == "learner tasks of b failed 3 times in a row, last at w: NaN 30"


def test_a_learner_that_gets_on_behind_another_one_does_not_end_the_run():
    limit = RetryLimit(2)
    limit.trained(1000, "a")
    for step in range(10, 60, 10):
        limit.trained(step, "b")
        cause = failure(f"disk full at {step}")
        assert limit.failed("learner", cause, 0.0, policy_id="b") is None


def test_the_same_cause_again_and_again_ends_the_run_despite_progress():
    limit = RetryLimit(3)
    for _ in range(SAME_CAUSE_LIMIT - 1):
        assert limit.failed("collector", failure("no level 7"), 0.0) is None
        limit.progress("collector")
    assert "no level 7" in limit.failed("collector", failure("no level 7"), 0.0)


def test_workers_that_are_lost_again_and_again_do_not_end_a_run_that_gets_on():
    limit = RetryLimit(3)
    for _ in range(5 * SAME_CAUSE_LIMIT):
        assert limit.failed("collector", failure("no heartbeat", by_worker=False), 0.0) is None
        limit.progress("collector")

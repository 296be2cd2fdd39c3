"""The events that callbacks of a parallel run receive, and their effects on it."""

import os

import pytest

from ding.utils.callbacks import Callbacks, RunCallback
from ding.utils.run_log import RunLog
from tests.worker.coordinator.fake_workers import (
    FakeCollector,
    FakeLearner,
    Run,
    evaluating,
    eventually,
)


class Diary(RunCallback):
    def __init__(self, where="", do=None):
        self.events, self._where, self._do = [], where, do

    def __getattribute__(self, name):
        if not name.startswith("on_"):
            return super().__getattribute__(name)

        def keep(event):
            self.events.append((name, event))
            return self._do() if name == self._where else None

        return keep

    def of(self, name):
        return [event for called, event in list(self.events) if called == name]


def fail():
    raise ZeroDivisionError("in a callback")


def report(reward):
    return {"reward_mean": reward, "episode_info": [[0, reward - 1, 5], [1, reward + 1, 6]]}


def evaluator():
    return evaluating([report(reward) for reward in (3.0, 9.0, 5.0)], then=report(0.0))


def test_callbacks_receive_what_workers_report():
    diary = Diary()
    workers = {"c": FakeCollector(), "l": FakeLearner(iterations=1e9)}
    with Run(workers, Callbacks([diary])) as run:
        eventually(lambda: len(diary.of("on_collect")) >= 2)
        assert run.coordinator.verdict is None
    assert diary.events[0][0] == "on_start"
    assert diary.of("on_start")[0].config["exp_name"] == "exp"
    assert all(event.sample_count > 0 for event in diary.of("on_collect"))
    (end,) = diary.of("on_end")
    assert diary.events[-1][1] is end
    assert (end.status, end.reason) == ("interrupted", "the coordinator was closed")


def test_evaluations_and_their_best_checkpoint():
    diary = Diary()
    workers = {"c": evaluator(), "l": FakeLearner(iterations=1e9)}
    with Run(workers, Callbacks([diary]), commander={"eval": True}):
        eventually(lambda: len(diary.of("on_evaluation")) >= 3)
    results = [(e.result, e.returns, e.is_best) for e in diary.of("on_evaluation")][:3]
    assert results == [
        (3.0, (2.0, 4.0), True),
        (9.0, (8.0, 10.0), True),
        (5.0, (4.0, 6.0), False),
    ]
    episodes = [(e.source, e.env_id, e.episode_return, e.length) for e in diary.of("on_episode")]
    assert episodes[:2] == [("c_eval", 0, 2.0, 5), ("c_eval", 1, 4.0, 6)]
    paths = [event.path for event in diary.of("on_checkpoint")]
    assert paths == [os.path.join("exp", "ckpt", "ckpt_best.pth.tar")] * 2
    assert os.path.exists(paths[0])


@pytest.mark.parametrize("where", ["on_start", "on_collect", "on_episode", "on_evaluation"])
@pytest.mark.parametrize(
    ("do", "status", "words"),
    [
        (lambda: True, "finished", "Diary.{} asked for the end"),
        (fail, "failed", "CallbackError: Diary.{}: ZeroDivisionError: in a callback"),
    ],
)
def test_a_callback_ends_the_run(where, do, status, words):
    diary = Diary(where, do)
    workers = {"c": evaluator(), "l": FakeLearner(iterations=1e9)}
    commander = {"eval": where not in ("on_start", "on_collect")}
    with Run(workers, Callbacks([diary]), commander=commander) as run:
        ending = run.coordinator.wait(20)
        assert ending is not None
    assert (ending.status, ending.reason) == (status, words.format(where))
    (end,) = diary.of("on_end")
    assert (end.status, end.reason) == (ending.status, ending.reason)


def test_an_error_of_the_end_is_in_the_record():
    diary = Diary("on_end", fail)
    with (
        RunLog("exp", quiet=True) as log,
        Run({"c": FakeCollector()}, Callbacks([diary]), log) as run,
    ):
        run.coordinator.stop("enough", "finished")
    with open("exp/run.json") as file:
        assert "enough; Diary.on_end: ZeroDivisionError: in a callback" in file.read()

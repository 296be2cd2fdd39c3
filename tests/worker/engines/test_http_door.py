"""Workers join over HTTP, answer requests, are released, and join again."""

import queue
import threading
from contextlib import ExitStack
from functools import partial

import pytest

from ding.interaction.base import split_http_address
from ding.interaction.master import SlaveConnection, SlaveConnectionProxy
from ding.worker.engines.carrier import WorkerSpec, built_elsewhere
from ding.worker.engines.control import RunControl
from ding.worker.engines.flask_fs import HttpWorkers, Remote
from ding.worker.engines.http_worker import Joiner, ask_for_entry
from ding.worker.learner.comm import NaiveLearner
from ding.worker.messages import CloseTask, ResourceRequest, SamplesRequest, StartTask
from ding.worker.seams import NonsenseAnswer, WorkerBusy, WorkerFailed, WorkerLost
from tests.worker.coordinator.fake_workers import FakeCollector, eventually, fail_task

from . import harness

TASK = {"task_id": "t", "buffer_id": "b", "collector_cfg": {}}
KEY = "the key of this run"


class Arrivals(harness.Arrivals):
    """Hands out the arrivals one by one."""

    def __init__(self):
        super().__init__()
        self._taken = 0

    def next(self):
        self._taken += 1
        return self.wait("came", self._taken)[-1][1]


@pytest.fixture
def worker():
    worker = FakeCollector()
    worker.start()
    yield worker
    worker.close()


@pytest.fixture
def make_control():
    controls = []

    def make(**cfg):
        given = dict(host=None, port=0, heartbeat_tolerance=1.5, request_retry_waiting=0.1)
        workers, arrivals = HttpWorkers({**given, **cfg}), Arrivals()
        control = RunControl(workers, workers.specs)
        controls.append(control)
        control.start(arrivals)
        return control, arrivals

    yield make
    for control in controls:
        assert control.close(6.0)


@pytest.fixture
def reached(make_control, worker):
    return make_control(collector={"c": ["c", worker.host, worker.port]})


def test_answers(reached, worker):
    arrival = reached[1].next()
    assert (arrival.kind, arrival.name) == ("collector", "c")
    assert arrival.where == f"{worker.host}:{worker.port}"
    ask = arrival.peer.ask
    assert ask(ResourceRequest(), 5).ours
    assert ask(StartTask("collector", TASK), 5) is None
    answer = ask(SamplesRequest(0.5), 5)
    assert [chunk.task_id for chunk in answer.chunks] == ["t"]
    assert answer.progress is not None
    assert not answer.progress.done
    assert ask(CloseTask("collector"), 5).info["reward_mean"] == 1.0


def test_what_is_no_answer(reached, worker):
    arrivals = reached[1]
    ask = arrivals.next().peer.ask
    worker.on["resource"] = fail_task("no luck")
    with pytest.raises(WorkerFailed, match="no luck") as caught:
        ask(ResourceRequest(), 5)
    assert caught.value.by_worker
    assert caught.value.detail["type"] == "EnvError"
    worker.on["resource"] = lambda task: 7
    with pytest.raises(NonsenseAnswer):
        ask(ResourceRequest(), 5)
    worker.on["resource"] = worker.hang
    with pytest.raises(WorkerLost, match="no answer to resource"):
        ask(ResourceRequest(), 0.2)
    with pytest.raises(WorkerBusy):
        arrivals.next().peer.ask(ResourceRequest(), 5)


def test_worker_of_the_config_that_was_let_go_comes_again(reached):
    control, arrivals = reached
    first = arrivals.next()
    assert first.peer.ask(ResourceRequest(), 5)
    control.release(first, "a reason")
    second = arrivals.next()
    control.release(first, "late")
    assert second.peer.ask(ResourceRequest(), 5)
    with pytest.raises(WorkerLost):
        first.peer.ask(ResourceRequest(), 5)
    assert not arrivals.of("lost")


def test_a_worker_that_is_there_costs_no_thread_of_the_control(reached):
    assert reached[1].next().peer.ask(ResourceRequest(), 5)
    eventually(lambda: not any(thread.name == "keep-c" for thread in threading.enumerate()))


class OwnLearner(NaiveLearner):
    def _process_task(self, task):
        return {**super()._process_task(task), "ours": True}


def test_the_processes_of_a_learner_join_and_come_as_one():
    """Also where nothing of this run starts them: they are awaited as long as it takes."""
    names = ("learner0", "learner1")
    specs = [WorkerSpec(name, "learner", built_elsewhere, team="both") for name in names]
    control, arrivals = RunControl(HttpWorkers({"run_key": KEY}), specs), Arrivals()
    control.start(arrivals)
    host, port, _, _ = split_http_address(control.address)
    try:
        assert [one.name for one in control.awaited()] == [*names]
        with ExitStack() as stack:
            for name in names:
                learner = stack.enter_context(OwnLearner("127.0.0.1", 0, key=KEY))
                address = partial(getattr, learner, "my_address")
                joiner = Joiner((host, port), "learner", name, address, KEY)
                stack.callback(joiner.close)
                assert not arrivals.of("came")
                joiner.start()
            arrival = arrivals.next()
            assert (arrival.name, arrival.where) == ("both", "2 processes")
            assert arrival.peer.ask(ResourceRequest(), 5).cpu == 2
            stray = stack.enter_context(OwnLearner("127.0.0.1", 0, key=KEY))
            refusals = queue.Queue()
            address = partial(getattr, stray, "my_address")
            joiner = Joiner((host, port), "learner", "learner2", address, KEY, None, refusals.put)
            stack.callback(joiner.close)
            joiner.start()
            expected = "the learners of this run are learner0, learner1; it has no learner2"
            assert expected in refusals.get(timeout=10)
            assert control.awaited() == []
            assert control.close(6.0)
    finally:
        control.close(6.0)


@pytest.mark.slow
def test_worker_that_is_missing_is_awaited(reached, worker):
    control, arrivals = reached
    arrival = arrivals.next()
    eventually(lambda: control.awaited() == [])
    worker.fall_silent()
    assert arrivals.wait("lost")[0][0] == arrival.name
    worker.close()
    control.release(arrival, "silent")
    (awaited,) = control.awaited()
    assert (awaited.kind, awaited.name, awaited.where) == ("collector", "c", arrival.where)


def test_worker_without_a_name_gets_one_that_no_other_is_to_have():
    """Also not one that has not come yet, or is being started again."""
    workers = HttpWorkers({"run_key": KEY}, lambda kind, name: {"name": name})
    control = RunControl(workers, [WorkerSpec("collector0", "collector", built_elsewhere)])
    control.start(Arrivals())
    host, port, _, _ = split_http_address(control.address)
    try:
        for name in ("collector1", "collector2"):
            assert ask_for_entry((host, port), "collector", None, KEY) == {"name": name}
    finally:
        assert control.close(6.0)


@pytest.mark.parametrize("its_end", ["the run's end", "its loss"])
def test_worker_that_has_gone_again_before_it_has_come_is_no_failure(its_end, monkeypatch, caplog):
    control, arrivals = RunControl(HttpWorkers({"run_key": KEY}), []), Arrivals()
    control.start(arrivals)
    at = "127.0.0.1", 1
    handle = Remote("c9", at, SlaveConnectionProxy(SlaveConnection(*at)))
    look_after = control.look_after

    def end_first(life):
        if its_end == "its loss":
            life.lose(handle, "it has gone")
        else:
            control.closing.set()
        look_after(life)

    monkeypatch.setattr(control, "look_after", end_first)
    assert control.adopt("collector", "c9", handle)
    eventually(lambda: not any(thread.name == "keep-c9" for thread in threading.enumerate()))
    assert control.close(6.0)
    assert not arrivals.of("fatal")
    assert not arrivals.of("came")
    assert "has failed" not in caplog.text


def test_worker_that_joins_again_takes_its_own_place(make_control):
    control, arrivals = make_control(run_key=KEY)
    worker = FakeCollector(key=KEY)
    worker.start()
    host, _, port = control.address.removeprefix("http://").rpartition(":")
    try:
        worker.join_at(type("Run", (), {"address": (host, int(port))}), "c0", KEY)
        first = arrivals.next()
        assert control.awaited() == []
        worker.joiner.lost()
        second = arrivals.next()
        assert arrivals.wait("lost") == [(first.name, "it joined again")]
        control.release(first, "late")
        assert second.peer.ask(ResourceRequest(), 5)
    finally:
        worker.close()

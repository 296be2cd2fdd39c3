"""The comm part alone: it needs only the callbacks of the contract."""

import logging
import threading

import pytest
from easydict import EasyDict

from ding.interaction import TaskFail
from ding.utils.errors import ConfigError
from ding.worker import CommCoordinator
from ding.worker.coordinator.run_events import CALLBACKS
from ding.worker.messages import Resources
from ding.worker.seams import Arrival, Awaited, NonsenseAnswer, WorkerLost
from tests.worker.coordinator.fake_workers import (
    FakeCollector,
    FakeLearner,
    eventually,
    make_config,
)

LOGGER = logging.getLogger("test")


@pytest.fixture
def called():
    return []


@pytest.fixture
def make_comm(called):
    parts = []

    def make(workers, **coordinator):
        answers = {
            "deal_with_collector_judge_finish": lambda task_id, data: data["collector_done"],
            "deal_with_learner_judge_finish": lambda task_id, info: info["learner_done"],
            "deal_with_learner_get_data": lambda *args: [{"data_id": "x"}] * 4,
        }

        def callback(name):
            def call(*args):
                called.append((name, *args))
                return answers.get(name, lambda *args: None)(*args)

            return call

        for worker in workers.values():
            worker.start()
        config = make_config(workers, **coordinator)
        comm = CommCoordinator(config, {name: callback(name) for name in CALLBACKS}, LOGGER)
        parts.extend([comm, *workers.values()])
        comm.start()
        return comm

    yield make
    for part in parts:
        part.close()


def names(called):
    return [name.removeprefix("deal_with_") for name, *_ in called]


def test_collector_task(make_comm, called):
    comm = make_comm({"c": FakeCollector(chunks=3, ours=False)})
    task = {"task_id": "t", "buffer_id": "b", "collector_cfg": {}}
    eventually(lambda: comm.send_collector_task(task))
    assert comm.send_collector_task(task) is False
    assert comm.send_learner_task(task) is False
    eventually(lambda: "collector_finish_task" in names(called))
    sent = [args for name, *args in called if name == "deal_with_collector_send_data"]
    assert len(sent) == 3
    task_id, buffer_id, data_id, data = sent[0]
    assert (task_id, buffer_id, data["data_id"]) == ("t", "b", data_id)
    task_id, words = called[-1][1:]
    assert (task_id, words["real_episode_count"]) == ("t", 1)
    eventually(lambda: comm.send_collector_task(task))


def test_learner_task(make_comm, called):
    learner = FakeLearner(iterations=3, ours=False)
    comm = make_comm({"l": learner})
    task = {"task_id": "t", "buffer_id": "b", "learner_cfg": {}}
    eventually(lambda: comm.send_learner_task(task))
    eventually(lambda: "learner_finish_task" in names(called))
    demands = [args for name, *args in called if name == "deal_with_learner_get_data"]
    assert demands == [["t", "b", 4, 0], ["t", "b", 4, 1], ["t", "b", 4, 2]]
    assert learner.batches == [[{"data_id": "x"}] * 4] * 3
    steps = [args[2]["learner_step"] for name, *args in called if "send_info" in name]
    assert steps == [1, 2, 3]


@pytest.mark.parametrize("refusing", ["fail", "refuse"])
def test_foreign_collector_that_does_not_know_the_last_step_is_done(make_comm, called, refusing):
    def refuse(task):
        raise TaskFail({"message": "task name error"}) if refusing == "fail" else KeyError("close")

    collector = FakeCollector(chunks=2, ours=False)
    collector.on["close"] = refuse
    comm = make_comm({"c": collector})
    task = {"task_id": "t", "buffer_id": "b", "collector_cfg": {}}
    eventually(lambda: comm.send_collector_task(task))
    eventually(lambda: "collector_finish_task" in names(called))
    task_id, words = called[-1][1:]
    assert (task_id, words["task_id"], words["buffer_id"]) == ("t", "t", "b")
    assert (words["real_episode_count"], words["step_count"]) == (1, 16)
    eventually(lambda: comm.send_collector_task(task))


def test_callbacks_of_the_contract_are_needed():
    with pytest.raises(KeyError, match="deal_with_learner_get_data"):
        CommCoordinator(make_config({}), {}, LOGGER)


@pytest.mark.parametrize("entry", [["h"], 3, ["a", "h", "x"]], ids=repr)
def test_table_of_workers_is_checked(entry):
    config = make_config({})
    config.system.coordinator.collector = EasyDict(collector0=entry)
    callbacks = dict.fromkeys(CALLBACKS, print)
    with pytest.raises(ConfigError, match=r"system\.coordinator\.collector\.collector0"):
        CommCoordinator(config, callbacks, LOGGER)


def test_workers_that_join_by_themselves_are_not_connected_to(make_comm):
    comm = make_comm({}, collector={"collector0": ["collector0", "127.0.0.1", "auto"]})
    assert comm.workers() == []
    comm.close()


@pytest.mark.slow
def test_worker_that_comes_later_is_connected_then(make_comm):
    first = FakeCollector()
    first.start()
    port = first.port
    first.close()
    comm = make_comm({}, collector={"c": ["c", "127.0.0.1", port]})
    late = FakeCollector(port)
    late.start()
    eventually(lambda: comm.core.present("collector") == 1)
    late.close()
    eventually(lambda: comm.core.present("collector") == 0)


class Peer:
    """A worker whose answers are given."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)

    def ask(self, request, timeout):
        self.asked.release()
        assert self.go_on.acquire(timeout=10)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class FakeControl:
    """Records which workers were released."""

    address = "127.0.0.1:1"

    def __init__(self):
        self.released = []

    def start(self, arrivals):
        self.arrivals = arrivals

    def release(self, arrival, cause):
        self.released.append((arrival, cause))

    def awaited(self):
        return [Awaited("learner", "l", "somewhere")]

    def close(self, timeout):
        return True


@pytest.fixture
def control():
    return FakeControl()


@pytest.fixture
def comm(control):
    comm = CommCoordinator(
        make_config({}), dict.fromkeys(CALLBACKS, print), LOGGER, control=control
    )
    comm.start()
    yield comm
    comm.close()


def test_worker_that_was_replaced_while_it_came_does_not_count(comm, control):
    first, second = (Arrival("collector", "c", Peer(Resources()), "here") for _ in range(2))
    comm.came(first)
    assert first.peer.asked.acquire(timeout=10)
    comm.came(second)
    second.peer.go_on.release()
    eventually(lambda: comm.core.free("collector") == 1)
    first.peer.go_on.release()
    assert all(session.arrival is second for session in comm.sessions())
    assert comm.core.present("collector") == 1
    comm.lost(first, "late news")
    assert comm.core.present("collector") == 1
    comm.lost(second, "its node is gone")
    eventually(lambda: comm.core.present("collector") == 0)
    eventually(lambda: control.released == [(second, "its node is gone")])


def test_worker_that_gives_nonsense_is_let_go(comm, control):
    arrival = Arrival("collector", "c", Peer(NonsenseAnswer("resource: 7")), "here")
    arrival.peer.go_on.release()
    comm.came(arrival)
    eventually(lambda: control.released == [(arrival, "resource: 7")])
    assert comm.sessions() == []


def test_workers_that_are_missing_are_known(comm):
    assert comm.workers() == [Awaited("learner", "l", "somewhere")]
    comm.came(Arrival("learner", "l", Peer(WorkerLost("gone")), "somewhere"))
    assert comm.workers() == comm.sessions()
    comm.sessions()[0].arrival.peer.go_on.release()


def test_many_collectors_are_asked_less_often(comm):
    def add(first, count):
        for i in range(first, first + count):
            arrival = Arrival("collector", f"c{i}", Peer(Resources()), "here")
            arrival.peer.go_on.release()
            comm.came(arrival)
        eventually(lambda: comm.core.present("collector") == first + count)
        return comm.core.gather

    assert add(0, 2) == 0.02
    assert add(2, 38) == pytest.approx(0.08)
    # All of them together ask as often as before.
    assert 40 / comm.core.gather == pytest.approx(500)

"""A master keeps nothing of tasks and slaves that are gone."""

import gc
import json
import threading
import tracemalloc
import weakref

import pytest

from ding.interaction.base.messages import AnswerMessage
from ding.interaction.master import connection as connections
from ding.interaction.master.connection import SlaveConnection
from ding.interaction.master.task import Task, TaskResultType, TaskStatus
from tests.interaction.peers import pair

#: One that stayed would be some kilobytes.
TASKS = 3000


class Engine:
    """A slave that accepts whatever it is asked."""

    timeout = 1.0

    def request(self, *args, **kwargs):
        pass

    def close(self):
        pass


class Batch(dict):
    """A dict whose deletion a test can wait for."""


@pytest.fixture
def no_gc():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def answer(task, **result):
    body = {"task": {"id": str(task.id)}, "result": result}
    return AnswerMessage.parse(json.dumps(body).encode())


@pytest.mark.slow
def test_of_tasks_that_were_done_nothing_stays(monkeypatch, no_gc):
    monkeypatch.setattr(connections, "HttpEngine", lambda *args, **kwargs: Engine())
    slave = SlaveConnection("127.0.0.1", 1)
    slave.connect()
    heard = []

    def do_one():
        batch = Batch(rows=[[0.5] * 100])
        gone = weakref.ref(batch)
        task = slave.new_task(batch)
        task.on_complete(lambda data, result: heard.append(1))
        task.start()
        assert slave.end_task(TaskResultType.COMPLETED, answer(task, rows=[1.0] * 100))
        assert task.join(10).status is TaskStatus.COMPLETED
        return gone

    for _ in range(1000):
        last = do_one()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(TASKS):
        last = do_one()
        if number % 100 == 0:
            heard.clear()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    slave.end_callbacks().join(10)
    assert last() is None
    assert after - before < 200_000


def test_nor_of_those_that_failed_or_were_never_started(monkeypatch, no_gc):
    monkeypatch.setattr(connections, "HttpEngine", lambda *args, **kwargs: Engine())
    slave = SlaveConnection("127.0.0.1", 1)
    slave.connect()
    batches = [Batch() for _ in range(3)]
    gone = [weakref.ref(batch) for batch in batches]
    tasks = [slave.new_task(batch) for batch in batches]
    tasks[0].start()
    slave.end_task(TaskResultType.FAILED, answer(tasks[0]))
    tasks[1].start()
    slave.lose("it is gone")
    del batches[:], tasks[:]
    assert [one() for one in gone] == [None] * 3


def test_over_the_wire(no_gc):
    with pair() as (_, _, connection):

        def do_some(count):
            for number in range(count):
                connection.new_task({"n": number}).start().join(10)

        do_some(100)
        left = [known for known in gc.get_objects() if type(known) in (Task, AnswerMessage)]
        assert len(left) <= 2  # of the last one, under way


def test_slaves_that_come_again_leave_no_threads():
    with pair() as (slave, master, connection):
        for _ in range(5):
            task = connection.new_task({"x": 1}).on_complete(lambda data, result: None)
            task.start().join(10)
            connection.disconnect()
            connection = master.new_connection("worker", slave.host, slave.port)
            connection.connect()
        callbacks = [t for t in threading.enumerate() if t.name.startswith("callbacks-")]
        for thread in callbacks:
            thread.join(10)
        assert not any(thread.is_alive() for thread in callbacks)

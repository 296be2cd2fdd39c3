"""Tasks between a real master and a real slave."""

import threading
import time

import pytest
import requests

from ding.interaction import Master
from ding.interaction.exception import (
    SlaveChannelInvalid,
    SlaveSlaveAlreadyConnected,
    SlaveSlaveDisconnectionRefused,
    SlaveTaskAlreadyExist,
    SlaveTaskRefused,
)
from ding.interaction.master.connection import SlaveConnectionProxy
from ding.interaction.master.task import Task, TaskResultType, TaskStatus
from ding.utils.errors import InteractionError
from tests.interaction.peers import MASTER, DoingSlave, eventually, pair, works


def test_a_task_is_done():
    with pair() as (slave, master, connection):
        task = connection.new_task({"x": 1})
        assert (task.status, task.result) == (TaskStatus.IDLE, None)
        assert task.start().join() is task
        assert task.status is TaskStatus.COMPLETED
        assert task.task == {"x": 1}
        assert task.result == {"echo": {"x": 1}}
        assert task.cause is None
        assert master["worker"] is connection
        assert "worker" in master
        assert ("task", {"x": 1}) in slave.seen
        assert slave.ping()
        assert master.ping()
    assert not slave.ping()
    assert not master.ping()


@pytest.mark.parametrize(("do", "result"), [("list", [1, {"two": 2}]), ("nothing", None)])
def test_results_are_any_json(do, result):
    with pair() as (_, _, connection):
        task = connection.new_task({"do": do}).start().join(10)
        assert (task.status, task.result) == (TaskStatus.COMPLETED, result)


def test_a_result_that_is_too_large_fails_its_task_with_the_cause():
    with pair(master={"max_body": 5000}) as (slave, _, connection):
        task = connection.new_task({"do": "echo", "text": "x" * 4990}).start().join(10)
        assert task.status is TaskStatus.FAILED
        assert "The body may have 5000 bytes" in task.cause
        assert connection.new_task().start().join(10).status is TaskStatus.COMPLETED
        assert slave.lost == []


def test_connection_is_a_context():
    with pair(connect=False) as (slave, _, connection):
        for _ in range(2):
            with connection as same:
                assert same is connection
                assert connection.is_connected
                connection.new_task().start().join(10)
            assert not connection.is_connected
        assert [what for what, _ in slave.seen] == ["connect", "task", "disconnect"] * 2


def test_proxy_reports_connecting():
    with pair(connect=False) as (_, master, _):
        events = []
        proxy = SlaveConnectionProxy(
            master["worker"].connection, lambda: events.append("on"), lambda: events.append("off")
        )
        with proxy:
            assert events == ["on"]
        assert events == ["on", "off"]


def test_callbacks_come_in_order_and_before_join_returns():
    with pair() as (_, _, connection):
        calls = []
        task = connection.new_task({"x": 1})
        task.on_complete(lambda data, result: (time.sleep(0.1), calls.append(("a", data, result))))
        task.on_complete(lambda *_: 1 / 0)
        task.on_complete(lambda *_: calls.append("b"))
        task.on_fail(lambda *_: calls.append("fail"))
        task.on_complete(lambda *_: task.join())
        task.start().join(10)
        assert calls == [("a", {"x": 1}, {"echo": {"x": 1}}), "b"]
        task.on_complete(lambda *_: calls.append("late"))
        assert calls[-1] == "late"


def test_callbacks_are_called_where_no_thread_can_be_started_for_them():
    def submit(_):
        raise RuntimeError("can't start new thread")

    calls = []
    task = Task(None, {"x": 1}, submit=submit).on_complete(lambda *given: calls.append(given))
    task.end(TaskResultType.COMPLETED, "result")
    task.join(1)
    assert calls == [({"x": 1}, "result")]


def test_callback_may_give_the_next_task():
    with pair() as (_, _, connection):
        last = threading.Event()

        def more(data, result):
            if data["n"] == 5:
                last.set()
            else:
                connection.new_task({"n": data["n"] + 1}).on_complete(more).start()

        connection.new_task({"n": 0}).on_complete(more).start()
        assert last.wait(20)


@pytest.mark.slow
def test_slow_callback_does_not_hold_up_the_slave():
    with pair() as (slave, _, connection):
        release = threading.Event()
        connection.new_task().on_complete(lambda *_: release.wait(20)).start()
        time.sleep(1.5)  # longer than the tolerance
        assert connection.is_connected
        assert connection.new_task().start().join(10).status is TaskStatus.COMPLETED
        assert not slave.lost
        release.set()


@pytest.mark.parametrize(
    ("do", "cause", "result"),
    [
        ("raise", "ValueError: boom", {"type": "ValueError", "message": "boom"}),
        ("fail", "as foreseen", {"reason": 42}),
        ("array", "not JSON serializable", {"type": "NotJsonError"}),
        ("fail with array", "not JSON serializable", {"type": "NotJsonError"}),
        ("exit", "SystemExit: 3", {"type": "SystemExit"}),
    ],
)
def test_a_task_that_fails_reports_why(do, cause, result):
    with pair() as (_, _, connection):
        failed = []
        task = connection.new_task({"do": do}).on_fail(lambda *args: failed.append(args))
        task.on_complete(lambda *_: failed.append("complete"))
        task.start().join(10)
        assert task.status is TaskStatus.FAILED
        assert cause in task.cause
        assert result.items() <= task.result.items()
        assert failed == [({"do": do}, task.result)]
        if do == "raise":
            assert "_process_task" in task.result["traceback"]
        assert connection.new_task().start().join(10).status is TaskStatus.COMPLETED


@pytest.mark.parametrize(("do", "data"), [("refuse", {"reason": "no"}), ("break hook", None)])
def test_a_task_that_is_refused(do, data):
    with pair() as (_, _, connection):
        task = connection.new_task({"do": do})
        with pytest.raises(SlaveTaskRefused) as caught:
            task.start()
        assert caught.value.data == (data or {"type": "KeyError", "message": "'bug in a hook'"})
        assert task.join().status is TaskStatus.START_FAILED
        assert "SlaveTaskRefused" in task.cause
        assert connection.new_task().start().join(10).status is TaskStatus.COMPLETED


def test_one_task_at_a_time():
    with pair() as (slave, _, connection):
        first = connection.new_task({"do": "wait"}).start()
        with pytest.raises(SlaveTaskAlreadyExist):
            connection.new_task().start()
        assert first.status is TaskStatus.STARTED
        slave.release.set()
        assert first.join(10).status is TaskStatus.COMPLETED


def test_steps_out_of_order_are_errors():
    with pair() as (_, master, connection):
        task = connection.new_task()
        with pytest.raises(InteractionError, match="not started"):
            task.join()
        task.start().join(10)
        with pytest.raises(InteractionError, match="before"):
            task.start()
        with pytest.raises(InteractionError, match="connected already"):
            connection.connect()
        with pytest.raises(InteractionError, match="runs already"):
            master.start()
        unstarted = connection.new_task()
        connection.disconnect()
        connection.disconnect()
        with pytest.raises(InteractionError, match="not connected"):
            connection.new_task()
        with pytest.raises(InteractionError, match="not connected any more"):
            unstarted.start()


def test_a_name_is_in_use_until_the_slave_is_disconnected():
    with pair() as (slave, master, connection):
        for error in (KeyError, InteractionError):
            with pytest.raises(error, match="disconnect it first"):
                master.new_connection("worker", "127.0.0.1", 1)
        connection.disconnect()
        assert "worker" not in master
        with pytest.raises(KeyError, match="worker"):
            master["worker"]
        with pytest.raises(KeyError):
            del master["worker"]
        again = master.new_connection("worker", "127.0.0.1", slave.port)
        assert "worker" in master  # though it is not connected yet
        with pytest.raises(KeyError):
            connection.connect()
        again.connect()
        assert master["worker"] is again
        del master["worker"]
        assert "worker" not in master
        assert not again.is_connected
        assert not slave.in_touch(60.0)
        again.connect()  # it was not forgotten how
        assert "worker" in master
        assert again.new_task().start().join(10).status is TaskStatus.COMPLETED


def test_a_name_that_was_never_connected_can_be_given_up():
    with Master(**MASTER) as master:
        connection = master.new_connection("worker", "127.0.0.1", 1)
        with pytest.raises(requests.ConnectionError):
            connection.connect()
        assert "worker" in master
        del master["worker"]
        assert "worker" not in master


def test_connections_of_before_leave_no_thread():
    with pair() as (_, _, connection):
        for _ in range(3):
            connection.new_task().on_complete(lambda *_: None).start().join(10)
            connection.disconnect()
            connection.connect()
        eventually(
            lambda: not [t for t in threading.enumerate() if t.name.startswith("callbacks-")]
        )


@pytest.mark.slow
def test_endless_task_ends_with_the_connection():
    with pair() as (slave, _, connection):
        task = connection.new_task({"do": "wait"}).start()
        assert task.join(1.5).status is TaskStatus.STARTED  # longer than the tolerance
        connection.disconnect()
        assert task.join(30).status is TaskStatus.FAILED
        assert "disconnected" in task.cause
        connection.connect()
        with pytest.raises(SlaveTaskAlreadyExist):
            connection.new_task().start()
        slave.release.set()
        eventually(lambda: works(connection))


def test_a_slave_may_cling():
    with pair() as (slave, _, connection):
        slave.clinging = True
        with pytest.raises(SlaveSlaveDisconnectionRefused):
            connection.disconnect()
        assert connection.is_connected
        slave.clinging = False


def test_one_master_per_slave():
    with pair() as (slave, _, connection), Master(**MASTER) as other:
        with pytest.raises(SlaveSlaveAlreadyConnected):
            other.new_connection("mine", "127.0.0.1", slave.port).connect()
        assert connection.new_task().start().join(10).status is TaskStatus.COMPLETED
        connection.disconnect()
        with other["mine"] as mine:
            assert mine.new_task().start().join(10).status is TaskStatus.COMPLETED


def test_channels_have_to_agree():
    with pytest.raises(SlaveChannelInvalid), pair({"channel": 1}, {"channel": 2}):
        pass
    with pair({"channel": 3}, {"channel": 3}) as (_, _, connection):
        assert connection.new_task().start().join(10).status is TaskStatus.COMPLETED


def test_an_empty_key_is_an_error():
    with pytest.raises(ValueError, match="empty"):
        DoingSlave(key="")


def test_master_at_any_port_has_an_address_once_it_was_started():
    master = Master(port=0)
    with pytest.raises(InteractionError, match="start"):
        _ = master.my_address
    with master:
        assert master.my_address == f"http://127.0.0.1:{master.port}"
        assert master.port > 0
    assert Master(port=5, my_address="there:6").my_address == "there:6"
    assert Master("0.0.0.0", 5).my_address.endswith(":5")

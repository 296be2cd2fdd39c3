"""Peers that die, stop, or are slow: every open task ends with a cause, and work continues."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import requests

from ding.interaction import Master
from ding.interaction.exception import ResponseException
from ding.interaction.exception.slave import SlaveSlaveAlreadyConnected
from ding.interaction.master.task import TaskStatus
from tests.interaction.peers import MASTER, ROOT, DoingSlave, eventually, pair, process, works

TOLERANCE = MASTER["heartbeat_tolerance"]


class NotingMaster(Master):
    """Records the slaves that it has lost."""

    def __init__(self, **kwargs) -> None:
        super().__init__(**{**MASTER, **kwargs})
        self.lost: list[tuple[str, str]] = []

    def _lost_connection(self, name, cause):
        self.lost.append((name, cause))


def stop(child: subprocess.Popen) -> None:
    """Stop a process, and wait until all of its threads have stopped."""
    child.send_signal(signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)


def connected(connection) -> bool:
    try:
        connection.connect()
    except (ResponseException, requests.RequestException):
        return False
    return True


@pytest.mark.slow
def test_a_killed_slave_fails_its_task():
    with process("slave") as child, NotingMaster() as master:
        connection = master.new_connection("worker", "127.0.0.1", int(child.stdout.readline()))
        connection.connect()
        failed = []
        task = connection.new_task({"do": "sleep", "seconds": 60}).start()
        task.on_fail(lambda *args: failed.append(args))
        child.kill()
        begin = time.monotonic()
        assert task.join(30).status is TaskStatus.FAILED
        assert time.monotonic() - begin < 10
        assert "no sign of life" in task.cause
        assert "worker" in task.cause
        assert failed == [({"do": "sleep", "seconds": 60}, task.result)]
        assert not connection.is_connected
        eventually(lambda: master.lost)
        [(name, cause)] = master.lost
        assert name == "worker"
        assert task.cause.endswith(f"is lost: {cause}")


@pytest.mark.slow
def test_a_killed_slave_can_be_replaced():
    with Master(**MASTER) as master:
        for turn in range(2):
            if turn:
                eventually(lambda: "worker" not in master)
            with process("slave") as child:
                port = int(child.stdout.readline())
                connection = master.new_connection("worker", "127.0.0.1", port)
                connection.connect()
                assert connection.new_task().start().join(30).status is TaskStatus.COMPLETED


@pytest.mark.slow
def test_a_stopped_slave_is_lost_and_comes_back():
    with process("slave") as child, NotingMaster() as master:
        connection = master.new_connection("worker", "127.0.0.1", int(child.stdout.readline()))
        connection.connect()
        task = connection.new_task({"do": "sleep", "seconds": 1.0}).start()
        stop(child)
        assert task.join(30).status is TaskStatus.FAILED
        assert "no sign of life" in task.cause
        child.send_signal(signal.SIGCONT)
        eventually(lambda: connected(connection))
        assert task.status is TaskStatus.FAILED  # its late answer changes nothing
        eventually(lambda: works(connection))


def test_a_short_stop_is_tolerated():
    with (
        process("slave") as child,
        Master(**{**MASTER, "heartbeat_tolerance": 10.0}) as master,
        master.new_connection("worker", "127.0.0.1", int(child.stdout.readline())) as connection,
    ):
        task = connection.new_task({"do": "sleep", "seconds": 0.1}).start()
        stop(child)
        task.join(0.5)
        child.send_signal(signal.SIGCONT)
        assert task.join(30).status is TaskStatus.COMPLETED


@pytest.mark.slow
def test_starting_a_task_on_a_stopped_slave_ends():
    with process("slave") as child, Master(**{**MASTER, "request_timeout": 1.5}) as master:
        connection = master.new_connection("worker", "127.0.0.1", int(child.stdout.readline()))
        connection.connect()
        stop(child)
        begin = time.monotonic()
        task = connection.new_task().start()
        assert time.monotonic() - begin < 10
        assert task.join(10).status is TaskStatus.FAILED
        assert "no sign of life" in task.cause


def test_a_killed_master_is_noticed():
    with DoingSlave() as slave:
        task = json.dumps({"do": "wait"})
        with process("master", str(slave.port), task) as child:
            assert child.stdout.readline() == "started\n"
        assert slave.noticed.wait(30)
        address, err = slave.lost[0]
        assert address.startswith("http://127.0.0.1:")
        assert isinstance(err, requests.RequestException)
        slave.release.set()
        with Master(**MASTER) as master, master.new_connection("w", "127.0.0.1", slave.port) as new:
            eventually(lambda: works(new))
        assert len(slave.lost) == 1


@pytest.mark.slow
def test_a_stopped_master_keeps_its_slaves():
    """It received no heartbeat while it was stopped, and does not count that as their silence."""
    with DoingSlave(request_retries=20) as slave:
        with process("master", str(slave.port), json.dumps({"do": "wait"})) as child:
            assert child.stdout.readline() == "started\n"
            stop(child)
            time.sleep(2 * TOLERANCE)
            child.send_signal(signal.SIGCONT)
            time.sleep(TOLERANCE)
            slave.release.set()
            assert child.stdout.readline() == "COMPLETED None\n"
        assert not slave.lost


class SilentConnection:
    """A connected slave that sends nothing."""

    name = known_as = "silent"
    is_connected, tolerance, asked_span = True, None, 0.0

    def __init__(self) -> None:
        self.last_seen, self.lost = time.monotonic(), threading.Event()

    def lose(self, cause: str) -> bool:
        self.is_connected = False
        self.lost.set()
        return True

    def end_callbacks(self) -> None:
        pass


@pytest.mark.slow
def test_silence_is_not_counted_while_the_master_itself_was_stopped():
    silent, looks, deaths, stop = SilentConnection(), [], [], 2.0

    class StoppedMaster(Master):
        def _connections(self):
            looks.append(time.monotonic())
            if len(looks) == 1:
                time.sleep(stop)
            return [silent]

    silent.last_seen += stop  # heard of until the process was stopped
    spans = {"heartbeat_tolerance": 1.0, "heartbeat_check_span": 0.1}
    with StoppedMaster(port=0, **spans, on_death=deaths.append):
        assert silent.lost.wait(20)
        assert time.monotonic() - looks[1] > 0.9  # it had its time again
    assert deaths == []


def test_a_master_that_cannot_watch_its_slaves_says_so():
    deaths, notified = [], threading.Event()

    class FailingMaster(Master):
        def _connections(self):
            if not notified.is_set():
                raise MemoryError
            return []

    def on_death(cause):
        deaths.append(cause)
        notified.set()

    with FailingMaster(**{**MASTER, "heartbeat_tolerance": 0.1}, on_death=on_death):
        assert notified.wait(20)
    assert "MemoryError" in deaths[0]


class SlowSlave(DoingSlave):
    """Each answer takes half a second."""

    def handle(self, request):
        time.sleep(0.5)
        return super().handle(request)


class SlowMaster(Master):
    def handle(self, request):
        time.sleep(0.5)
        return super().handle(request)


@pytest.mark.slow
def test_slow_answers_are_waited_for():
    with SlowSlave() as slave, SlowMaster(**{**MASTER, "heartbeat_tolerance": 5.0}) as master:
        with master.new_connection("worker", "127.0.0.1", slave.port) as connection:
            for _ in range(2):
                assert connection.new_task().start().join(30).status is TaskStatus.COMPLETED
            assert connection.is_connected
        assert not slave.lost


@pytest.mark.slow
def test_a_slave_that_takes_long_to_accept_its_master_is_connected():
    class Careful(DoingSlave):
        def _before_connection(self, data):
            super()._before_connection(data)
            time.sleep(1.5)

    impatient = {**MASTER, "request_timeout": 0.5, "request_retries": 5}
    with Careful() as slave, Master(**impatient) as master:
        with master.new_connection("worker", "127.0.0.1", slave.port) as connection:
            assert connection.new_task().start().join(30).status is TaskStatus.COMPLETED
            with pytest.raises(SlaveSlaveAlreadyConnected):
                master.new_connection("again", "127.0.0.1", slave.port).connect()
        assert [what for what, _ in slave.seen].count("connect") == 1
        assert not slave.lost


@pytest.mark.slow
def test_an_answer_that_cannot_be_delivered_ends_the_connection():
    with pair() as (slave, master, connection):
        task = connection.new_task({"do": "wait"}).start()
        master._server.app = lambda environ, start: start("500 Broken", []) or [b""]
        slave.release.set()
        assert slave.noticed.wait(10)
        assert task.join(30).status is TaskStatus.FAILED


def test_importing_loads_no_torch():
    code = (
        "import sys, ding.interaction.master.master, ding.interaction.slave.slave\n"
        "from ding.interaction import Master, Slave, TaskFail\n"
        "assert 'torch' not in sys.modules and 'gymnasium' not in sys.modules"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env, timeout=60)

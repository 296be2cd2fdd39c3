"""An aggregator's way to its learners: all of them are asked at once, and fail together."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import requests

from ding.interaction.base.service import refusal
from ding.interaction.exception.base import ResponseException
from ding.interaction.exception.master import MasterErrorCode as Code
from ding.interaction.exception.slave import SlaveTaskAlreadyExist, SlaveTaskRefused
from ding.interaction.master.connection import SlaveConnectionProxy
from ding.interaction.master.task import Task, TaskStatus
from ding.interaction.slave import TaskFail
from ding.utils import durations
from ding.utils.errors import InteractionError
from ding.worker.engines.run_master import JoinMessage, RunMaster
from ding.worker.error_report import ErrorReport
from ding.worker.learner.comm.training_task import HUNG

_logger = logging.getLogger(__name__)

#: What a step of a slave that is gone fails of.
_LOST = frozenset({"ConnectionLost", "SlaveShutDown"})


class LearnerTeam:
    """A master of several learners that train together.

    Args:
        names: Who they are.
        table: Host and port of those that are to be connected to; the others join.
        master_args: Arguments of the master.
    """

    def __init__(
        self,
        names: Iterable[str],
        table: Mapping[str, tuple[str, int]],
        **master_args: Any,
    ) -> None:
        self.names = list(names)
        self._table = dict(table)
        self._master = RunMaster(
            **master_args, on_join=self._join, on_lost=self._notice_loss, status=dict
        )
        self._changed = threading.Condition()
        self._connections: dict[str, SlaveConnectionProxy] = {}
        self._addresses: dict[str, tuple[str, int]] = {}
        self._causes: dict[str, str] = {}
        self._closing = False
        self._threads: list[threading.Thread] = []
        self._open: dict[str, Task] = {}
        self._aborting: threading.Thread | None = None

    @property
    def address(self) -> str:
        """Where learners reach it."""
        return self._master.my_address

    def start(self) -> None:
        """Listen, and begin to connect to the learners of the table; does not wait."""
        self._master.start()
        for name in self._table:
            thread = threading.Thread(
                target=self._keep_connected, args=(name,), name=f"reach-{name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Let all learners go, and stop listening."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._master.close()
        for thread in self._threads:
            thread.join(durations.TEAM_ABORT)

    def wait(self, timeout: float | None) -> list[str]:
        """The learners that are not there, or not yet, after ``timeout`` seconds at most.

        Args:
            timeout: Without one it waits until all are there, or `close` is called.
        """
        begun = time.monotonic()
        if self._aborting is not None:
            self._aborting.join(timeout)
        left = None if timeout is None else max(0.0, begun + timeout - time.monotonic())
        with self._changed:
            self._changed.wait_for(lambda: self._closing or not self._missing(), left)
            return self._missing()

    def ask(self, requests_of: Mapping[str, Mapping[str, Any]], timeout: float) -> dict[str, Any]:
        """Give each learner a step, all at once; their answers.

        Raises:
            TaskFail: One of them failed, is lost, or gave no answer within ``timeout`` seconds;
                names it and the cause. It does not wait for the others then.
        """
        done = threading.Condition()
        ended: list[str] = []

        def note(name: str) -> Callable[..., None]:
            def told(*_: Any) -> None:
                with done:
                    ended.append(name)
                    done.notify_all()

            return told

        tasks = self._open = {}
        for name, data in requests_of.items():
            tasks[name] = self._begin(name, data)
            tasks[name].on_complete(note(name)).on_fail(note(name))
        answers: dict[str, Any] = {}
        deadline = time.monotonic() + timeout
        while len(answers) < len(tasks):
            with done:
                done.wait_for(lambda: ended, max(0.0, deadline - time.monotonic()))
                if not ended:
                    raise self._give_up(sorted(set(tasks) - set(answers)), timeout)
                name = ended.pop(0)
            try:
                answers[name] = self._answer(name, tasks[name])
            except TaskFail as failure:
                raise self._root_cause(failure, name, tasks) from None
        return answers

    def abort(self) -> None:
        """Have all learners that can be reached end their tasks; does not wait."""
        self._aborting = threading.Thread(target=self._abort, name="abort-learners", daemon=True)
        self._aborting.start()

    def _abort(self) -> None:
        deadline = time.monotonic() + durations.TEAM_ABORT
        for task in self._open.values():
            task.join(max(0.0, deadline - time.monotonic()))  # one step at a time
        closing: dict[str, Task] = {}
        for name in self.names:
            connection = self._connections.get(name)
            if connection is None or not connection.is_connected:
                continue
            try:
                closing[name] = connection.new_task({"name": "learner_close_task"}).start()
            except (ResponseException, requests.RequestException, InteractionError) as error:
                _logger.info("%s did not end its task: %s", name, error)
        for name, task in closing.items():
            task.join(max(0.0, deadline - time.monotonic()))
            self._note_end(name, task)

    # Steps

    def _begin(self, name: str, data: Mapping[str, Any]) -> Task:
        connection = self._connections.get(name)
        try:
            if connection is None:
                raise InteractionError(self._causes.get(name, "it has not come yet"))
            return connection.new_task(data).start()
        except (SlaveTaskAlreadyExist, SlaveTaskRefused) as error:
            raise _fail("TaskRefused", f"{name}: {error}") from error
        except (ResponseException, requests.RequestException, InteractionError) as error:
            cause = self._causes.get(name, str(error))
            self._lose(name, cause)
            raise _fail("LearnerLost", f"{name}: {cause}") from error

    def _root_cause(self, failure: TaskFail, name: str, tasks: Mapping[str, Task]) -> TaskFail:
        """Of learners that wait for each other, the failure of the one that failed first."""
        if not _of_group(failure):
            return failure
        for other, task in tasks.items():
            if other != name and not self._listens(other):
                return _fail("LearnerLost", f"{other}: its process is gone")
            task.join(durations.ROOT_CAUSE_WAIT)
            if task.status is TaskStatus.FAILED:
                try:
                    self._answer(other, task)
                except TaskFail as found:
                    if not _of_group(found):
                        return found
        return failure

    def _listens(self, name: str) -> bool:
        try:
            with socket.create_connection(self._addresses[name], durations.ROOT_CAUSE_WAIT):
                return True
        except OSError:
            return False

    def _give_up(self, names: list[str], timeout: float) -> TaskFail:
        cause = f"no answer within {timeout:g} s"
        for name in names:
            self._lose(name, cause)
        return _fail("NoAnswer", f"{', '.join(names)}: {cause}")

    def _note_end(self, name: str, task: Task) -> None:
        if isinstance(task.result, dict) and task.result.get("type") == HUNG:
            self._lose(name, str(task.cause))  # its process ends, and is started again

    def _answer(self, name: str, task: Task) -> Any:
        if task.status is TaskStatus.COMPLETED:
            return task.result
        self._note_end(name, task)
        told = task.result if isinstance(task.result, dict) else {}
        kind, message = told.get("type", "TaskFail"), told.get("message", task.cause)
        if kind in _LOST:
            kind = "LearnerLost"  # it is the learner that is lost, not the aggregator
        raise _fail(str(kind), f"{name}: {message}", str(told.get("traceback", "")))

    # Learners come and go

    def _missing(self) -> list[str]:
        connections = self._connections
        return [n for n in self.names if n not in connections or not connections[n].is_connected]

    def _connect(self, name: str, host: str, port: int) -> None:
        connection = self._master.new_connection(name, host, port)
        try:
            connection.connect()
        except BaseException:
            connection.disconnect()  # the name is free again
            raise
        with self._changed:
            self._connections[name], self._addresses[name] = connection, (host, port)
            self._causes.pop(name, None)
            self._changed.notify_all()

    def _keep_connected(self, name: str) -> None:
        pause, longest = durations.CONNECT_PAUSES
        while True:
            try:
                self._connect(name, *self._table[name])
            except (ResponseException, requests.RequestException, InteractionError) as error:
                wait: float | None = pause
                pause = min(2 * pause, longest)
                self._causes[name] = f"it cannot be reached: {error}"
            else:
                wait, pause = None, durations.CONNECT_PAUSES[0]
            with self._changed:
                if wait is None:
                    # No deadline: `_notice_loss` and `close` end it.
                    self._changed.wait_for(lambda: self._closing or name in self._missing())
                else:
                    self._changed.wait_for(lambda: self._closing, wait)
                if self._closing:
                    return

    def _join(self, message: JoinMessage) -> None:
        if message.kind != "learner" or message.name not in self.names:
            cause = f"{message.name} is none of the learners {', '.join(self.names)}"
            raise refusal(Code.TASK_DATA_INVALID, cause, HTTPStatus.CONFLICT)
        if message.name in self._connections:
            self._master.lose(message.name, "it was started again")
        try:
            self._connect(message.name, message.host, message.port)
        except (ResponseException, requests.RequestException, InteractionError) as error:
            cause = f"{message.name} cannot be connected: {error}"
            status = HTTPStatus.FAILED_DEPENDENCY
            raise refusal(Code.TASK_DATA_INVALID, cause, status) from error

    def _lose(self, name: str, cause: str) -> None:
        """Give a learner up, so that it is connected anew."""
        self._master.lose(name, cause)
        self._notice_loss(name, cause)

    def _notice_loss(self, name: str, cause: str) -> None:
        with self._changed:
            self._causes[name] = cause
            self._changed.notify_all()


def _of_group(failure: TaskFail) -> bool:
    """Whether it only says that another one did not take part in a reduction."""
    return bool(failure.result.get("of_group"))


def _fail(kind: str, cause: str, trace: str = "") -> TaskFail:
    return ErrorReport(kind, cause, trace).task_fail()

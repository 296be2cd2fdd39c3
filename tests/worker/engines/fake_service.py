"""A worker whose task follows its ``do``, for tests of the transport of its messages."""

import importlib
import threading
from pathlib import Path

from ding.utils import read_file, remove_file, save_file
from ding.utils.file_helper import names_by_age
from ding.utils.log_file import AppendFile
from ding.worker.engines.http_worker import HttpWorker
from ding.worker.error_report import ErrorReport
from ding.worker.messages import CloseTask, ResourceRequest, Resources, StartTask, TaskReport
from ding.worker.seams import Weights


class FakeService:
    """Its task's ``do`` says what happens: ``work``, ``fail``, ``give up``, or ``hang``.

    Before that, it makes the file ``mark``, if the task names one.
    """

    kind = "collector"
    failed = None

    def __init__(self, spec, stores):
        self.spec, self.stores = spec, stores
        self.closed, self.interrupted = threading.Event(), threading.Event()

    def start(self):
        pass

    def handle(self, request):
        try:
            return self._answer(request)
        except Exception as error:
            raise ErrorReport.of(error).task_fail() from error

    def _answer(self, request):
        if isinstance(request, ResourceRequest):
            return Resources(cpu=3)
        if isinstance(request, StartTask):
            return self._start(request.info)
        if isinstance(request, CloseTask):
            weights = self.stores.weights.newest("policy")
            return TaskReport("t", {"name": self.spec.name, **weights.facts})
        raise TypeError(f"a {type(request).__name__} is not a known request")

    def _start(self, info):
        if info["do"] == "fail":
            raise ValueError("the task is no good")
        if info["do"] == "give up":
            self.failed = "it cannot go on"
            self.closed.set()
        if "mark" in info:
            Path(info["mark"]).touch()
        if info["do"] == "hang":
            self.interrupted.wait(info["seconds"])
            self.interrupted.clear()
        if info["do"] == "put":
            self.stores.samples.put(info["name"], [{"x": 1.0}, {"x": 2.0}])

        if info["do"] == "write":
            self._write(info["folder"], info["state"])

    def _write(self, folder, state):
        """A log, checkpoints of which the oldest goes, and weights that report on it."""
        log = AppendFile(f"{folder}/log/a/a.txt")
        log.write("one\n")
        log.write("two\n")
        for number in (8, 9, 10):
            save_file(f"{folder}/ckpt/iteration_{number}.pth.tar", {"iter": number})
        remove_file(f"{folder}/ckpt/{names_by_age(folder + '/ckpt')[0]}")
        facts = {
            "here": Path(folder, "ckpt").exists(),
            "read": read_file(state)["from"],
            "kept": names_by_age(f"{folder}/ckpt"),
        }
        self.stores.weights.publish("wrote", Weights({}, facts))

    def coordinator_lost(self, cause):
        self.interrupted.set()

    def released(self):
        self.close()

    def close(self):
        self.interrupted.set()
        self.closed.set()

    def join(self, timeout=None):
        return self.closed.wait(timeout)


def fake_service(spec, stores):
    return FakeService(spec, stores)


class SlowService(FakeService):
    """Takes its time for the first answer."""

    def _answer(self, request):
        self.interrupted.wait(20.0)
        return super()._answer(request)


def slow_service(spec, stores):
    return SlowService(spec, stores)


def no_service(spec, stores):
    raise ImportError("no module named 'own_env'")


def importing_service(spec, stores):
    importlib.import_module("shipped_by_the_run")
    return FakeService(spec, stores)


def http_worker(spec, stores, cfg):
    """The process of a worker that joins over HTTP."""
    service = spec.build(spec, stores)
    worker = HttpWorker(service, cfg, lambda cause: service.close())
    worker.start()
    service.join()
    worker.close()

"""One interface to each engine, so that one suite of tests covers all of them."""

import atexit
import functools
import importlib
import importlib.util
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
import time

from ding.interaction.base import split_http_address
from ding.worker.engines.carrier import Stores, WorkerSpec
from ding.worker.engines.control import RunControl
from ding.worker.engines.flask_fs import HttpWorkers
from ding.worker.engines.local import LocalCarrier
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
    SharedFolderWeights,
)
from tests.children import forkserver
from tests.docs.fences import blocks

from .fake_service import fake_service, http_worker


class Arrivals:
    """Records the events of a control, and lets tests wait for them."""

    def __init__(self):
        self._changed = threading.Condition()
        self.events = []
        self.peers, self.arrivals = {}, {}

    def came(self, arrival):
        self.peers[arrival.name], self.arrivals[arrival.name] = arrival.peer, arrival
        self._note("came", arrival.name, arrival)

    def lost(self, arrival, cause):
        self._note("lost", arrival.name, cause)

    def status(self):
        return {"of": "a test"}

    def warn(self, source, text):
        self._note("warn", source, text)

    def fatal(self, cause):
        self._note("fatal", "", cause)

    def _note(self, *event):
        with self._changed:
            self.events.append((*event, time.monotonic()))
            self._changed.notify_all()

    def of(self, what):
        return [(name, fact) for kind, name, fact, _ in self.events if kind == what]

    def wait(self, what, count=1, seconds=40.0):
        """Events of that kind, as soon as there are ``count`` of them."""
        with self._changed:
            found = self._changed.wait_for(lambda: len(self.of(what)) >= count, seconds)
            assert found, f"{len(self.of(what))} of {count} x {what!r}: {self.events}"
        return self.of(what)


class Harness:
    """An engine, its stores, and controls over its workers."""

    def run(self, names=("collector0",), **kwargs):
        """A started control, what it has reported, and the first worker once all have come."""
        control, arrivals = self.control(names, **kwargs), Arrivals()
        control.start(arrivals)
        arrivals.wait("came", len(names))
        return control, arrivals, arrivals.peers[names[0]]


class CarrierHarness(Harness):
    """An engine that starts its workers itself."""

    END = 5.0
    lists_names = starts_workers = True

    def __init__(self, folder):
        self.carrier = self.carrier_type()({}, str(folder))
        self.carrier.open()
        self.stores = Stores.of(self.carrier)
        self._controls = []

    def carrier_type(self):
        raise NotImplementedError

    def control(self, names=("collector0",), build=fake_service, max_restart=5):
        specs = [WorkerSpec(name, "collector", build) for name in names]
        self._controls.append(RunControl(self.carrier, specs, max_restart))
        return self._controls[-1]

    def kill(self, name):
        raise NotImplementedError

    def close(self):
        for control in self._controls:
            control.close(self.END)
        self.carrier.close()


class LocalHarness(CarrierHarness):
    """`local`: threads and dicts."""

    def carrier_type(self):
        return LocalCarrier

    def kill(self, name):
        self.carrier.kill(name)


class DocumentedHarness(CarrierHarness):
    """The engine of ``docs/comm_types.md``: processes and a database."""

    lists_names = False

    def carrier_type(self):
        return documented_engine().SqliteCarrier

    def kill(self, name):
        kill_process(name)


class RayHarness(CarrierHarness):
    """`ray`: actors and the object store of the Ray that the fixture `ray_node` has started."""

    def carrier_type(self):
        from ding.worker.engines.ray_engine import RayCarrier

        return RayCarrier

    def kill(self, name):
        _, pid = self.carrier.address(self.carrier._handles[name])
        os.kill(pid, signal.SIGKILL)


class FlaskFsHarness(Harness):
    """`flask_fs`: processes that join over HTTP, and folders. Its supervisor is of `ding.entry`."""

    END = 5.0
    lists_names = True
    starts_workers = False

    def __init__(self, folder):
        self.stores = Stores(
            SharedFolderSamples(str(folder / "data")),
            SharedFolderWeights(str(folder / "policy")),
            FolderArtifacts(str(folder)),
        )
        self._controls, self._processes = [], []

    def control(self, names=("collector0",), build=fake_service):
        cfg = dict(run_key="the key", heartbeat_tolerance=2.0, heartbeat_check_span=0.2)
        control = _StartedByHand(cfg, lambda address: self._start(names, build, address))
        self._controls.append(control)
        return control

    def _start(self, names, build, address):
        context = forkserver()
        host, port, _, _ = split_http_address(address)
        for name in names:
            cfg = dict(name=name, coordinator=(host, port), run_key="the key", heartbeat_span=0.3)
            args = WorkerSpec(name, "collector", build), self.stores, cfg
            process = context.Process(target=http_worker, args=args, name=name)
            process.start()
            self._processes.append(process)

    def kill(self, name):
        kill_process(name)

    def close(self):
        for control in self._controls:
            control.close(self.END)
        for process in self._processes:
            process.join(2.0)
            process.kill()
            process.join()


class _StartedByHand(RunControl):
    """Has its workers started as soon as it listens."""

    def __init__(self, cfg, start_workers):
        super().__init__(HttpWorkers(cfg), [])
        self._start_workers = start_workers

    def start(self, arrivals):
        super().start(arrivals)
        self._start_workers(self.address)


def kill_process(name):
    """End a child process as by SIGKILL."""
    for process in multiprocessing.active_children():
        if process.name == name:
            process.kill()


@functools.cache
def documented_engine():
    """The module that the page shows; its processes import it by this name, too."""
    text = next(
        text for page, text in blocks("python") if "Carrier[" in text or "(Carrier)" in text
    )
    folder = tempfile.mkdtemp(prefix="documented_engine")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with open(os.path.join(folder, "documented_engine.py"), "w", encoding="utf-8") as file:
        file.write(text)
    sys.path.insert(0, folder)
    return importlib.import_module("documented_engine")


HARNESSES = {
    "local": LocalHarness,
    "flask_fs": FlaskFsHarness,
    "documented": DocumentedHarness,
}
if importlib.util.find_spec("ray") is not None:
    HARNESSES["ray"] = RayHarness

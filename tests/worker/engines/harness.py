"""Each engine in the same hands, so that one suite of tests holds for all."""

import importlib.util
import os
import signal
import threading
import time

from ding.worker.engines.carrier import Stores, WorkerSpec
from ding.worker.engines.local import LocalCarrier
from ding.worker.engines.spawn_control import SpawnControl

from .fake_service import fake_service


class Arrivals:
    """Notes what a control tells, and lets tests wait for it."""

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

    def wait(self, what, count=1, seconds=10.0):
        """What was told of that kind, as soon as there is so much of it."""
        with self._changed:
            found = self._changed.wait_for(lambda: len(self.of(what)) >= count, seconds)
            assert found, f"{len(self.of(what))} of {count} x {what!r}: {self.events}"
        return self.of(what)


class LocalHarness:
    """`local`: threads and dicts."""

    def __init__(self, folder):
        self.carrier = LocalCarrier({}, str(folder))
        self.carrier.open()
        self.stores = Stores.of(self.carrier)
        self._controls = []

    def control(self, names=("collector0",), build=fake_service, max_restart=5):
        specs = [WorkerSpec(name, "collector", build) for name in names]
        self._controls.append(SpawnControl(self.carrier, specs, max_restart))
        return self._controls[-1]

    def kill(self, name):
        self.carrier.kill(name)

    def close(self):
        for control in self._controls:
            control.close(2.0)
        self.carrier.close()


class RayHarness:
    """`ray`: actors and the object store of the Ray that the fixture `ray_node` has started."""

    def __init__(self, folder):
        from ding.worker.engines.ray_engine import RayCarrier

        self.carrier = RayCarrier({}, str(folder))
        self.carrier.open()
        self.stores = Stores.of(self.carrier)
        self._controls = []

    def control(self, names=("collector0",), build=fake_service, max_restart=5):
        specs = [WorkerSpec(name, "collector", build) for name in names]
        self._controls.append(SpawnControl(self.carrier, specs, max_restart))
        return self._controls[-1]

    def kill(self, name):
        os.kill(self.carrier.pid_of(name), signal.SIGKILL)

    def close(self):
        for control in self._controls:
            control.close(5.0)
        self.carrier.close()


HARNESSES = {"local": LocalHarness}
if importlib.util.find_spec("ray") is not None:
    HARNESSES["ray"] = RayHarness

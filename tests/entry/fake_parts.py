"""A coordinator and workers that only stay alive, for tests of the supervision of processes.

They obey ``exp_name/<name>.order``, a file with one word, and report their state in
``exp_name/<name>.pid`` and ``exp_name/<name>.said``.
"""

import os
import threading
import time

from ding.interaction.base import split_http_address
from ding.worker.engines.http_worker import HttpWorker


class _Part:
    def __init__(self, name: str, exp_name: str) -> None:
        self.name, self.exp_name = name, exp_name
        os.makedirs(exp_name, exist_ok=True)
        if self.order() == "no-start":
            raise ValueError(f"{name} cannot be built")
        if self.order() == "hang-at-start":
            time.sleep(100)
        self.ended = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)

    def path(self, suffix: str) -> str:
        return os.path.join(self.exp_name, f"{self.name}.{suffix}")

    def order(self) -> str:
        try:
            with open(self.path("order")) as file:
                return file.read().strip()
        except OSError:
            return ""

    def say(self, word: str) -> None:
        with open(self.path("said"), "a") as file:
            file.write(word + "\n")

    def start(self) -> None:
        self.note_pid()
        self.watcher.start()

    def note_pid(self) -> None:
        with open(self.path("pid"), "a") as file:
            file.write(f"{os.getpid()}\n")

    def _watch(self) -> None:
        while not self.ended.wait(0.02):
            order = self.order()
            if order:
                self.obey(order)

    def obey(self, order: str) -> None:
        if order == "die":
            os.remove(self.path("order"))
            print("a last line", flush=True)
            os._exit(3)


class FakeCoordinator(_Part):
    """Has workers come by the engine's control, and asks nothing of them."""

    def __init__(self, cfg, run_log, console, engine=None, callbacks=None) -> None:
        super().__init__("coordinator", cfg.main.exp_name)
        self.run_log, self._control = run_log, engine.control
        own = cfg.system.coordinator
        assert own.run_key
        self.verdict = None
        self.say(f"resume={cfg.resume_coordinator} port={own.port}")

    @property
    def address(self):
        host, port, _, _ = split_http_address(self._control.address)
        return host, port

    def start(self) -> None:
        self._control.start(self)
        super().start()

    # ------------------------------------------------------------------ events of the control

    def came(self, arrival) -> None:
        self.say(f"{arrival.name} came")

    def lost(self, arrival, cause) -> None:
        self.warn(arrival.name, cause)

    def warn(self, source, text) -> None:
        self.say(f"{source} {text}")

    def fatal(self, cause) -> None:
        self.stop(cause, "failed")

    def status(self):
        return {}

    # ------------------------------------------------------------------ life

    def obey(self, order: str) -> None:
        super().obey(order)
        word, _, reason = order.partition(" ")
        if word in ("converged", "finished", "failed", "interrupted"):
            self.stop(reason, word)

    def stop(self, reason: str, status: str = "interrupted") -> None:
        self.say(f"stop {status} {reason}")
        if self.order() != "deaf":
            self.verdict = self.verdict or (status, reason)
            self.ended.set()

    def wait(self) -> tuple[str, str]:
        self.ended.wait()
        return self.verdict

    def close(self) -> None:
        self._control.close(2.0)
        if self.verdict is not None:
            self.run_log.finish(*self.verdict)
        self.say("closed")


class FakeWorker(_Part):
    """A service that joins, and answers nothing."""

    failed = None

    def __init__(self, entry) -> None:
        super().__init__(entry.name, entry.exp_name)
        assert entry.run_key
        self.kind = "learner" if entry.name.startswith("learner") else "collector"
        self._http = HttpWorker(self, entry, self.coordinator_lost)
        self.say(f"coordinator={entry.coordinator[1]}")

    def obey(self, order: str) -> None:
        super().obey(order)
        if order == "give up":
            self.failed = "cannot join"
            self.ended.set()
        elif order == "leave":
            self.ended.set()

    def start(self) -> None:
        self.note_pid()
        self._http.start()

    def coordinator_lost(self, cause: str) -> None:
        """It joins again."""

    def released(self) -> None:
        if self.order() != "deaf":
            self.ended.set()

    def join(self) -> None:
        self.watcher.start()  # it obeys once it has reported that it works
        self.ended.wait()

    def close(self) -> None:
        if self.order() == "deaf":
            time.sleep(100)
        self.say("closed")
        self.ended.set()
        self._http.close()

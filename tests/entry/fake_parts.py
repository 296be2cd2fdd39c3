"""A coordinator and workers that do nothing but live, for tests of what watches over processes.

They obey ``exp_name/<name>.order``, a file with one word, and tell of themselves in
``exp_name/<name>.pid`` and ``exp_name/<name>.said``.
"""

import os
import threading
import time


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
    def __init__(self, cfg, run_log, console, engine=None, callbacks=None) -> None:
        super().__init__("coordinator", cfg.main.exp_name)
        self.run_log = run_log
        own = cfg.system.coordinator
        assert own.run_key
        self.verdict = None
        self.address = own.host, own.port or 12345
        self.say(f"resume={cfg.resume_coordinator} port={own.port}")

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

    def worker_ended(self, name: str, cause: str) -> None:
        self.say(f"{name} {cause}")

    def wait(self) -> tuple[str, str]:
        self.ended.wait()
        return self.verdict

    def close(self) -> None:
        if self.verdict is not None:
            self.run_log.finish(*self.verdict)
        self.say("closed")


class FakeWorker(_Part):
    def __init__(self, entry) -> None:
        super().__init__(entry.name, entry.exp_name)
        assert entry.run_key
        self.failed = None
        if entry.name.startswith("learner_aggregator"):
            self.master_address = "http://127.0.0.1:23456"
        if entry.get("multi_gpu"):
            self.say(f"RANK={os.environ.get('RANK')} WORLD_SIZE={os.environ.get('WORLD_SIZE')}")
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

    def join(self) -> None:
        self.watcher.start()  # it obeys when it has told that it works
        self.ended.wait()

    def close(self) -> None:
        if self.order() == "deaf":
            time.sleep(100)
        self.say("closed")
        self.ended.set()

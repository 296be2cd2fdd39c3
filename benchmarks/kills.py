"""Kills, stops and interrupts processes of runs at random moments; counts those that survive.

    python benchmarks/kills.py --count 60 --seed 0 [--mode serial|parallel]

Each trial starts a run on CartPole without an end, serial with environments in other
processes or parallel, and sends SIGKILL, SIGSTOP, SIGTERM or SIGINT to one of its processes. It
survived if the run continues, or ended and is resumed by ``--resume`` (a serial one has a state to
continue from after 30 s; one that was killed before is counted apart), and if in the end, after
Ctrl-C, its files can be read, none of its processes, ports, keys and data files is left, and all
files of the user are as they were.
"""

import argparse
import collections
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from ding.utils import read_file

HERE = Path(__file__).resolve().parent
CONFIGS = HERE.parent / "configs" / "cartpole"
SIGNALS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT)
#: Seconds that a run has to begin, or to get on after a signal.
START, GO_ON = 120.0, 90.0
#: Seconds in which a run that ends, and whatever outlives it, has to be gone.
END = 20.0
USERS = ("disk/thesis.tex", "disk/nested/deep/results.csv", "disk/buffer_1.old.csv")


class Lost(Exception):
    """The run did not survive; says why."""


class Trial:
    """One run in its own folder, a session of processes."""

    def __init__(self, mode: str, folder: Path) -> None:
        self.mode, self.folder, self.exp = mode, folder, folder / "run"
        self.process: subprocess.Popen | None = None
        self.sessions: list[int] = []
        self.users = {folder / name: name for name in USERS}
        for path, words in self.users.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(words)

    def start(self, resume: bool = False) -> None:
        config = CONFIGS / "cartpole_dqn_config.py"
        changes = ["exp_name=run", "env.stop_value=1000"]
        if self.mode == "parallel":
            config = CONFIGS / "parallel" / "cartpole_dqn_config.py"
            changes += ["system_config.path_data=disk", "system_config.path_policy=run/policy"]
        else:
            changes += ["create_config.env_manager.type=subprocess", "env.collector_env_num=4"]
        command = [sys.executable, "-m", "ding.entry.cli", "-m", self.mode, "-c", str(config)]
        for change in changes:
            command += ["--set", change]
        command += ["-s", "0", "--plain", *(["--resume"] if resume else [])]
        env = {**os.environ, "PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"}
        with (self.folder / "output.txt").open("a") as output:
            output.write(f"$ {shlex.join(command)}\n")
            output.flush()
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=env,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.sessions.append(self.process.pid)

    @property
    def ended(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    def rows(self) -> int:
        """Rows of scalars that the run has written, which become more while it gets on."""
        try:
            return (self.exp / "metrics.jsonl").read_bytes().count(b"\n")
        except OSError:
            return 0

    def wait_for_rows(self, more: int, seconds: float) -> bool:
        """Whether `more` rows arrive; also false at the run's end."""
        goal, deadline = self.rows() + more, time.monotonic() + seconds
        while time.monotonic() < deadline and not self.ended:
            if self.rows() >= goal:
                return True
            time.sleep(0.1)
        return self.rows() >= goal

    @property
    def has_state(self) -> bool:
        """Whether there is something to continue from."""
        names = ("resume.pth.tar", "coordinator_state.pth.tar")
        return any((self.exp / "ckpt" / name).exists() for name in names)

    def wait_for_state(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not (self.has_state or self.ended or time.monotonic() > deadline):
            time.sleep(0.1)

    def alive(self) -> dict[int, str]:
        """State of the processes of all runs of this trial."""
        found = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    text = Path("/proc", entry, "stat").read_text()
                except OSError:
                    continue
                state, _, _, session = text.rpartition(")")[2].split()[:4]
                if int(session) in self.sessions and state not in "ZX":
                    found[int(entry)] = state
        return found

    def wait_until_gone(self) -> None:
        deadline = time.monotonic() + END
        while left := self.alive():
            if time.monotonic() > deadline:
                names = [Path("/proc", str(pid), "cmdline").read_text()[-80:] for pid in left]
                raise Lost(f"processes are left: {left} {names}")
            time.sleep(0.05)

    def interrupt(self) -> None:
        """Ctrl-C, as the user's last word."""
        if self.process is not None and not self.ended:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(END)
            except subprocess.TimeoutExpired:
                raise Lost("Ctrl-C does not end it") from None
        self.wait_until_gone()

    def check_files(self) -> None:
        record = json.loads((self.exp / "run.json").read_text())
        if self.process is not None and record["status"] == "running":
            raise Lost("run.json says that it is running")
        for path in self.exp.rglob("*.pth.tar"):
            if not path.name.startswith("."):
                read_file(str(path))
        for line in (self.exp / "metrics.jsonl").read_text().splitlines()[:-1]:
            json.loads(line)
        for path, words in self.users.items():
            if not path.exists() or path.read_text() != words:
                raise Lost(f"the user's {path.relative_to(self.folder)} is not as it was")
        left = [p for p in self.folder.rglob("*") if p.is_file() and self._is_leftover(p)]
        if left:
            raise Lost(f"files are left: {[str(p.relative_to(self.folder)) for p in left[:5]]}")

    def _is_leftover(self, path: Path) -> bool:
        if path in self.users:
            return False
        if path.name == ".run_lock" and self.process is None:
            return False  # of a killed run: the next run takes it
        in_disk = (self.folder / "disk") in path.parents
        in_policy = (self.exp / "policy") in path.parents
        return (
            in_disk
            or in_policy
            or path.name in ("run.key", "coordinator.json")
            or path.name.startswith(".")
            or path.name.endswith(".tmp")
        )

    def port(self) -> int | None:
        """Where the coordinator listens."""
        try:
            return int(json.loads((self.exp / "coordinator.json").read_text())["port"])
        except (OSError, ValueError, KeyError):
            return None

    def kill_all(self) -> None:
        for pid in self.alive():
            send(pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()


def send(pid: int, number: int) -> bool:
    """Send a signal; whether a process received it."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def survive(trial: Trial, draw: random.Random) -> str:
    """Send one signal to a run; returns a sentence on what happened.

    Raises:
        Lost: It did not survive.
    """
    trial.start()
    if not trial.wait_for_rows(3, START):
        raise Lost("it does not begin")
    if draw.random() < 0.3:
        trial.wait_for_state(START)
    time.sleep(draw.uniform(0.0, 4.0))
    port, number = trial.port(), draw.choice(SIGNALS)
    assert trial.process is not None
    main = trial.process.pid
    victims = sorted(trial.alive())
    victim = main if draw.random() < 0.3 else draw.choice(victims)
    role = "parent" if victim == main else "child"
    if not send(victim, number):
        role = "gone"
    what = f"{trial.mode}: {signal.Signals(number).name} to {role}"
    if number == signal.SIGSTOP:
        time.sleep(draw.uniform(0.5, 12.0))
        send(victim, signal.SIGCONT)
    try:
        if role == "parent" and number != signal.SIGSTOP:
            trial.wait_until_gone()  # each of them ends the whole run
        went_on = _go_on(trial)
        trial.interrupt()
        trial.check_files()
        if port is not None and _listens(port):
            raise Lost("its port is still open")
    except Lost as error:
        raise Lost(f"{what}: {error}") from None
    except Exception as error:
        raise Lost(f"{what}: {traceback.format_exc()}") from error
    return f"{what}: {went_on}"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _go_on(trial: Trial) -> str:
    if trial.wait_for_rows(3, GO_ON) and not trial.ended:
        return "went on"
    if not trial.ended:
        raise Lost(f"neither continues nor ends in {GO_ON:.0f} s")
    trial.wait_until_gone()
    if not trial.has_state:
        trial.process = None  # a killed one says that it is running
        return "ended before its first state"
    trial.start(resume=True)
    if trial.wait_for_rows(3, START):
        return "went on with --resume"
    raise Lost("does not continue with --resume")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", choices=("serial", "parallel"))
    options = parser.parse_args()
    draw, counts = random.Random(options.seed), collections.Counter[str]()
    lost = []
    for number in range(options.count):
        mode = options.mode or draw.choice(("serial", "parallel"))
        folder = Path(tempfile.mkdtemp(prefix="kills_"))
        trial = Trial(mode, folder)
        try:
            words = survive(trial, draw)
            counts[words] += 1
            shutil.rmtree(folder)
        except Lost as error:
            words = f"LOST {error} ({folder})"
            lost.append(words)
        finally:
            trial.kill_all()
        print(f"{number + 1:4} {words}", flush=True)
    print()
    for words, count in sorted(counts.items()):
        print(f"{count:4} {words}")
    print(f"\n{options.count - len(lost)} of {options.count} survived", *lost, sep="\n")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())

"""A process that ends a run whose interpreter stands still: ``python -I -S _run_guard.py ...``.

Code in C that never returns and keeps the interpreter's lock stops every thread of a process, so
that only another process can end it after a signal. This file imports nothing but what Python
brings.
"""

import json
import os
import select
import signal
import sys
import time
from datetime import datetime, timezone
from typing import NamedTuple

_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


class Limits(NamedTuple):
    """Seconds; the package's table of durations cannot be imported here.

    Attributes:
        env: An environment may keep the interpreter from running so long.
        look: From one look to the next, without a sign of life.
        silence: After these it is looked whether a signal came.
        signal: After these without a sign of life a run that was sent a signal is ended,
        save: and after these if it was saving.
    """

    env: float
    look: float
    silence: float
    signal: float
    save: float


def watch(pid: int, beats: int, alarm: int, record: str, limits: Limits) -> None:
    """Look after a process until it ends or says that it is through.

    Args:
        pid: The process, this one's parent.
        beats: Where it writes what it is at, several times a second: ``t`` training, ``s`` what
            may take longer, as saving, ``q`` through.
        alarm: Where the numbers of its signals appear, unless it has read them itself.
        record: Its ``run.json``.
        limits: What may take how long.
    """
    last, doing, number = time.monotonic(), b"?", 0
    while os.getppid() == pid:
        if select.select([beats], [], [], limits.look)[0]:
            doing = os.read(beats, 4096)[-1:]
            if doing in (b"", b"q"):
                return
            last, number = time.monotonic(), 0
            continue
        if _is_stopped(pid):
            last = time.monotonic()
            continue
        silent = time.monotonic() - last
        if silent > limits.silence and select.select([alarm], [], [], 0)[0]:
            numbers = [n for n in os.read(alarm, 64) if n in _NAMES]
            number = number or (numbers[0] if numbers else 0)
        if number and silent >= (limits.save if doing == b"s" else limits.signal):
            _end(pid, record, "interrupted", _NAMES[signal.Signals(number)])
            return
        if doing == b"t" and silent >= limits.env:
            _end(pid, record, "failed", f"EnvTimeoutError: no answer for {limits.env:g} s")
            return


def _is_stopped(pid: int) -> bool:
    """Whether it was stopped, by Ctrl-Z or a debugger."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return False


def _end(pid: int, path: str, status: str, reason: str) -> None:
    reason += (
        "; an environment kept the interpreter from running and the process was killed: the last "
        "state is that of a few seconds before"
    )
    os.kill(pid, signal.SIGKILL)
    try:
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        facts.pop("checksum", None)  # of what it was
        if facts.get("pid") == pid and facts.get("status") == "running":
            now = datetime.fromtimestamp(time.time(), timezone.utc).astimezone()
            facts.update(status=status, reason=reason, ended=now.isoformat(timespec="seconds"))
            folder, name = os.path.split(path)
            temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}")
            with open(temporary, "x", encoding="utf-8") as file:  # not through a link
                json.dump(facts, file, indent=2)
            os.replace(temporary, path)
    finally:
        print(f"{status}: {reason}", flush=True)


if __name__ == "__main__":
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    pid, beats, alarm = map(int, sys.argv[1:4])
    watch(pid, beats, alarm, sys.argv[4], Limits(*map(float, sys.argv[5:])))

"""Who holds the interpreter for too long is shown, and the process ends."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.children import start_python, wait_for

SCRIPT = """
import os, signal, sys, threading, time
from ding.entry.run.watch import HeldInterpreter
from tests.entry import hanging

os.setpgrp()
held = HeldInterpreter()
signal.signal(signal.SIGTSTP, held.pause)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
over = threading.Event()

def arm():
    while not over.wait(0.05):
        held.arm(float(sys.argv[1]))

threading.Thread(target=arm, daemon=True).start()
time.sleep(0.3)
hanging.HANG.update(where="step", how=sys.argv[2], at=0)
hanging.hang("step", 0)
"""


def state_of(pid):
    """The letter that Linux has for what a process is at: T for stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def start(limit, how):
    process = start_python(SCRIPT, limit, how)
    wait_for(lambda: os.path.exists("hangs") or process.poll() is not None)
    return process


@pytest.mark.slow
def test_it_ends_with_a_traceback():
    process = start(3, "locked")
    output, _ = process.communicate(30)
    assert process.returncode == 1, output
    assert "Timeout (0:00:03)!" in output
    assert "in hang" in output


@pytest.mark.slow
def test_a_pause_does_not_count():
    process = start(3, "loop")
    os.kill(process.pid, signal.SIGTSTP)
    wait_for(lambda: state_of(process.pid) == "T")
    time.sleep(4)
    os.kill(process.pid, signal.SIGCONT)
    wait_for(lambda: state_of(process.pid) != "T")
    os.kill(process.pid, signal.SIGTERM)
    output, _ = process.communicate(30)
    assert process.returncode == 3, output


def test_without_a_limit_it_may_hold_on():
    process = start("inf", "sleep")
    assert process.poll() is None
    process.kill()
    process.wait(30)


PAUSED_WHILE_IT_ARMS = """
import faulthandler, os, signal
from ding.entry.run.watch import HeldInterpreter

os.setpgrp()
held = HeldInterpreter()
signal.signal(signal.SIGTSTP, held.pause)
start = faulthandler.dump_traceback_later

def pressed(*args, **kwargs):  # Ctrl-Z at this very moment
    os.kill(os.getpid(), signal.SIGTSTP)
    start(*args, **kwargs)

faulthandler.dump_traceback_later = pressed
held.arm(60)
held.disarm()
print("continues")
"""


def test_the_main_thread_may_be_paused_while_it_starts_the_timer():
    process = start_python(PAUSED_WHILE_IT_ARMS)
    try:
        wait_for(lambda: process.poll() is not None or state_of(process.pid) == "T")
        os.kill(process.pid, signal.SIGCONT)
        output, _ = process.communicate(30)
    finally:
        process.kill()
    assert process.returncode == 0, output
    assert "continues" in output

"""Entries in processes of their own, which need not import anything anew."""

import multiprocessing
import os
import sys
import time
from pathlib import Path


def forked(target, *args, output="output.txt", **kwargs):
    """Start a function in another process; what it prints goes into a file."""
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_main, args=(target, output, args, kwargs))
    process.start()
    return process


def _main(target, output, args, kwargs):
    fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in (1, 2):
        os.dup2(fd, number)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.environ["DING_CONSOLE"] = "plain"
    target(*args, **kwargs)


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def descendants(pid):
    """All processes below one."""
    children = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            children.append(int(folder.name))
    return children + [below for child in children for below in descendants(child)]

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from ding.utils.errors import ConfigError
from ding.utils.run_claims import RunLock, is_locked

HOLDER = """
import sys, time
sys.path.insert(0, {root!r})
from ding.utils.run_claims import RunLock
with RunLock("run"):
    print("held", flush=True)
    {after}
    time.sleep(60)
"""


def holder(after="pass"):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = HOLDER.format(root=root, after=after)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


@pytest.fixture(autouse=True)
def _folder():
    os.mkdir("run")


def test_second_process_is_refused_with_the_pid_of_the_first():
    process = holder()
    with pytest.raises(ConfigError, match=f"process {process.pid} on ") as caught, RunLock("run"):
        pass
    assert "'run' is running" in str(caught.value)
    process.kill()
    process.wait(10)
    process.stdout.close()


def test_lock_of_a_dead_process_is_taken_over():
    process = holder()
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    process.stdout.close()
    with RunLock("run"):
        pass


def test_child_of_a_dead_process_does_not_keep_the_lock():
    process = holder("import os; child = os.fork() or time.sleep(60); print(child, flush=True)")
    child = int(process.stdout.readline())
    process.kill()
    process.wait(10)
    deadline = time.monotonic() + 30
    while True:
        try:
            with RunLock("run"):
                break
        except ConfigError:
            assert time.monotonic() < deadline
    os.kill(child, signal.SIGKILL)
    process.stdout.close()


def test_lock_is_free_again_afterwards():
    for _ in range(2):
        with RunLock("run"):
            pass


def hold(entered):
    with RunLock("run"):
        entered.set()


def test_child_may_not_enter_while_the_parent_holds_it():
    context = multiprocessing.get_context("fork")
    entered = context.Event()
    with RunLock("run"):
        process = context.Process(target=hold, args=(entered,))
        process.start()
        process.join(20)
    assert process.exitcode == 1
    assert not entered.is_set()


def test_folder_that_cannot_be_written_is_named():
    with pytest.raises(ConfigError, match="missing"), RunLock("missing"):
        pass


def a_file_elsewhere():
    with open("precious", "w") as file:
        file.write("precious")
    return os.path.abspath("precious")


def a_link():
    os.symlink(a_file_elsewhere(), "run/.run_lock")


def a_second_name():
    os.link(a_file_elsewhere(), "run/.run_lock")


def a_link_to_nothing():
    os.symlink(os.path.abspath("made"), "run/.run_lock")


def a_fifo():
    os.mkfifo("run/.run_lock")


@pytest.mark.parametrize("make", [a_link, a_second_name, a_link_to_nothing, a_fifo])
def test_what_is_no_lock_of_ours_is_not_written_to(make):
    make()
    with pytest.raises(ConfigError, match=r"\.run_lock'? is ") as caught, RunLock("run"):
        pass
    assert "\n" not in str(caught.value)
    assert not is_locked("run")
    assert not os.path.exists("made")
    if os.path.exists("precious"):
        with open("precious") as file:
            assert file.read() == "precious"


@pytest.mark.parametrize("content", ["[" * 2000, "process 1\nand more", "\0", ""])
def test_a_holder_that_says_nonsense_is_another_process(content):
    with RunLock("run"):
        with open("run/.run_lock", "w") as file:
            file.write(content)
        with pytest.raises(ConfigError, match="another process has its folder"), RunLock("run"):
            pass

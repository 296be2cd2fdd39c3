"""Child processes that need not import anything again.

A `Child` is forked from one process that has imported what runs need, and nothing else: no thread,
patch or registration of a test reaches it. `forked` takes the test's own process with all of that.
"""

import importlib
import multiprocessing
import multiprocessing.forkserver
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

from ding.utils import durations

CHECKOUT = str(Path(__file__).parents[1])
#: Imported before the first child is forked.
PRELOADED = (
    *("torch", "gymnasium", "tensorboardX", "click", "requests"),
    *("ding.entry.cli", "ding.entry.serial_entry", "ding.entry.parallel_entry"),
    *("tests.entry.runs", "tests.entry.parallel_runs", "tests.parallel.envs"),
)


def forkserver():
    """The context whose processes are forked from the one that has imported `PRELOADED`."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = CHECKOUT
    try:
        multiprocessing.set_forkserver_preload(list(PRELOADED))
        multiprocessing.forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before
    return multiprocessing.get_context("forkserver")


class Child:
    """What `subprocess.Popen` is to a process, with stdout and stderr in one file.

    Args:
        target: Called with `args` in the child; both are pickled.
        output: File to which the output is appended; by default one that `communicate` reads.
        folder: Its working directory; by default the current one.
        session: Whether the child starts a new session, and so a new process group.
        changed: Other values for names of `ding.utils.durations`.
        environ: More environment variables.
    """

    def __init__(
        self, target, *args, output=None, folder=None, session=False, changed=None, **environ
    ):
        # Goes with this object.
        self._temporary = tempfile.NamedTemporaryFile() if output is None else None  # noqa: SIM115
        self._output = os.path.abspath(output or self._temporary.name)
        environ = {**os.environ, "PYTHONPATH": CHECKOUT, "DING_CONSOLE": "plain", **environ}
        setting = (str(folder or os.getcwd()), environ, self._output, session, changed or {})
        self._process = forkserver().Process(target=_child, args=(setting, target, args))
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self.returncode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout)
        return self.returncode

    def communicate(self, timeout=None):
        """What was printed, and None."""
        self.wait(timeout)
        return Path(self._output).read_text(), None

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def start_python(script, *args, **options):
    """As `python -c SCRIPT ARGS`; of a script's file if it ends in .py."""
    return Child(_run_python, script, [str(arg) for arg in args], **options)


def run_ranks(script, folder):
    """Run `SCRIPT FOLDER RANK WORLD_SIZE` in two processes; they have to end well."""
    ranks = [start_python(str(script), folder, rank, 2) for rank in range(2)]
    try:
        for rank in ranks:
            output, _ = rank.communicate(120)
            assert rank.returncode == 0, output
    finally:
        for rank in ranks:
            rank.kill()


def start_ding(*args, **options):
    """As `ding ARGS`."""
    return Child(_run_ding, [str(arg) for arg in args], **options)


def _run_python(script, args):
    sys.argv = [script if script.endswith(".py") else "-c", *args]
    if script.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
        runpy.run_path(script, run_name="__main__")
    else:
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(script, "<string>", "exec"), vars(main))


def _run_ding(args):
    sys.argv = ["ding", *args]
    importlib.import_module("ding.entry.cli").main()


def _child(setting, target, args):
    folder, environ, output, session, changed = setting
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    if session:
        os.setsid()
    for name, seconds in changed.items():
        assert hasattr(durations, name), name
        setattr(durations, name, seconds)
    _print_into(output)
    target(*args)


def _print_into(output):
    fd = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number in (1, 2):
        os.dup2(fd, number)
    os.close(fd)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def forked(target, *args, output="output.txt", **kwargs):
    """Start a function in a fork of this process; what it prints goes into a file."""
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_forked_main, args=(target, output, args, kwargs))
    process.start()
    return process


def _forked_main(target, output, args, kwargs):
    _print_into(output)
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

"""A fault of a log file never stops the code that logs."""

import errno
import io
import logging
import os
import resource
import shutil
import sys
from pathlib import Path

import pytest

from ding.utils import log_file
from ding.utils.log_helper import LoggerFactory, PartHandler, set_logs
from ding.utils.run_log import RunLog

pytestmark = pytest.mark.filterwarnings("ignore:cannot write:RuntimeWarning")


@pytest.fixture
def root():
    logger = logging.getLogger()
    before, level = logger.handlers[:], logger.level
    yield logger
    logger.handlers, logger.level = before, level


def no_descriptors():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, most[1]))
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass

    def repair():
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
        for fd in held:
            os.close(fd)

    return repair


def no_folder():
    shutil.rmtree("run")
    return lambda: None


def a_file_for_a_folder():
    shutil.rmtree("run")
    Path("run").touch()
    return lambda: os.remove("run")


def a_full_disk():
    write = log_file.os.write

    def fail(fd, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    log_file.os.write = fail

    def repair():
        log_file.os.write = write

    return repair


FAULTS = [no_folder, a_file_for_a_folder, no_descriptors, a_full_disk]


@pytest.mark.parametrize("fault", FAULTS)
def test_the_log_of_a_part(fault, root):
    set_logs({}, "run/log/coordinator/output.txt")
    logging.getLogger("ding.first").warning("before")
    repair = fault()
    try:
        logging.getLogger("ding.any").warning("meanwhile")
        logging.getLogger("ding.other").error("and so on", exc_info=ValueError("x"))
    finally:
        repair()
    logging.getLogger("ding.any").warning("afterwards")
    assert "afterwards" in Path("run/log/coordinator/output.txt").read_text()


@pytest.mark.parametrize("fault", FAULTS)
def test_text_logs_and_the_run_log(fault):
    text = LoggerFactory.create_logger("run/log/learner", "learner")
    log = RunLog("run")
    text.warning("before")
    repair = fault()
    try:
        text.warning("meanwhile")
        log.episode("collector", 0, 1.0, 2, 3, 4)
        log.writer.add_scalar("a/b", 1.0, 2)
        log.note(best_return=3.0)
        log.flush()
    finally:
        repair()
    text.warning("afterwards")
    log.finish("finished", "done")
    assert "afterwards" in Path("run/log/learner/learner_logger.txt").read_text()


@pytest.mark.parametrize("stream", [None, "closed", "full"])
def test_a_terminal_that_is_gone(stream, root, monkeypatch):
    gone = None if stream is None else io.StringIO()
    if stream == "closed":
        gone.close()
    elif stream == "full":
        monkeypatch.setattr(gone, "write", lambda text: (_ for _ in ()).throw(OSError(28, "full")))
    text = LoggerFactory.create_logger("log", "some")
    root.handlers = []
    set_logs({})
    monkeypatch.setattr(sys, "stdout", gone)
    monkeypatch.setattr(sys, "stderr", gone)
    text.error("a lost line")
    logging.getLogger("ding").error("nor this")
    assert "a lost line" in Path("log/some_logger.txt").read_text()


def test_of_lines_that_repeat_some_are_written(root):
    set_logs({}, "run/log/output.txt")
    for number in range(288):
        logging.getLogger("ding").warning("no weights for task collector_%d", number)
    lines = Path("run/log/output.txt").read_text().splitlines()
    assert len(lines) == 10
    assert lines[-1].endswith("no weights for task collector_255 (256 lines like it)")


def test_a_part_s_log_is_one_handler(root):
    for name in ("a", "b", "c"):
        set_logs({}, f"run/{name}.txt")
    # An earlier part of this process may have had one, too.
    assert sum(isinstance(handler, PartHandler) for handler in root.handlers) == 1

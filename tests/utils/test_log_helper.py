import copy
import io
import logging
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from ding.utils.log_helper import LoggerFactory, TBLoggerFactory, build_logger, pretty_print
from ding.utils.log_writer import run_folder


def test_what_is_asked_for_is_made(tmp_path):
    path = str(tmp_path / "run/log/part")
    logger, writer = build_logger(path, "part")
    logger.info("hello %d", 1)
    writer.add_scalar("a", 1.0, 1)
    writer.close()
    assert "INFO    hello 1" in (tmp_path / "run/log/part/part_logger.txt").read_text()
    assert (tmp_path / "run/metrics.jsonl").exists()
    assert list((tmp_path / "run/log/part").glob("events.out.tfevents.*"))
    assert build_logger(path, "part", need_tb=False)[1] is None
    assert build_logger(path, "part", need_text=False)[0] is None


def test_nothing_is_written_before_there_is_something_to_say(tmp_path):
    logger, writer = build_logger(str(tmp_path / "log"))
    writer.close()
    assert not (tmp_path / "log").exists()
    logger.info("x")
    assert (tmp_path / "log/default_logger.txt").exists()


def test_lines_are_written_and_printed_once(tmp_path, capsys, caplog):
    for _ in range(3):
        logger, _ = build_logger(str(tmp_path), "part", need_tb=False)
    logger.info("once")
    assert (tmp_path / "part_logger.txt").read_text().count("once") == 1
    assert capsys.readouterr().out.count("once") == 1
    assert not caplog.records


def test_loggers_of_one_name_in_two_runs_do_not_meet(tmp_path):
    first, _ = build_logger(str(tmp_path / "a"), "part", need_tb=False)
    second, _ = build_logger(str(tmp_path / "b"), "part", need_tb=False)
    first.info("first")
    second.info("second")
    assert "second" not in (tmp_path / "a/part_logger.txt").read_text()


@pytest.mark.parametrize("level", [logging.WARNING, "WARNING"])
def test_the_level_is_kept(tmp_path, level):
    logger, _ = build_logger(str(tmp_path), "part", need_tb=False, text_level=level)
    logger.info("low")
    logger.warning("high")
    text = (tmp_path / "part_logger.txt").read_text()
    assert "low" not in text
    assert "high" in text


def test_a_log_call_never_raises(tmp_path, capsys, monkeypatch):
    logger, _ = build_logger(str(tmp_path), "part", need_tb=False)
    logger.info("%d", "no number")
    assert "Traceback" in capsys.readouterr().err

    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    logger.info("kept")
    assert "kept" in (tmp_path / "part_logger.txt").read_text()


def test_loggers_can_be_copied_and_sent(tmp_path):
    logger = LoggerFactory.create_logger(str(tmp_path), "part")
    assert copy.deepcopy(logger) is logger
    assert pickle.loads(pickle.dumps(logger)).file == logger.file


def test_closing_a_shared_writer_takes_nothing_from_the_others(tmp_path):
    first = TBLoggerFactory.create_logger(str(tmp_path))
    second = TBLoggerFactory.create_logger(str(tmp_path))
    assert first is second
    first.add_scalar("a", 1.0, 1)
    first.close()
    second.add_scalar("a", 2.0, 2)
    second.close()
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2
    assert len(list(tmp_path.glob("events*"))) == 1


@pytest.mark.slow
def test_a_writer_without_references_still_writes(tmp_path):
    code = (
        "from ding.utils.log_helper import build_logger\n"
        "build_logger('log')[1].add_scalar('a', 1.0, 1)\n"
        "import gc; gc.collect()\n"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    env = {**os.environ, "PYTHONPATH": root}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True, timeout=50)
    assert (tmp_path / "log/metrics.jsonl").exists()


def test_the_run_folder_is_found_from_a_log_folder(tmp_path):
    assert run_folder("run/log/collector") == str(tmp_path / "run")
    assert run_folder("somewhere/else") == str(tmp_path / "somewhere/else")


def test_tables():
    variables = {"a": 1, "b": 2.5, "c": "x", "d": np.float32(4), "e": None, "f": np.zeros(1)}
    table = LoggerFactory.get_tabulate_vars(variables)
    assert len({len(line) for line in table.splitlines()}) == 1
    assert "| b    | 2.500000 |" in table
    across = LoggerFactory.get_tabulate_vars_hor(variables)
    assert len(across.splitlines()) == 10
    assert all(name in across for name in variables)
    assert LoggerFactory.get_tabulate_vars_hor({}) == ""


def test_pretty_print(capsys):
    text = pretty_print({"a": {"b": 1.5, "c": {}}, "d": np.float32(2)})
    assert text == "a:\n  b: 1.500000\n  c: {}\nd: 2.000000\n"
    assert text in capsys.readouterr().out
    pretty_print({"a": 1}, direct_print=False)
    assert capsys.readouterr().out == ""

import io
import logging
import os
import subprocess
import sys

import pytest

from ding.utils import console as console_module
from ding.utils.console import Console, active_console
from ding.utils.log_helper import build_logger
from ding.utils.progress import Progress, clock


@pytest.fixture
def now(monkeypatch):
    """A clock that stands still unless a test moves it."""
    value = [1000.0]
    monkeypatch.setattr(console_module.time, "monotonic", lambda: value[0])
    return value


def test_plain_lines_come_every_few_seconds(now, capsys):
    with Console("run", max_env_step=1000, mode="plain") as console:
        for step in range(0, 200, 10):
            now[0] += 1.0
            console.update(envstep=step, train_iter=step // 2)
        lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "[run] 0:06 5% to 1,000 env steps, 1:35 left" in lines[1]
    assert "10 env steps/s" in lines[1]
    assert "5 updates/s" in lines[1]


def test_an_evaluation_gets_a_line_but_not_one_each(now, capsys):
    with Console("run", stop_value=100, mode="plain") as console:
        for value in range(10):
            now[0] += 0.2
            console.update(eval_return=value)
        lines = capsys.readouterr().out.splitlines()
    assert 1 <= len(lines) <= 2
    assert "eval 0 (best 0)" in lines[0]


def test_a_line_is_not_repeated_at_the_end(now, capsys):
    with Console("run", max_env_step=1000, mode="plain") as console:
        now[0] += 60.0
        console.update(envstep=1000, train_iter=500, eval_return=1.0)
        now[0] += 4.0  # in which the run saves
    (line,) = capsys.readouterr().out.splitlines()
    assert "100% to 1,000 env steps" in line


def test_all_facts_are_shown_at_the_end(now, capsys):
    with Console("run", mode="plain") as console:
        console.update(
            envstep=12_345,
            train_iter=7,
            episode_return=1.25,
            eval_return=3.0,
            epsilon=0.5,
            buffer_fill=(50, 100),
            note="waits",
        )
        console.log("a line")
        console.close("bye")
    out = capsys.readouterr().out
    assert "a line" in out.splitlines()
    assert out.splitlines()[-1] == "bye"
    for fact in (
        "return 1.25",
        "eval 3 (best 3)",
        "eps 0.500",
        "buffer 50/100 (50%)",
        "step 12,345",
        "iter 7",
        "waits",
    ):
        assert fact in out


def test_quiet_shows_nothing(capsys):
    with Console("run", mode="quiet") as console:
        console.update(envstep=1, eval_return=1.0)
        console.log("a line")
        console.close("bye")
    assert capsys.readouterr().out == ""


def test_the_mode_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv("DING_CONSOLE", raising=False)
    assert Console("run").mode == "plain"
    monkeypatch.setenv("DING_CONSOLE", "quiet")
    assert Console("run").mode == "quiet"
    assert Console("run", mode="plain").mode == "plain"
    monkeypatch.setenv("DING_CONSOLE", "loud")
    with pytest.raises(ValueError, match="DING_CONSOLE is 'loud', expected one of auto"):
        Console("run")


def test_a_terminal_that_goes_away_does_not_end_the_run(monkeypatch):
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    with Console("run", mode="plain") as console:
        monkeypatch.setattr(sys, "stdout", Gone())
        console.log("a line")
        console.update(envstep=1, eval_return=1.0)
        console.close("bye")


def test_close_may_be_called_twice_and_frees_the_terminal():
    console = Console("run", mode="quiet")
    with console:
        assert active_console() is console
        console.close()
        assert active_console() is None
    console.close()


def test_component_logs_stay_off_an_open_console(capsys, tmp_path):
    logger, _ = build_logger(str(tmp_path), "part", need_tb=False)
    logger.info("before")
    with Console("run", mode="plain") as console:
        logger.info("table")
        logger.warning("careful")
        console.close()
    with Console("run", mode="quiet"):
        logger.error("broken")
    captured = capsys.readouterr()
    assert "before" in captured.out
    assert "table" not in captured.out
    assert "careful" in captured.out
    assert "broken" in captured.err
    assert len((tmp_path / "part_logger.txt").read_text().splitlines()) == 4
    assert logger.level == logging.INFO


@pytest.mark.parametrize("columns", [10, 120])
def test_live_on_a_terminal_restores_the_cursor(tmp_path, columns):
    pty = pytest.importorskip("pty")
    code = (
        "import time\n"
        "from ding.utils.console import Console\n"
        "with Console('title', stop_value=10) as console:\n"
        "    assert console.mode == 'live'\n"
        "    for i in range(12):\n"
        "        console.update(envstep=i * 1000, eval_return=i, buffer_fill=(i, 12),\n"
        "                       extra=['7 samples/s'], lines=['collector0    running'])\n"
        "        time.sleep(0.03)\n"
        "    console.log('above')\n"
        "    raise RuntimeError('boom')\n"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    env = {**os.environ, "PYTHONPATH": root, "TERM": "xterm", "COLUMNS": str(columns)}
    env.pop("DING_CONSOLE", None)
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    chunks = []
    try:
        while chunk := os.read(master, 65536):
            chunks.append(chunk)
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(master)
    assert process.wait(20) == 1
    text = b"".join(chunks).decode()
    assert "\x1b[?25l" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert "above" in text
    assert "boom" in text[text.rindex("\x1b[?25h") :]
    if columns == 120:
        assert "title" in text
        assert "100% to return 10" in text
        assert "7 samples/s" in text
        assert "collector0    running" in text


def test_progress_counts_from_the_first_evaluation_and_never_back():
    progress = Progress(stop_value=-150)
    for value, time in ((-1150, 0), (-650, 10), (-900, 20)):
        progress.see_eval(value, time)
    goal = progress.nearest()
    assert goal.share == 0.5
    assert goal.seconds_left(20) == 20
    assert progress.best_return == -650


def test_a_goal_that_is_nearly_reached_is_not_shown_as_reached():
    progress = Progress(stop_value=475)
    progress.see_eval(0, 0)
    progress.see_eval(473.6, 1)
    assert " 99% to return 475" in progress.way()
    progress.see_eval(475, 2)
    assert " 100% to return 475" in progress.way()


def test_progress_follows_the_nearest_end():
    progress = Progress(stop_value=100, max_env_step=1000, max_train_iter=10**10)
    progress.mark(0)
    progress.see_eval(0, 0)
    progress.envstep = 900
    progress.mark(1)
    assert progress.nearest().label == "1,000 env steps"
    progress.see_eval(95, 1)
    assert progress.nearest().label == "return 100"


def test_a_resumed_run_is_paced_from_where_it_began():
    progress = Progress(max_env_step=1000, envstep=500)
    progress.mark(0)
    progress.envstep = 600
    progress.mark(10)
    assert progress.nearest().seconds_left(10) == pytest.approx(40)


@pytest.mark.parametrize("first", [float("nan"), 200.0])
def test_odd_first_evaluations(first):
    progress = Progress(stop_value=100)
    progress.see_eval(first, 0)
    progress.mark(0)
    assert progress.nearest().share in (0.0, 1.0)
    assert progress.way()
    assert progress.facts()


def test_no_goal_is_fine():
    assert Progress(stop_value=float("inf"), max_env_step=10**10).nearest() is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "0:05"), (3700, "1:01:40"), (86_400 * 3, "3 days")]
)
def test_clock(seconds, text):
    assert clock(seconds) == text

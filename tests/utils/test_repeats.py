"""Lines that come again and again."""

import time

import pytest

from ding.utils.log_helper import SHOWN, RepeatFilter


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("form", ["line {letters}", "collector{n} is lost"])
def test_lines_that_differ_are_all_shown(form):
    repeats = RepeatFilter()
    lines = [form.format(n=n, letters="x" * n) for n in range(99)]
    assert list(map(repeats.passed, lines)) == lines


def test_of_lines_like_others_each_that_doubles_their_number_is_shown():
    repeats = RepeatFilter()
    lines = [f"collector0 failed (task collector_{n}_{n:08x}): {n / 7} s" for n in range(290)]
    shown = list(filter(None, map(repeats.passed, lines)))
    assert shown[:SHOWN] == lines[:SHOWN]
    numbers = [4, 8, 16, 32, 64, 128, 256]
    assert shown[SHOWN:] == [f"{lines[n - 1]} ({n} lines like it)" for n in numbers]


def test_after_a_quiet_time_lines_are_shown_again(clock):
    repeats = RepeatFilter(span=10)
    for n in range(SHOWN + 3):
        clock[0] += 9
        repeats.passed(f"line {n}")
    assert repeats.passed("line 98") is None
    clock[0] += 11
    assert repeats.passed("line 99") == "line 99"


def test_memory_is_bounded():
    repeats = RepeatFilter()
    for n in range(2500):
        for _ in range(SHOWN + 2):
            repeats.passed("x" * n)
    assert repeats.passed("") == ""  # forgotten
    assert repeats.passed("x" * 2499) is None
    assert len(repeats._kinds) == 500

"""Lines that come again and again."""

import time

from ding.utils.log_helper import SHOWN, RepeatCounter


def counter(monkeypatch, span=10.0):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    lines = []
    return RepeatCounter(lines.append, span), lines, clock


def test_lines_that_differ_are_all_shown(monkeypatch):
    lines, (many, shown, _) = [f"line {'x' * n}" for n in range(99)], counter(monkeypatch)
    for line in lines:
        many.add(line)
    many.flush(at_end=True)
    assert shown == lines


def test_lines_like_others_are_counted(monkeypatch):
    many, shown, _ = counter(monkeypatch)
    lines = [f"collector0 failed (task collector_{n}_{n:08x}): {n / 7} s" for n in range(290)]
    for line in lines:
        many.add(line)
    assert shown == lines[:SHOWN]
    many.flush()
    assert shown == lines[:SHOWN]
    many.flush(at_end=True)
    assert shown[SHOWN:] == [f"… {290 - SHOWN} more like it: {lines[-1]}"]
    many.flush(at_end=True)
    assert len(shown) == SHOWN + 1


def test_those_of_other_workers_are_others(monkeypatch):
    many, shown, _ = counter(monkeypatch)
    for n in range(50):
        many.add(f"collector{n} is lost")
    assert len(shown) == 50


def test_a_flood_that_goes_on_is_a_line_for_each_span(monkeypatch):
    many, shown, clock = counter(monkeypatch)
    for n in range(1000):
        clock[0] = n / 10
        many.add(f"failed {n} times")
    many.flush(at_end=True)
    assert len(shown) == SHOWN + 10
    counts = [int(line.split()[1]) for line in shown[SHOWN:]]
    assert sum(counts) == 1000 - SHOWN


def test_after_a_quiet_time_lines_are_shown_again(monkeypatch):
    many, shown, clock = counter(monkeypatch)
    for n in range(SHOWN + 2):
        many.add(f"line {n}")
    clock[0] = 11
    many.flush()
    assert shown[-1] == f"… 2 more like it: line {SHOWN + 1}"
    clock[0] = 30
    many.add("line 99")
    assert shown[-1] == "line 99"


def test_memory_is_bounded(monkeypatch):
    many, shown, _ = counter(monkeypatch)
    for n in range(2500):
        for _ in range(SHOWN + 1):
            many.add("x" * n)
    kept = (SHOWN + 1) * 2500 - len(shown)  # kinds whose repeats are still counted
    assert kept == 500
    many.flush(at_end=True)
    assert len(shown) == (SHOWN + 1) * 2500

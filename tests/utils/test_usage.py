"""What processes use of the machine."""

import os
import subprocess
import sys
import time

import pytest

from ding.utils import durations
from ding.utils.usage import UsageMeter, reported_usage

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
_BUSY = "held = b'x' * (100 << 20); print(flush=True)\nwhile True: pass"


def test_children_count_unless_they_report_themselves(monkeypatch):
    monkeypatch.setattr(durations, "USAGE_SPAN", 0.0)
    with subprocess.Popen([sys.executable, "-c", _BUSY], stdout=subprocess.PIPE) as child:
        try:
            child.stdout.readline()
            own, family = UsageMeter(children=False), UsageMeter()
            time.sleep(0.5)
            own, family = own.read(), family.read()
        finally:
            child.kill()
    assert family["cpu_percent"] > own["cpu_percent"] + 5
    assert family["memory_mb"] > own["memory_mb"] + 100


def test_figures_are_measured_once_in_a_span():
    meter = UsageMeter()
    assert meter.read() is None
    assert meter.latest() == {}


def test_report_names_the_process():
    assert reported_usage()["process"].endswith(f":{os.getpid()}")

"""Damaged files of every kind are refused, or do no harm."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("count", [150, pytest.param(2000, marks=pytest.mark.slow)])
def test_no_damaged_file_is_read_as_something_else(count):
    command = [sys.executable, str(ROOT / "benchmarks" / "flips.py"), "--count", str(count)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=170)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{count} of {count} damaged files were handled" in run.stdout

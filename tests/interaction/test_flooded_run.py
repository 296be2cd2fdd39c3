"""A coordinator and its workers keep working while strangers flood them."""

import os
import subprocess
import sys

import pytest

from tests.interaction.peers import ROOT


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_run_survives_floods(count):
    command = [sys.executable, str(ROOT / "benchmarks" / "floods.py"), "--count", str(count)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=170)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"survived {count:,} of {count:,}" in run.stdout

"""Damaged files of every kind are refused, or do no harm."""

from pathlib import Path

import pytest

from tests.children import start_python

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "flips.py"


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("count", [150, pytest.param(2000, marks=pytest.mark.slow)])
def test_no_damaged_file_is_read_as_something_else(count):
    child = start_python(str(SCRIPT), "--count", count)
    output, _ = child.communicate(170)
    assert child.returncode == 0, output
    assert f"{count} of {count} damaged files were handled" in output

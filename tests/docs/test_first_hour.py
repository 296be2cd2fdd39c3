"""The first hour works as a newcomer pastes it: file after file, command after command."""

import glob
import re
import shlex
from pathlib import Path

import pytest

from tests.children import start_ding, start_python
from tests.docs.fences import FIRST_HOUR, ROOT

#: Set-up of the shell, which the tests have.
SET_UP = ("python3 -m venv", "source", "pip")
START = {"ding": start_ding, "python": start_python}


def pasted(line):
    """Output of a command of the page."""
    command, *given = shlex.split(line)
    args = [name for arg in given for name in (sorted(glob.glob(arg)) or [arg])]
    child = START[command](*args)
    output, _ = child.communicate(timeout=120)
    assert child.returncode == 0, output
    return output


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_block_in_its_order():
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    text = (ROOT / FIRST_HOUR).read_text()
    outputs = {}
    for language, block in re.findall(r"```(python|sh)\n(.*?)```", text, re.S):
        if language == "python":
            before = text[: text.index(block)].rsplit("```python", 1)[0]
            name = re.findall(r"`(\w+\.py)`\s*$", before)[0]
            Path(name).write_text(block)
            continue
        for line in block.splitlines():
            command = line.split("  #")[0].strip()
            if not command.startswith(SET_UP):
                outputs[command] = pasted(command)
    trained = [line for line in outputs if "-c line_" in line and "--train-iter" not in line]
    assert len(trained) == 4
    for line in trained:
        assert outputs[line].count("converged: mean return") == (3 if "0-2" in line else 1), line
    assert "policy.model.obs_shape = 2" in outputs["ding -m serial -c line_dqn.py -s 0"]
    resumed = next(output for line, output in outputs.items() if "--resume" in line)
    assert "resumed at iteration 200" in resumed
    assert Path("returns.png").stat().st_size > 10_000
    assert float(outputs["python act.py"].split()[-1]) > 0.5

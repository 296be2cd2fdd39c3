"""A user's typed project: what checkers say of it, and that it runs.

The modules next to this file are the project: an environment, a policy, a buffer, a callback, and a
training loop that uses them.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ding

HERE = Path(__file__).parent


@pytest.fixture
def project(tmp_path):
    for module in HERE.glob("*.py"):
        if not module.name.startswith("test_"):
            shutil.copy(module, tmp_path)
    return tmp_path


def check(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_mypy_is_content(project):
    settings = "[mypy]\nstrict = true\n[mypy-easydict]\nignore_missing_imports = true\n"
    (project / "mypy.ini").write_text(settings)
    check([sys.executable, "-m", "mypy", "."], project)


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_pyright_is_content(project):
    pytest.importorskip("basedpyright", reason="pip install basedpyright")
    settings = {
        "typeCheckingMode": "strict",
        "reportMissingTypeStubs": False,  # easydict has none
    }
    (project / "pyrightconfig.json").write_text(json.dumps(settings))
    python = ["--pythonpath", sys.executable]
    check([sys.executable, "-m", "basedpyright", "--level", "error", *python], project)


def test_it_trains(project, monkeypatch):
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(project))
    import train

    assert train.loop(3) >= 0.0
    assert train.run() in ("converged", "finished")
    assert train.act("typed_run") in (0, 1)


def test_the_package_lists_what_it_offers():
    assert {"RunCallback", "load", "plot"} <= set(dir(ding))

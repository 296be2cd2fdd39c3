"""A user's typed project: what checkers say of it, and that it runs.

The modules next to this file are the project: an environment, a policy, a buffer, a callback, and a
training loop that uses them.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ding

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def from_wheel(tmp_path_factory):
    """Python of an environment with the wheel, and everything else from the one of the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    source, root = folder / "source", HERE.parents[1]
    shutil.copytree(root / "ding", source / "ding", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, source)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    build = ["--no-build-isolation", "--no-deps", "--no-index"]
    check([*pip, "wheel", *build, "-w", str(folder), "."], source)
    check([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], folder)
    python = str(folder / "venv/bin/python")
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    ours, theirs = (check([one, "-c", where], folder).strip() for one in (python, sys.executable))
    (wheel,) = map(str, folder.glob("*.whl"))
    check([*pip, "install", "--no-deps", "--no-index", "--target", ours, wheel], folder)
    (Path(ours) / "dependencies.pth").write_text(f"{theirs}\n")
    found = check([python, "-c", "import ding; print(ding.__file__)"], folder)
    assert found.startswith(ours)
    return python


@pytest.fixture
def pythons(from_wheel):
    """That of the tests, which has the package's source, and that with the wheel."""
    return sys.executable, from_wheel


@pytest.fixture
def project(tmp_path):
    for module in HERE.glob("*.py"):
        if not module.name.startswith("test_"):
            shutil.copy(module, tmp_path)
    return tmp_path


def check(command, folder):
    env = dict(os.environ)
    if command[0] != sys.executable:
        env.pop("PYTHONPATH", None)  # it may name the source, of which the wheel is the copy
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_mypy_is_content(project, pythons):
    settings = "[mypy]\nstrict = true\n[mypy-easydict]\nignore_missing_imports = true\n"
    (project / "mypy.ini").write_text(settings)
    for python in pythons:  # the second finds torch's types in the first one's cache
        check([python, "-m", "mypy", "."], project)


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_pyright_is_content(project, pythons):
    pytest.importorskip("basedpyright", reason="pip install basedpyright")
    settings = {
        "typeCheckingMode": "strict",
        "reportMissingTypeStubs": False,  # easydict has none
    }
    (project / "pyrightconfig.json").write_text(json.dumps(settings))
    for python in pythons:
        check([python, "-m", "basedpyright", "--level", "error", "--pythonpath", python], project)


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_it_trains_from_the_wheel(project, from_wheel):
    assert "arrived" in check(
        [from_wheel, "-c", "import train; train.run(); print('arrived', train.act('typed_run'))"],
        project,
    )


def test_it_trains(project, monkeypatch):
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(project))
    import train

    assert train.loop(3) >= 0.0
    assert train.run() in ("converged", "finished")
    assert train.act("typed_run") in (0, 1)


def test_the_package_lists_what_it_offers():
    assert {"RunCallback", "load", "plot"} <= set(dir(ding))

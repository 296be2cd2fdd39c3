"""DI-engine has the same import name: no file of it may be mixed with ours."""

import os
import subprocess
import sys
import textwrap
import time

import pytest

import ding
from ding._alone import refuse_di_engine

FOLDER = os.path.dirname(ding.__file__)
OURS = ["ding/__init__.py,sha256=x,1", "ding/worker/__init__.py,,"]
EDITABLE = ["__editable__.DI_engine-0.5.3.pth,,", "DI_engine-0.5.3.dist-info/METADATA,,"]


def install(site, name="DI_engine-0.5.3.dist-info", files=OURS, top="ding\n"):
    record = site / name
    record.mkdir(parents=True)
    metadata = "METADATA" if name.endswith("dist-info") else "PKG-INFO"
    (record / metadata).write_text("Metadata-Version: 2.1\nName: DI-engine\nVersion: 0.5.3\n")
    if files is not None:
        (record / "RECORD").write_text("\n".join(files) + "\n")
    if top is not None:
        (record / "top_level.txt").write_text(top)
    return str(site / "ding")


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(name="di_engine-0.6.dist-info"),
        dict(files=None),
        dict(files=None, top=None),
        dict(name="DI_engine-0.4.9-py3.8.egg-info", files=None),
        dict(name="DI_engine.egg-info", files=None),
    ],
)
def test_files_of_both_in_one_folder_are_refused(tmp_path, options):
    package = install(tmp_path, **options)
    os.mkdir(package)
    (tmp_path / "ding" / "__init__.py").touch()  # newer Pythons list files that exist
    with pytest.raises(ImportError, match=r"DI-engine 0\.5\.3 .*fresh environment: python -m venv"):
        refuse_di_engine(package)


@pytest.mark.parametrize(
    "options",
    [
        dict(files=EDITABLE),
        dict(files=None, top="other\n"),
        dict(name="DI_engine_plugin-1.0.dist-info"),
        dict(name="DI_engine-0.5.3.txt"),
    ],
)
def test_what_is_not_mixed_passes(tmp_path, options):
    refuse_di_engine(install(tmp_path, **options))


def test_another_folder_passes(tmp_path):
    install(tmp_path / "elsewhere")
    refuse_di_engine(str(tmp_path / "site" / "ding"))
    refuse_di_engine(str(tmp_path / "elsewhere" / "nested" / "ding"))
    refuse_di_engine(str(tmp_path / "elsewhere" / "archive.zip" / "ding"))


def run(site, code):
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )


def test_importing_says_the_cure(tmp_path):
    install(tmp_path)
    (tmp_path / "ding").symlink_to(FOLDER)
    done = run(tmp_path, "import ding")
    assert done.returncode
    assert "fresh environment" in done.stderr.splitlines()[-1]


def test_di_engine_installed_over_ours(tmp_path):
    """Its ``ding/__init__.py`` is there, and ours is not."""
    install(tmp_path)
    (tmp_path / "ding").mkdir()
    for name in os.listdir(FOLDER):
        if name not in ("__init__.py", "__pycache__"):
            (tmp_path / "ding" / name).symlink_to(os.path.join(FOLDER, name))
    (tmp_path / "ding" / "__init__.py").write_text("__version__ = '0.5.3'\n")
    code = """
        import importlib
        for name in ("ding.entry.cli", "ding.board.server", "ding.data.columns"):
            try:
                importlib.import_module(name)
            except ImportError as error:
                print(name, error)
    """
    lines = run(tmp_path, textwrap.dedent(code)).stdout.splitlines()
    assert len(lines) == 3
    assert all("fresh environment" in line for line in lines)


def test_looking_costs_nothing(tmp_path):
    for number in range(1000):
        (tmp_path / f"package_{number}.dist-info").mkdir()
    started = time.process_time()
    refuse_di_engine(str(tmp_path / "ding"))
    assert time.process_time() - started < 0.05
    assert (
        "importlib.metadata"
        not in run(os.path.dirname(FOLDER), "import sys, ding; print(*sys.modules)").stdout
    )

"""An installed package has the page's files, and the zoo."""

import subprocess
import sys
from pathlib import Path

import ding

ROOT = Path(ding.__file__).parent.parent
_SCRIPT = """
import json, distutils.core, setuptools
build = distutils.core.run_setup("setup.py", stop_after="init").get_command_obj("build_py")
build.ensure_finalized()
print(json.dumps([name for _, _, _, names in build.data_files for name in names]))
"""


def test_files_are_package_data():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "import setuptools\n" + _SCRIPT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for folder in (ROOT / "ding" / "board" / "static", ROOT / "ding" / "zoo"):
        for path in folder.iterdir():
            assert f"{folder.name}/{path.name}" in done.stdout


def test_the_page_needs_no_torch():
    modules = "ding.entry.cli, ding.board.server, ding.entry.run.status, sys"
    script = f"import {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0


def test_a_wheel_has_the_configs(tmp_path):
    build = f"setup.py -q build --build-base {tmp_path} build_py --build-lib {tmp_path / 'lib'}"
    subprocess.run([sys.executable, "-W", "ignore", *build.split()], cwd=ROOT, check=True)
    built = {path.name for path in (tmp_path / "lib" / "ding" / "configs").glob("*/*.py")}
    assert built == {path.name for path in (ROOT / "configs").glob("*/*_config.py")}

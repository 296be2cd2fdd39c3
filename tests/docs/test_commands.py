"""Every command of README, CONTRIBUTING and docs/ works unchanged, apart from shortening."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from ding.entry.cli import main as ding
from tests.children import start_ding
from tests.docs.fences import FIRST_HOUR, ROOT, commands, inline_commands

#: What is added to a command so that it ends soon.
SHORTER = {
    "-m parallel": ["--train-iter", "20"],
    "-m serial": ["--train-iter", "1"],
    "ding train": ["--train-iter", "1"],
    "ding resume": ["--train-iter", "1"],
    "ding -c my_config.py": ["--train-iter", "1"],
    "ding eval zoo:cartpole_dqn": ["--episodes", "1"],
}
COMMANDS = [(page, tuple(args)) for page, args in commands()]
DING = [args for page, args in COMMANDS if args[0] == "ding" and page != FIRST_HOUR]
# Processes, which are tried together below.
TOGETHER = ("-m parallel", "-m dist", "status")
# They take until Ctrl-C, or hours, or need a run; tests/board, tests/entry/test_sweep.py and
# tests/parallel/test_joining.py try them.
ENDLESS = ("ding board", "ding sweep", "ding worker")
ALONE = sorted(
    {args for args in DING if not any(one in " ".join(args) for one in TOGETHER + ENDLESS)}
)


def shortened(args):
    line = " ".join(args)
    options = next((more for key, more in SHORTER.items() if key in line), [])
    return [*args[1:], *options]


def run(*options):
    result = CliRunner().invoke(ding, list(options), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A clone after ``make train``, with config files of the user's own."""
    folder = tmp_path_factory.mktemp("clone")
    os.symlink(ROOT / "configs", folder / "configs")
    shutil.copy(ROOT / "configs/cartpole/cartpole_dqn_config.py", folder / "my_config.py")
    parallel = (ROOT / "configs/cartpole/parallel/cartpole_dqn_config.py").read_text()
    # Reached at the first evaluation.
    parallel = re.sub(r"stop_value=\d+", "stop_value=1", parallel)
    (folder / "parallel_config.py").write_text(parallel)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run("-m", "serial", "-c", "configs/cartpole/cartpole_dqn_config.py", "--train-iter", "1")
    return folder


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "plain")
    monkeypatch.setattr(sys, "path", list(sys.path))


def _slow_if_in_processes(args):
    marks = [pytest.mark.slow] if "--jobs" in args else []
    return pytest.param(args, id=" ".join(args), marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize("args", [_slow_if_in_processes(args) for args in ALONE])
def test_command(args, workplace, monkeypatch):
    if args[1] == "plot":
        pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    monkeypatch.chdir(workplace)
    run(*shortened(args))
    if "--replay-path" in args:
        assert os.listdir(args[args.index("--replay-path") + 1])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_commands_of_parallel_mode(workplace):
    lines = sorted({args for args in DING if "parallel" in args or args[1] == "status"})
    lines.sort(key=lambda args: args[1] == "status")
    assert lines[-1] == ("ding", "status", "exp/cartpole_dqn_parallel")
    for args in lines:
        process = start_ding(*shortened(args), folder=workplace)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output
    assert "finished" in output


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_commands_of_dist_mode(workplace):
    lines = [args for args in DING if "dist" in args]
    config, *parts = lines
    # Another example follows, of hosts that do not exist here.
    parts = parts[: next((i for i, args in enumerate(parts) if "config" in args), None)]
    assert len(parts) > 1
    process = start_ding(*config[1:], folder=workplace)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    exp = re.search(r"-c (\S+)/total_config.py", output)[1]
    processes = []
    for args in parts:
        part = [word.replace("<exp>", exp) for word in args[1:]]
        processes.append(start_ding(*part, folder=workplace))
        deadline = time.monotonic() + 60
        while len(processes) == 1 and not (workplace / exp / "coordinator.json").exists():
            assert processes[0].poll() is None, processes[0].communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.1)
    for process in processes:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output


@pytest.mark.parametrize("args", sorted({tuple(w) for _, w in inline_commands()}), ids=" ".join)
def test_command_within_the_text(args, workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    exp = "exp/cartpole_dqn"
    ding.make_context("ding", [word.replace("<exp>", exp) for word in args[1:]])


def test_every_other_command_is_of_a_known_tool():
    others = {args[0] for _, args in COMMANDS if args[0] != "ding"}
    assert others <= {"make", "pip", "tensorboard", "source", "python3", "python"}


@pytest.mark.parametrize("args", sorted({w for _, w in COMMANDS if w[0] == "make"}), ids=" ".join)
def test_make_target_exists(args):
    done = subprocess.run(["make", "-n", *args[1:]], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_extras_that_are_to_be_installed_exist():
    known = set(re.findall(r'^        "(\w+)": \[', (ROOT / "setup.py").read_text(), re.M))
    pip = [args for _, args in COMMANDS if args[:2] == ("pip", "install")]
    assert pip
    for args in pip:
        options = dict(itertools.pairwise(args))
        assert (ROOT / options["-c"]).exists()
        (extras,) = re.findall(r"^\.(?:\[(.*)\])?$", options["-e"])
        assert set(filter(None, extras.split(","))) <= known
    assert any("tensorboard" in args[-1] for args in pip), "before the line with tensorboard"

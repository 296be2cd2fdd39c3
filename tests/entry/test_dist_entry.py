"""The parts of a run, started by hand from one compiled config."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from ding.config.read import read_compiled
from ding.config.save import Source
from ding.entry.dist_entry import (
    dist_add_replicas,
    dist_delete_replicas,
    dist_launch_collector,
    dist_launch_coordinator,
    dist_launch_learner,
    dist_launch_learner_aggregator,
    dist_launch_spawn_learner,
    dist_prepare_config,
    dist_restart_replicas,
    join,
)
from ding.utils import durations, find_free_port, read_file
from ding.utils.errors import ConfigError
from tests.children import descendants, forked, is_alive, start_python, wait_for
from tests.entry.parallel_runs import saved_iteration, small_configs
from tests.worker.engines.harness import documented_engine

pytestmark = pytest.mark.timeout(120)


def write_config(**settings):
    source, names = Source(), ("main_config", "create_config", "system_config")
    parts = [
        f"{name} = {source.of(part, name)}\n"
        for name, part in zip(names, small_configs(**settings))
    ]
    Path("config.py").write_text(source.header() + "".join(parts))
    return "config.py"


def prepare(hosts=(None, None, None), ports=(None, None, None), platform="local", **settings):
    return dist_prepare_config(write_config(**settings), 0, platform, *hosts, *ports)


class Parts:
    """Parts of a run in separate processes, with a file for the output of each."""

    def __init__(self):
        self.processes = {}

    def start(self, name, entry, /, *args, **kwargs):
        self.processes[name] = forked(entry, *args, output=f"{name}.txt", **kwargs)

    def end(self, name, within=60.0):
        """Exit status and last line."""
        self.processes[name].join(within)
        text = self.text(name)
        assert not self.processes[name].is_alive(), text
        return self.processes[name].exitcode, text.splitlines()[-1]

    def start_all(self, path):
        self.start("learner", dist_launch_learner, path, 0, None)
        self.start("collector", dist_launch_collector, path, 0, None)
        self.start("coordinator", dist_launch_coordinator, path, 0, None, True)

    def text(self, name):
        path = Path(f"{name}.txt")
        return path.read_text() if path.exists() else ""


@pytest.fixture
def parts():
    parts = Parts()
    yield parts
    for process in parts.processes.values():
        below = descendants(process.pid)
        process.kill()
        process.join()
        for pid in filter(is_alive, below):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_parts_in_any_order(parts, capsys):
    path = prepare()
    assert path == "run/total_config.py"
    printed = capsys.readouterr().out
    assert f"ding -m dist -c {path} -s 0 -M learner --module-name learner0" in printed
    assert oct(os.stat("run/run.key").st_mode)[-3:] == "600"
    parts.start("learner", dist_launch_learner, path, 0, None)
    parts.start("collector", dist_launch_collector, path, 0, None, name="collector0")
    wait_for(lambda: Path("run/run.key").exists())
    parts.start("coordinator", dist_launch_coordinator, path, 0, None, True)
    status, line = parts.end("coordinator")
    assert (status, line[:24]) == (0, "converged: mean return 9"[:24]) or line.startswith(
        "converged"
    )
    for name, shown in (("learner", "learner0"), ("collector", "collector0")):
        status, line = parts.end(name)
        assert status == 0
        assert line.startswith(f"{shown}: converged: mean return")
    left = {path.name for path in Path("run").iterdir()}
    assert not left & {"run.key", "coordinator.json", "data", "policy"}


@pytest.mark.slow
def test_a_killed_coordinator_that_is_started_again_goes_on(parts):
    path = prepare(stop_value=501)
    parts.start_all(path)
    state = Path("run/ckpt/coordinator_state.pth.tar")
    wait_for(lambda: state.exists() and Path("run/metrics.jsonl").exists())
    parts.processes["coordinator"].kill()
    parts.processes["coordinator"].join()
    saved = state.stat().st_mtime_ns
    parts.start("again", dist_launch_coordinator, path, 0, None, True)
    wait_for(lambda: state.stat().st_mtime_ns > saved)
    os.kill(parts.processes["again"].pid, signal.SIGTERM)
    status, line = parts.end("again")
    assert status == 143
    assert line.startswith("interrupted: SIGTERM")
    assert json.loads(Path("run/run.json").read_text())["envstep"] > 0
    for name in ("learner", "collector"):
        assert parts.end(name)[0] == 0


@pytest.mark.slow
def test_a_start_that_fails_takes_nothing_from_the_run_that_was_killed(parts):
    path = prepare(stop_value=501)
    parts.start_all(path)
    state, key = Path("run/ckpt/coordinator_state.pth.tar"), Path("run/run.key")
    wait_for(lambda: state.exists() and any("buffer" in name for name in os.listdir("run/data")))
    parts.processes["coordinator"].kill()
    parts.processes["coordinator"].join()
    secret, saved = key.read_text(), read_file(str(state))["state"]["buffers"]
    chunks = [name for one in saved.values() for name in one["state"]["chunks"]["data_id"]]
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        parts.start("failing", dist_launch_coordinator, path, 0, port, True)
        assert parts.end("failing")[0] == 1
    assert key.read_text() == secret
    assert chunks
    assert set(chunks) <= set(os.listdir("run/data"))
    parts.start("again", dist_launch_coordinator, path, 0, None, True)
    wait_for(lambda: "collectors 1/1 | learners 1/1" in parts.text("again"))
    os.kill(parts.processes["again"].pid, signal.SIGTERM)
    assert parts.end("again")[0] == 143
    for name in ("learner", "collector"):
        assert parts.end(name)[0] == 0, parts.text(name)


@pytest.mark.slow
def test_ctrl_c_to_a_worker(parts, monkeypatch):
    monkeypatch.setattr(durations, "PART_STOP", 30.0)  # a busy machine may still import its parts
    path = prepare(stop_value=501)
    parts.start("collector", dist_launch_collector, path, 0, None)
    wait_for(lambda: Path("run/run.key").exists() and Path("collector.txt").exists())
    parts.processes["collector"].join(1)  # it tries to join
    os.kill(parts.processes["collector"].pid, signal.SIGINT)
    assert parts.end("collector") == (130, "collector0: interrupted: Ctrl-C")


def test_a_port_that_is_taken(parts):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        path = prepare()
        parts.start("coordinator", dist_launch_coordinator, path, 0, port, True)
        status, line = parts.end("coordinator")
    assert status == 1
    assert str(port) in line
    assert "failed: " in parts.text("coordinator")


@pytest.mark.slow
@pytest.mark.parametrize("listed", [False, True])
def test_a_worker_at_another_port_than_the_config_s_joins(parts, listed):
    known, chosen = (find_free_port("127.0.0.1") for _ in range(2))
    path = prepare(ports=(None, known if listed else None, None))
    parts.start("learner", dist_launch_learner, path, 0, chosen)
    parts.start("collector", dist_launch_collector, path, 0, None)
    parts.start("coordinator", dist_launch_coordinator, path, 0, None, True)
    for name in ("coordinator", "learner", "collector"):
        assert parts.end(name)[0] == 0, (name, parts.text(name))


def test_another_key_is_refused(parts, monkeypatch):
    path = prepare(stop_value=501)
    parts.start("coordinator", dist_launch_coordinator, path, 0, None, True)
    wait_for(lambda: Path("run/coordinator.json").exists())
    monkeypatch.setenv("DING_RUN_KEY", "not the key of this run, but as long")
    parts.start("collector", dist_launch_collector, path, 0, None)
    status, line = parts.end("collector")
    assert status == 1
    assert "does not prove that it has the run's key" in line


@pytest.mark.slow
def test_a_learner_of_two_processes(parts):
    path = prepare(learner_gpu_num=2)
    parts.start("aggregator", dist_launch_learner_aggregator, path, 0, None, None)
    parts.start("learner", dist_launch_spawn_learner, path, 0, None)
    parts.start("collector", dist_launch_collector, path, 0, None)
    parts.start("coordinator", dist_launch_coordinator, path, 0, None, True)
    for name in ("coordinator", "aggregator", "learner", "collector"):
        assert parts.end(name)[0] == 0, (name, parts.text(name))


@pytest.mark.slow
def test_processes_of_a_learner_are_started_one_by_one(parts):
    """Each could be on another host: they meet at the address that the first announces."""
    path = prepare(hosts=("127.0.0.2", None, None), learner_gpu_num=2)
    host, port = "127.0.0.2", read_compiled(path).system.coordinator.port
    parts.start("coordinator", dist_launch_coordinator, path, 0, None, True)
    parts.start("stray", dist_launch_learner, path, 0, None, name="learner7")
    parts.start("unnamed", join, host, port, "learner", None, "run")
    parts.start("learner0", dist_launch_learner, path, 0, None, name="learner0")
    parts.start("learner1", join, host, port, "learner", "learner1", "run")
    for name, rank in (("stray", "learner7"), ("unnamed", "learner2")):
        status, line = parts.end(name)
        assert status == 1
        assert f"the learners of this run are learner0, learner1; it has no {rank}" in line
    parts.start("collector", dist_launch_collector, path, 0, None)
    for name in ("coordinator", "learner0", "learner1", "collector"):
        assert parts.end(name)[0] == 0, (name, parts.text(name))


def test_processes_that_learn_together_end_together(parts):
    path = prepare(learner_gpu_num=2, stop_value=501)
    parts.start("learner", dist_launch_spawn_learner, path, 0, None)
    pid = parts.processes["learner"].pid
    wait_for(lambda: len(descendants(pid)) == 2)
    children = descendants(pid)
    os.kill(children[1], signal.SIGKILL)
    status, line = parts.end("learner")
    assert status == 1
    assert "was killed by SIGKILL" in line
    wait_for(lambda: not any(map(is_alive, children)))


def test_what_is_no_compiled_config():
    with pytest.raises(ConfigError, match=r"config.py is no compiled parallel config"):
        dist_launch_coordinator(write_config(), 0, None, True)
    path = prepare()
    with pytest.raises(ConfigError, match="no learner named 'learner_0'; it has learner0"):
        dist_launch_learner(path, 0, None, name="learner_0")


@pytest.mark.slow
def test_a_worker_that_the_config_does_not_have(parts):
    path = prepare(stop_value=501)
    parts.start("coordinator", dist_launch_coordinator, path, 0, None, True)
    parts.start("learner", dist_launch_learner, path, 0, None)
    parts.start("collector", dist_launch_collector, path, 0, None, name="collector7")
    wait_for(lambda: Path("run/metrics.jsonl").exists())
    os.kill(parts.processes["collector"].pid, signal.SIGTERM)
    assert parts.end("collector") == (143, "collector7: interrupted: SIGTERM")
    os.kill(parts.processes["coordinator"].pid, signal.SIGINT)
    assert parts.end("coordinator")[0] == 130
    assert parts.end("learner")[0] == 0


def test_an_engine_that_starts_workers_itself(parts, capsys):
    path = prepare(engine=dict(type="local"))
    printed = capsys.readouterr().out
    assert "-M coordinator" in printed
    assert "-M learner" not in printed
    with pytest.raises(ConfigError, match="'local' starts workers itself"):
        dist_launch_collector(path, 0, None)
    parts.start("coordinator", dist_launch_coordinator, path, 0, None, True)
    status, line = parts.end("coordinator")
    assert status == 0, parts.text("coordinator")
    assert line.startswith("converged: ")


@pytest.fixture
def launched():
    """Starts coordinators whose engine starts the workers; their output is in a file each."""
    folder = os.path.dirname(documented_engine().__file__)
    children = []

    def launch(name):
        # Not a fork of this process: threads of engines that other tests have used may be in it.
        script = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from ding.entry.dist_entry import dist_launch_coordinator\n"
            "dist_launch_coordinator('run/total_config.py', 0, None, True)"
        )
        children.append(start_python(script, folder, output=f"{name}.txt"))
        return children[-1]

    yield launch
    for child in children:
        below = descendants(child.pid)
        child.kill()
        for pid in filter(is_alive, below):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_coordinator_whose_engine_starts_workers_goes_on(launched):
    def is_past(iteration, name, child):
        assert child.poll() is None, Path(f"{name}.txt").read_text()
        return saved_iteration() > iteration

    prepare(stop_value=501, engine=dict(type="sqlite", import_names=["documented_engine"]))
    first = launched("first")
    # Its workers are spawned processes, which take long to come up on a busy machine.
    wait_for(lambda: is_past(0, "first", first), 100)
    first.kill()
    first.wait(30)
    before = saved_iteration()
    again = launched("again")
    wait_for(lambda: is_past(before, "again", again), 100)
    again.send_signal(signal.SIGTERM)
    text, _ = again.communicate(60)
    # Python's own process for shared resources may have the last word.
    assert again.returncode == 143, text
    assert "\ninterrupted: SIGTERM" in text


def test_replicas_are_not_asked_for_here():
    for call, count in (
        (dist_add_replicas, 8),
        (dist_delete_replicas, 5),
        (dist_restart_replicas, 5),
    ):
        with pytest.raises(ConfigError, match=r"scale a deployment of `ding worker --join"):
            call(*[None] * count)


def test_a_run_that_is_going_on_is_left_alone(parts):
    path = prepare(stop_value=501)
    parts.start("coordinator", dist_launch_coordinator, path, 0, None, True)
    wait_for(lambda: Path("run/coordinator.json").exists())
    with pytest.raises(ConfigError, match=r"the run in 'run' is running: .* process \d+"):
        dist_launch_coordinator(path, 0, None, True)
    assert {"run.key", "coordinator.json", "data"} <= set(os.listdir("run"))
    os.kill(parts.processes["coordinator"].pid, signal.SIGINT)
    assert parts.end("coordinator")[0] == 130

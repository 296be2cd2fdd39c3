"""``ding -m parallel``, ``-m dist`` and ``ding status``."""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from ding.config.read import read_compiled
from ding.entry import dist_entry
from ding.entry.cli import main as ding
from ding.utils import find_free_port
from ding.utils.file_helper import write_facts
from tests.children import descendants, forked, is_alive, wait_for
from tests.entry.test_dist_entry import write_config

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "plain")
    monkeypatch.setattr(sys, "path", list(sys.path))


def run(*args):
    """Exit status, stdout and stderr."""
    result = CliRunner().invoke(ding, list(map(str, args)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def in_process(*args):
    """The command in another process; its output goes into a file."""
    return forked(ding, list(map(str, args)))


def record(exp="run"):
    return json.loads((Path(exp) / "run.json").read_text())


@pytest.mark.slow
def test_a_parallel_run_with_options():
    path = write_config()
    process = in_process(
        *("-m", "parallel", "-c", path, "-s", "3", "--exp_name", "elsewhere"),
        *("--set", "system_config.max_restart=2", "--set", "policy.learn.batch_size=8"),
    )
    process.join(60)
    text = Path("output.txt").read_text()
    assert process.exitcode == 0, text
    lines = text.splitlines()
    assert lines[-1].startswith("converged: ")
    assert any(line.startswith("  evaluate    ding eval") for line in lines)
    config = read_compiled("elsewhere/total_config.py")
    assert config.main.seed == record("elsewhere")["seed"] == 3
    assert config.main.policy.learn.batch_size == 8
    assert config.system.max_restart == 2
    assert config.system.path_data == "elsewhere/data"
    status, out, _ = run("status", "elsewhere")
    assert (status, out.splitlines()[0]) == (0, f"elsewhere: {lines[-1].split(';')[0]}")
    status, out, err = run(
        *("-m", "eval", "-c", "elsewhere/formatted_total_config.py"),
        *("--load-path", "elsewhere/ckpt/ckpt_best.pth.tar"),
    )
    assert status == 0, err
    assert out.startswith("mean return ")


def test_the_engine_is_chosen():
    process = in_process("-m", "parallel", "-c", write_config(), "--engine", "local")
    process.join(60)
    assert process.exitcode == 0, Path("output.txt").read_text()
    assert read_compiled("run/total_config.py").system.engine.type == "local"
    status, _, err = run("-m", "parallel", "-c", "config.py", "--engine", "locla")
    assert status == 1
    assert "no engine type 'locla' is registered; did you mean 'local'?" in err
    status, _, err = run(
        *("-m", "parallel", "-c", "config.py", "--engine", "local"), *("--address", "auto")
    )
    assert status == 1
    assert "unknown key system_config.engine.address" in err


@pytest.mark.slow
def test_going_on_after_ctrl_c_from_another_folder(monkeypatch):
    process = in_process("-m", "parallel", "-c", write_config(stop_value=501))
    wait_for(lambda: Path("run/metrics.jsonl").exists())
    children = descendants(process.pid)
    assert run("status", "run")[0] == 0
    os.kill(process.pid, signal.SIGINT)
    process.join(30)
    assert process.exitcode == 130
    assert not any(map(is_alive, children))
    text = Path("output.txt").read_text()
    assert "  continue    ding -m parallel -c run/formatted_total_config.py -s 0 --resume" in text
    before = record()["envstep"]
    os.mkdir("other")
    monkeypatch.chdir("other")
    process = in_process(
        *("-m", "parallel", "-c", "../run/formatted_total_config.py", "--resume"),
        *("--set", "env.stop_value=5"),
    )
    process.join(60)
    assert process.exitcode == 0, Path("output.txt").read_text()
    assert record("../run")["envstep"] >= before
    assert os.listdir() == ["output.txt"]


@pytest.mark.slow
def test_several_seeds():
    process = in_process("-m", "parallel", "-c", write_config(), "-s", "0,1")
    process.join(90)
    text = Path("output.txt").read_text()
    assert process.exitcode == 0, text
    assert record("run_seed0")["status"] == record("run_seed1")["status"] == "converged"
    assert read_compiled("run_seed1/total_config.py").system.path_data == "run_seed1/data"
    assert "last return (mean of 5 evaluations; converged: the last one): mean" in text


def test_a_limit_of_updates():
    port = find_free_port("127.0.0.1")
    options = ("--train-iter", 20, "-cdh", "127.0.0.1", "-cdp", port)
    process = in_process("-m", "parallel", "-c", write_config(stop_value=501), *options)
    process.join(60)
    assert process.exitcode == 0, Path("output.txt").read_text()
    assert read_compiled("run/total_config.py").system.coordinator.port == port
    assert record()["status"] == "finished"
    assert record()["train_iter"] >= 20


def test_configs_for_parts():
    path = write_config()
    status, out, err = run(
        *("-m", "dist", "--module", "config", "-c", path, "-s", "2"),
        *("-cdp", "7001", "-cdh", "127.0.0.1", "--learner-port=7002", "-clh", "10.255.0.1"),
    )
    assert status == 0, err
    assert "ding -m dist -c run/total_config.py -s 2 -M coordinator" in out
    system = read_compiled("run/total_config.py").system
    assert system.coordinator.port == 7001
    assert system.coordinator.learner.learner0 == ["learner0", "127.0.0.1", 7002]
    assert system.collector0.host == "10.255.0.1"
    assert system.collector0.coordinator == ["127.0.0.1", 7001]


def test_a_coordinator_goes_on_to_a_larger_limit(monkeypatch):
    assert run("-m", "dist", "-M", "config", "-c", write_config(), "--env-step", 100)[0] == 0
    started = []
    monkeypatch.setattr(dist_entry, "launch", lambda module, config, *rest: started.append(config))
    own = ("-m", "dist", "-M", "coordinator", "-c", "run/total_config.py")
    status, _, err = run(*own, "--resume", "--env-step", 1200, "--train-iter", 70)
    assert status == 0, err
    [config] = started
    assert config.resume_coordinator is True
    assert config.main.policy.other.commander.max_env_step == 1200
    assert config.main.policy.learn.learner.train_iterations == 70
    run(*own)
    assert started[1].main.policy.other.commander.max_env_step == 100


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-m", "parallel"], "-m parallel needs a config file"),
        (["-m", "dist", "-M", "learner"], "-m dist needs a config file"),
        (["-m", "serial", "-c", "config.py", "-M", "learner"], "--module is for -m dist"),
        (["-m", "serial", "-c", "config.py", "--engine", "ray"], "--engine is for -m parallel"),
        (["-m", "dist", "--add", "collector"], "No such option"),
        (["worker", "--join", "localhost"], "is not HOST:PORT"),
        (["-m", "dist", "-M", "lerner", "-c", "config.py"], "'lerner' is not one of"),
        (
            ["-m", "dist", "-M", "learner", "-c", "config.py", "--set", "policy.nstep=3"],
            "--set is for configs, which -M config compiles for all parts, not -m dist -M learner",
        ),
        (
            ["-m", "dist", "-M", "coordinator", "-c", "config.py", "--exp-name", "x"],
            "--exp-name is",
        ),
        (["-m", "dist", "-M", "collector", "-c", "config.py", "--env-step", "5"], "--env-step is"),
        (
            ["-m", "dist", "-M", "learner", "-c", "config.py", "--collector-host", "a"],
            "--collector-host is for -M config and -M collector, not -m dist -M learner",
        ),
        (
            ["-m", "dist", "-M", "coordinator", "-c", "config.py", "-lp", "7000"],
            "--learner-port is for -M config, -M learner and -M spawn_learner, not -m dist -M",
        ),
        (
            ["-m", "dist", "-M", "spawn_learner", "-c", "config.py", "-lh", "a"],
            "--learner-host is for -M config and -M learner, not",
        ),
    ],
)
def test_wrong_usage(args, words):
    write_config()
    status, _, err = run(*args)
    assert status == 2
    assert words in " ".join(err.split())


def test_a_config_that_is_not_compiled():
    Path("config.py").write_text("main_config = {}\ncreate_config = {}\n")
    status, _, err = run("-m", "dist", "-M", "coordinator", "-c", "config.py")
    assert status == 1
    assert "is no compiled parallel config" in err
    assert "Traceback" not in err


def test_the_config_of_a_serial_run_needs_nothing_else():
    text = Path(write_config()).read_text()
    Path("config.py").write_text(text[: text.index("system_config")])
    status, out, err = run("-m", "parallel", "-c", "config.py", "--dry-run")
    assert status == 0
    assert "system_config is not given: all parts run here" in out + err
    assert "parallel_pipeline(" in out


# ---------------------------------------------------------------------- ding status

STATUS = {
    "exp_name": "run",
    "state": "running",
    "reason": None,
    "seconds": 12.3,
    "envstep": 12345,
    "train_iter": 678,
    "best_return": 9.5,
    "stop_value": 195,
    "buffers": {"b0": {"count": 10, "capacity": 20, "bytes": 5e5, "max_bytes": 2e9, "files": 3}},
    "data_rate": {"samples_per_s": 100.0, "bytes_per_s": 1e6},
    "policy": {"p0": {"iter": 600, "age_s": 0.5, "lag_iters": 78}},
    "workers": {
        "collector0": {
            "kind": "collector",
            "state": "running",
            "address": "127.0.0.1:1",
            "task_id": "t0",
            "since_s": 3.0,
            "waits_for": "space",
            "samples_per_s": 50.0,
        }
    },
    "tasks": {"queued": 0, "running": 2},
    "waits": "collector waits for space",
    "failures": [{"time": 1, "worker": "learner0", "task": "t1", "cause": "EnvError: broken"}],
}


@pytest.fixture
def coordinator():
    """Answers ``GET /status``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"success": True, "code": 0, "message": "", "data": STATUS})
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    os.mkdir("run")
    facts = {"host": "127.0.0.1", "port": server.server_port, "pid": 1}
    write_facts("run/coordinator.json", facts)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_status_of_a_run(coordinator, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # not asked
    status, out, err = run("status", "run")
    assert status == 0, err
    for words in (
        "run: running for 12.3 s",
        "step 12,345, iter 678, best return 9.5 of 195, 100 samples/s, 1 MB/s",
        "buffer b0: 10 of 20 samples, 3 files, 0.5 of 2,000 MB",
        "policy p0: iter 600, 0.5 s old, collectors lag 78 iters",
        "tasks: 2 running",
        "waits: collector waits for space",
        "learner0, task t1: EnvError: broken",
    ):
        assert words in out
    row = next(line for line in out.splitlines() if line.strip().startswith("collector0"))
    assert " ".join(row.split()) == "collector0 running t0 3 s space 50 samples/s 127.0.0.1:1"
    assert json.loads(run("status", "run", "--json")[1]) == STATUS


def test_the_status_of_no_run():
    status, _, err = run("status", "nowhere")
    assert status == 1
    assert "no run in" in err
    os.mkdir("run")
    Path("run/coordinator.json").write_text(json.dumps({"host": "127.0.0.1", "port": 1, "pid": 9}))
    status, _, err = run("status", "run")
    assert status == 1
    assert "the coordinator at 127.0.0.1:1 (process 9) does not answer" in err

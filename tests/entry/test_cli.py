"""The command ``ding``."""

import contextlib
import json
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner

from ding import __version__
from ding.config import read_config
from ding.entry.cli import main as ding
from tests.children import start_ding
from tests.docs.fences import ROOT

CONFIG = """
main_config = dict(
    exp_name="run",
    env=dict(
        env_id="CartPole-v1",
        max_episode_steps=20,
        collector_env_num=2,
        evaluator_env_num=2,
        n_evaluator_episode=2,
    ),
    policy=dict(
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[8]),
        learn=dict(update_per_collect=1, batch_size=4),
        collect=dict(n_sample=8),
    ),
)
create_config = dict(
    env=dict(type="gymnasium"), env_manager=dict(type="base"), policy=dict(type="dqn")
)
"""


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "plain")
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def config():
    pathlib.Path("config.py").write_text(CONFIG)
    return "config.py"


def run(*args):
    """Exit status, stdout and stderr."""
    result = CliRunner().invoke(ding, list(map(str, args)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def record(folder):
    return json.loads((pathlib.Path(folder) / "run.json").read_text())


def test_help_and_version():
    status, out, _ = run("--help")
    assert status == 0
    assert "ding train CartPole-v1 dqn" in out
    assert run("-v") == (0, f"ding {__version__}\n", "")


def test_help_imports_nothing_heavy():
    code = (
        "import sys, ding.entry.cli\n"
        "assert not {'torch', 'numpy', 'gymnasium', 'yaml', 'tensorboardX'} & set(sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_query():
    assert "policy: " in run("-q")[1]
    assert run("-q", "all") == run("-q")
    status, out, _ = run("-q", "policy")
    assert status == 0
    (line,) = re.findall("^dqn .*", out, re.MULTILINE)
    assert re.split("  +", line)[1:3] == ["discrete, multi-discrete", "Mnih et al. 2015"]
    assert "_command" not in out
    status, _, err = run("-q", "polcy")
    assert status == 2
    assert "there are policy, env" in err


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["-m", "serial"], "what to run?"),
        (["-c", "nope.py"], "does not exist"),
        (["-c", "config.py", "-s", "zero"], "'zero' is not a whole number"),
        (["-c", "config.py", "-s", "1,1"], "twice"),
        (["-c", "config.py", "--train-iter", "0"], "0.0 is not in the range 1<=x"),
        (["-c", "config.py", "--quiet", "--plain"], "exclude each other"),
        (["-c", "config.py", "--replay-path", "v"], "--replay-path is for -m eval"),
        (["-c", "config.py", "-m", "eval", "-s", "0,1"], "takes one seed"),
        (["-c", "config.py", "-m", "eval", "--resume"], "--resume is for training"),
        (["-c", "config.py", "-m", "parallell"], "'parallell' is not one of"),
        (["-c", "."], "File '.' is a directory."),
        (["config.py"], "for a config, ding -c config.py"),
        (["trian", "CartPole-v1"], "did you mean ding train?"),
        (["CartPole-v1"], "ding train CartPole-v1"),
        (["."], "ding status ."),
        (["-c", "config.py", "train", "CartPole-v1"], "--config before the command 'train'"),
        (["-s", "5-2", "-c", "config.py"], "5-2 counts down: write 2-5"),
    ],
)
def test_wrong_usage(config, args, expected):
    status, _, err = run(*args)
    assert status == 2
    assert expected in " ".join(err.split())


def test_train_go_on_and_evaluate(config):
    status, out, _ = run("-m", "serial", "-c", config, "-s", 3, "--env-step", 40)
    assert status == 0
    assert "finished: reached max_env_step 40" in out
    assert record("run")["seed"] == 3

    saved = "run/formatted_total_config.py"
    status, out, _ = run("-m", "serial", "-c", saved, "--resume", "--env-step", "8e1")
    assert status == 0
    assert "resumed at" in out
    assert os.listdir() == ["config.py", "run"] or set(os.listdir()) == {"config.py", "run"}
    facts = record("run")
    assert facts["envstep"] >= 80
    assert facts["seed"] == 3
    assert len(facts["earlier_runs"]) == 1

    status, out, _ = run("-m", "eval", "-c", saved, "--load-path", "run/ckpt/ckpt_best.pth.tar")
    assert status == 0
    assert "mean return " in out
    assert "over 2 episodes" in out
    assert "evaluation:" not in out


def test_resume_from_another_folder(config, tmp_path, monkeypatch):
    run("-c", config, "--train-iter", 2)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    saved = "../run/formatted_total_config.py"
    status, out, err = run("-c", saved, "--resume", "--train-iter", 4)
    assert status == 0, err
    assert "resumed at iteration" in out
    assert not os.listdir()


@pytest.mark.parametrize("option", [["--exp-name", "other"], ["--set", "exp_name=other"]])
def test_resume_under_the_name_that_is_given(config, option):
    run("-c", config, "--train-iter", 2)
    os.rename("run", "first")
    run("-c", config, "--train-iter", 2, "--exp-name", "other")
    saved = "first/formatted_total_config.py"
    status, _, err = run("-c", saved, *option, "--resume", "--train-iter", 4)
    assert status == 0, err
    assert record("first")["train_iter"] == 2
    assert record("other")["train_iter"] >= 4


def test_a_second_run_has_a_folder_of_its_own(config):
    for _ in range(2):
        assert run("-c", config, "--train-iter", 1)[0] == 0
    assert len([name for name in os.listdir() if name.startswith("run")]) == 2


@pytest.mark.parametrize("seeds", [(), ("-s", "0-1"), ("-s", "0-1", "--jobs", 2)])
@pytest.mark.parametrize("name", [".", "..", "./", "run/..", "/"])
def test_a_run_needs_a_folder_with_a_name(config, name, seeds):
    status, _, err = run("-c", config, "--train-iter", 1, "--exp-name", name, *seeds)
    assert status == 1
    assert "is no name for a new folder" in err
    assert os.listdir() == [config]
    assert not any(entry.startswith(("..", "._")) for entry in os.listdir(".."))


@pytest.mark.parametrize("name", ["a b/it's/", "./a b/it's", "$PWD/a b/it's//"])
def test_a_run_is_in_the_folder_that_is_named(config, name):
    folder = name.replace("$PWD", os.getcwd())
    status, _, err = run("-c", config, "--train-iter", 1, "--exp-name", folder)
    assert status == 0, err
    assert record("a b/it's")["status"] == "finished"
    assert sorted(os.listdir()) == ["a b", config]


def test_begin_with_weights(config):
    run("-c", config, "--train-iter", 2)
    status, *_ = run(
        *("-c", config, "--exp-name", "second", "--train-iter", 3),
        *("--load-path", "run/ckpt/ckpt_best.pth.tar"),
    )
    assert status == 0
    main, _ = read_config("second/formatted_total_config.py")
    hook = main.policy.learn.learner.hook
    assert hook.load_ckpt_before_run == "run/ckpt/ckpt_best.pth.tar"


def test_several_seeds(config):
    status, out, _ = run("-c", config, "-s", "0,1", "-s", 5, "--train-iter", 1)
    assert status == 0
    assert {"run_seed0", "run_seed1", "run_seed5"} < set(os.listdir())
    assert record("run_seed5")["seed"] == 5
    table = out[out.index("seed  status") :].splitlines()
    # The best is the first; returns after one update say nothing of which that is.
    rows = sorted(line.split()[:2] for line in table[1:4])
    assert rows == [[str(s), "finished"] for s in (0, 1, 5)]
    assert "last return (mean of 5 evaluations" in table[4]


def test_settings(config):
    status, *_ = run(
        *("-c", config, "--train-iter", 1, "--exp-name", "other"),
        *("--set", "policy.learn.batch_size=5", "--set", "policy.model.dueling=false"),
        *("--set", "main_config.policy.learn.learning_rate=1e-4"),
        *("--set", "policy.model.encoder_hidden_size_list=[4, 4]"),
        *("--set", "env.stop_value=inf", "--set", "create_config.replay_buffer.type=naive"),
    )
    assert status == 0
    main, create = read_config("other/formatted_total_config.py")
    assert main.policy.learn.batch_size == 5
    assert main.policy.learn.learning_rate == 1e-4
    assert main.policy.model.dueling is False
    assert main.policy.model.encoder_hidden_size_list == [4, 4]
    assert main.env.stop_value == float("inf")
    assert create.replay_buffer.type == "naive"


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("policy.learn.batchsize=3", "did you mean policy.learn.batch_size?"),
        ("batch_size=3", "did you mean policy.learn.batch_size?"),
        ("policy.learn.batch_size=many", "policy.learn.batch_size must be an integer"),
        ("policy.learn.batch_size", "expected path=value"),
        ("env.env_id.x=3", "env.env_id is 'CartPole-v1', it holds no keys"),
        ("env.env_id=CartPol-v1", "CartPol"),
        ("create_config.policy.type=dqnn", "did you mean 'dqn'"),
    ],
)
def test_wrong_setting(config, setting, expected):
    status, out, err = run("-c", config, "--set", setting)
    assert status == 1
    assert err.startswith("error: ")
    assert expected in err
    assert "Traceback" not in out + err


def test_wrong_mode(config):
    status, _, err = run("-m", "serial_onpolicy", "-c", config)
    assert status == 1
    assert "-m serial)" in err
    assert os.listdir() == [config]


def test_other_errors_show_where(config):
    with open(config, "a") as file:
        file.write("\nraise SystemError('oops')\n")
    status, _, err = run("-c", config)
    assert status == 1
    assert "config.py:" in err
    assert "oops" in err


def test_eval_needs_weights(config):
    status, _, err = run("-m", "eval", "-c", config)
    assert status == 1
    assert "--load-path" in err


def test_nothing_to_resume(config):
    status, _, err = run("-c", config, "--resume", "--train-iter", 1)
    assert status == 1
    assert "nothing to resume" in err


def test_config_may_import_its_neighbours(config):
    pathlib.Path("my_env.py").write_text(
        "from ding.envs import DingEnvWrapper\n"
        "from ding.utils import ENV_REGISTRY\n"
        "@ENV_REGISTRY.register('mine_of_cli_test')\n"
        "class MyEnv(DingEnvWrapper):\n"
        "    def __init__(self, cfg):\n"
        "        super().__init__(cfg=cfg)\n"
    )
    status, _, err = run(
        *("-c", config, "--train-iter", 1),
        *("--set", "create_config.env={'type': 'mine_of_cli_test', 'import_names': ['my_env']}"),
    )
    assert status == 0, err


class SmallPicture(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (96, 96, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros((96, 96, 3), np.uint8), {}

    def step(self, action):
        self.steps += 1
        return np.zeros((96, 96, 3), np.uint8), 1.0, self.steps == 5, False, {}


def test_what_is_put_around_pictures_is_said(monkeypatch):
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    gymnasium.register("SmallPicture-v0", SmallPicture)
    small = ["--set", "policy.collect.n_sample=8", "--set", "policy.learn.batch_size=8"]
    status, out, err = run("train", "SmallPicture-v0", "dqn", "--train-iter", 1, *small)
    assert status == 0, err
    (line,) = [line for line in (out + err).splitlines() if "wrappers around" in line]
    assert "warp_frame, scaled_float_frame, frame_stack(n_frames=4)" in line


@pytest.mark.parametrize(
    ("env_id", "policy"),
    [("CartPole-v1", "dqn"), ("Pendulum-v1", "sac"), ("Pendulum-v1", "ppo")],
)
def test_without_a_config_file(env_id, policy):
    """That every policy trains, `test_quick_config` shows."""
    small = ["--set", "policy.collect.n_sample=64", "--set", "policy.learn.batch_size=32"]
    if policy == "ppo":
        small += ["--set", "policy.learn.epoch_per_collect=1"]
    status, _, err = run("train", env_id, policy, "--env-step", 100, *small)
    assert status == 0, err
    main, _ = read_config(f"exp/{env_id}_{policy}/formatted_total_config.py")
    goal = -250 if policy == "ppo" else -200  # of the package's configs: gymnasium has none
    assert main.env.stop_value == (475 if env_id == "CartPole-v1" else goal)
    assert main.policy.model.obs_shape == (4 if env_id == "CartPole-v1" else 3)


@pytest.mark.parametrize(
    ("name", "pipeline"),
    [
        ("bitflip_her_dqn", "serial_pipeline_reward_model_offpolicy"),
        ("cartpole_bc", "serial_pipeline_bc"),
        ("cartpole_bco", "serial_pipeline_bco"),
        ("cartpole_dqfd", "serial_pipeline_dqfd"),
        ("cartpole_dqn", "serial_pipeline"),
        ("cartpole_drex", "serial_pipeline_trex"),
        ("cartpole_gail", "serial_pipeline_gail"),
        ("cartpole_masked_r2d3", "serial_pipeline_dqfd"),
        ("cartpole_ppo", "serial_pipeline_onpolicy"),
        ("cartpole_pwil", "serial_pipeline_reward_model_onpolicy"),
        ("cartpole_sqil", "serial_pipeline_sqil"),
        ("pendulum_cql", "serial_pipeline_offline"),
    ],
)
def test_without_a_mode_what_the_config_learns_from_decides(name, pipeline):
    path = ROOT / "configs" / name.partition("_")[0] / f"{name}_config.py"
    status, out, err = run("-c", path, "--dry-run")
    assert status == 0, err
    assert out.endswith(f"\n    {pipeline}([main_config, create_config], seed=0)\n")


@pytest.mark.parametrize(
    ("env_id", "policy", "expected"),
    [
        ("CartPol-v1", "dqn", "CartPole"),
        ("CartPole-v1", "dqnn", "did you mean 'dqn'"),
        ("CartPole-v1", "dreamer", "is left out of this package"),
        ("CartPole-v1", "cql", "ding -m serial_offline -c cql_config.py"),
        ("CartPole-v1", "dqfd", "ding -m serial_dqfd -c dqfd_config.py"),
        ("CartPole-v1", "qmix", "ding train grid_spread qmix"),
        ("grid_spread", "dqn", "does not choose multi-agent actions"),
        ("Pendulum-v1", "dqn", "policies for it: a2c, d4pg"),
        ("Blackjack-v1", "ppo", "networks without a config file read one array"),
        ("Mujoco", "ppo", "env type 'Mujoco' has no default environment: give the id of one"),
        ("deep_sea", "dqn", "or write a config file with create_config.env.type='deep_sea'"),
        ("no_module:X-v0", "ppo", "the module 'no_module' is missing; install it, or correct"),
    ],
)
def test_without_a_config_file_wrongly(env_id, policy, expected):
    status, _, err = run("train", env_id, policy, "--env-step", 10)
    assert status == 1
    assert expected in err


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(config, number, status):
    process = start_ding("-c", config, "--plain")
    try:
        best = pathlib.Path("run/ckpt/ckpt_best.pth.tar")
        deadline = time.monotonic() + 120
        while not best.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == status, out
    assert "Traceback" not in out
    assert "continue" in out
    assert record("run")["status"] == "interrupted"


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_module_is_the_command(config):
    done = subprocess.run(
        [sys.executable, "-m", "ding", "-c", config, "--set", "policy.lern={}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: unknown key policy.lern: did you mean policy.learn?\n"


def test_unknown_keys(config):
    pathlib.Path("config.py").write_text(CONFIG.replace("policy=dict(", "zebra=1, policy=dict(", 1))
    status, out, _ = run("-c", config, "--train-iter", 1)
    assert status == 0
    assert out.count("zebra") == 1
    status, _, err = run("-c", config, "--strict")
    assert (status, "unknown key zebra" in err) == (1, True)
    for setting in ("policy.lion=2", "env.lion.age=3", "create_config.lion=dict(type='a')"):
        status, _, err = run("-c", config, "--set", setting)
        path = setting.split("=")[0].removesuffix(".age")
        assert (status, f"unknown key {path}" in err) == (1, True)


def test_a_later_setting_wins_over_the_compiled_one(config):
    assert run("-c", config, "--train-iter", 1)[0] == 0
    saved = "run/formatted_total_config.py"
    status, _, _ = run(
        *("-c", saved, "--exp-name", "again", "--train-iter", 5),
        *("--set", "env.stop_value=1", "--set", "env.n_evaluator_episode=3"),
        *("--set", "policy.eval.evaluator.eval_freq=1"),
    )
    assert (status, record("again")["status"]) == (0, "converged")
    # What it converged with, not a mean with the evaluations before.
    last, best = (line.split()[-1] for line in run("status", "again")[1].splitlines()[1:3])
    assert last == best
    status, out, _ = run(
        "-m",
        "eval",
        "-c",
        saved,
        "--load-path",
        "run/ckpt/ckpt_best.pth.tar",
        "--set",
        "env.n_evaluator_episode=3",
    )
    assert (status, "over 3 episodes" in out) == (0, True)


def test_short_names_of_environments():
    assert run("train", "cartpole", "dqn", "--train-iter", 1)[0] == 0
    assert os.path.isdir("exp/CartPole-v1_dqn")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-s", "-1"), "-1 is not between 0 and 4294967295"),
        (("-s", 1 << 32), "is not between 0 and"),
        (("-cdp", 7000), "--coordinator-port is for -m parallel and -m dist"),
        (("-m", "serial", "-lh", "a"), "--learner-host is for -m dist, not -m serial"),
        (("-m", "parallel", "-clp", 7000), "--collector-port is for -m dist, not -m parallel"),
        (("--enable-total-log", "maybe"), "'maybe' is not a valid boolean"),
    ],
)
def test_options_without_an_effect_are_refused(config, options, words):
    status, _, err = run("-c", config, *options)
    assert (status, words in err) == (2, True), err


def test_dry_run_prints_a_config_that_runs_and_makes_nothing(config):
    text = pathlib.Path(config).read_text()
    pathlib.Path(config).write_text(text.replace("policy=dict(\n", "policy=dict(\n mine=1,\n", 1))
    before = set(os.listdir())
    options = ("--seed", 3, "--set", "policy.learn.batch_size=7")
    status, out, err = run("-m", "serial", "-c", config, "--dry-run", *options)
    assert status == 0
    assert set(os.listdir()) == before
    assert "policy.mine" in err
    pathlib.Path("whole.py").write_text(out)
    main, _ = read_config("whole.py")
    assert main.policy.learn.batch_size == 7
    assert main.policy.learn.target_update_freq > 0  # a default
    status, *_ = run("-m", "serial", "-c", "whole.py", "--train-iter", 1)
    assert status == 0


def test_another_env_manager():
    command = ("train", "CartPole-v1", "dqn", "--dry-run", "--env-manager")
    status, out, _ = run(*command, "subprocess")
    assert (status, "'env_manager': {'type': 'subprocess'}" in out) == (0, True)
    status, _, err = run(*command, "subproces")
    assert (status, "did you mean 'subprocess'" in err) == (1, True)


def test_dry_run_of_a_parallel_config():
    path = ROOT / "configs" / "cartpole" / "parallel" / "cartpole_dqn_config.py"
    status, out, _ = run("-c", path, "--dry-run", "--env-step", 5000)
    assert status == 0
    assert "system_config = " in out
    assert "'max_env_step': 5000" in out
    assert os.listdir() == []


def test_dry_run_finds_what_is_wrong(config):
    status, _, err = run("-c", config, "--dry-run", "--set", "policy.learn.batchsize=7")
    assert status == 1
    assert "did you mean policy.learn.batch_size?" in err
    assert run("-c", config, "-m", "eval", "--dry-run")[0] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_a_command_swallows_ends_it_all_the_same(number, monkeypatch):
    def swallowing(*_):
        with contextlib.suppress(BaseException):
            os.kill(os.getpid(), number)
        return "all is well"

    monkeypatch.setattr("ding.entry.run.status.report", swallowing)
    done = CliRunner().invoke(ding, ["status", "x"])
    assert done.exit_code == 128 + number


class TestShortCommands:
    def test_train_and_resume(self):
        options = ["--train-iter", 16, "--exp-name", "short"]
        assert run("train", "CartPole-v1", "dqn", *options)[0] == 0
        status, out, _ = run("resume", "short", "--train-iter", 32)
        assert status == 0
        assert "finished: reached max_train_iter 32" in out
        assert record("short")["train_iter"] >= 32

    def test_resume_takes_the_mode_of_the_run_each_time(self):
        options = ["--train-iter", 16, "--exp-name", "short"]
        assert run("train", "CartPole-v1", "ppo", *options)[0] == 0
        for limit in (32, 48):
            status, out, err = run("resume", "short", "--train-iter", limit)
            assert (status, record("short")["mode"]) == (0, "serial_onpolicy"), err
            assert "ding -m serial_onpolicy" in out

    def test_init_writes_a_config_that_trains(self):
        assert run("init", "mine", "-e", "Pendulum-v1", "-p", "sac")[0] == 0
        assert "batch_size=128,  # Samples of an update." in pathlib.Path("mine.py").read_text()
        status, out, _ = run("-c", "mine.py", "--dry-run")
        assert (status, "random_collect_size" in out) == (0, True)
        status, _, err = run("init", "mine")
        assert (status, "mine.py exists already" in err) == (1, True)

    @pytest.mark.parametrize(
        ("args", "expected"),
        [
            (["my_config.py"], "for a config, ding -c my_config.py"),
            (["train", "CartPole-v1", "dqn", "-s", "5-2"], "5-2 counts down: write 2-5"),
            (["init", "a.txt"], "a.txt: a config file is written in Python"),
            (["resume", "."], "no run in '.': there is no formatted_total_config.py"),
            (
                ["train", "CartPole-v1", "dqq"],
                "type 'dqq' is registered; did you mean 'dqn'",
            ),
        ],
    )
    def test_mistakes_are_named(self, args, expected):
        status, _, err = run(*args)
        assert status in (1, 2)
        assert expected in " ".join(err.split())


def test_videos_need_a_folder_that_can_be_written(config):
    assert run("-c", config, "--train-iter", 1)[0] == 0
    for path in (f"{config}/videos", "/proc/videos"):
        status, _, err = run("eval", "run", "--replay-path", path)
        assert status == 1
        assert f"cannot write videos into {os.path.abspath(path)!r}" in err


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a config and its run."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "config.py").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", list(sys.path))
        assert run("-c", "config.py", "--train-iter", 1)[0] == 0
    return folder


@pytest.fixture
def checkpoint(trained):
    shutil.copytree(trained, ".", dirs_exist_ok=True)
    return pathlib.Path("run/ckpt/ckpt_best.pth.tar")


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda data: data[: len(data) // 2], "is cut short or damaged"),
        (lambda data: data[:300] + b"0123456789" + data[310:], "damaged"),
        (lambda data: b"", "is empty: use another checkpoint"),
        (lambda data: b"print('hello')\n", "is a text file, not a checkpoint"),
        (lambda data: pickle.dumps(pathlib.Path()), "If it is an old pickled checkpoint"),
    ],
)
@pytest.mark.parametrize("begins", [False, True])
def test_what_is_no_checkpoint(checkpoint, damage, expected, begins):
    wrong = pathlib.Path("wrong.pth.tar")
    wrong.write_bytes(damage(checkpoint.read_bytes()))
    args = ("--exp-name", "next", "--train-iter", 1) if begins else ("-m", "eval")
    status, _, err = run(*args, "-c", "config.py", "--load-path", wrong)
    assert status == 1
    assert expected in err
    assert "weights_only" not in err
    assert len(err.splitlines()) < 4


def test_a_checkpoint_of_another_policy(checkpoint):
    other = ROOT / "configs/pendulum/pendulum_sac_config.py"
    status, _, err = run("-m", "eval", "-c", other, "--load-path", checkpoint)
    assert status == 1
    assert "Was it saved with another model or policy type?" in err
    assert len(err.splitlines()) == 1
    assert len(err) < 800


def test_beginning_with_a_checkpoint_of_another_size(checkpoint):
    more = ("--set", "policy.model.encoder_hidden_size_list=[9]", "--exp-name", "other")
    status, _, err = run("-c", "config.py", "--load-path", checkpoint, *more)
    assert status == 1
    assert "more differences). Was it saved with another model" in err
    assert len(err.splitlines()) == 1


def test_status_of_a_running_serial_run(checkpoint):
    file = pathlib.Path("run/run.json")
    facts = {**record("run"), "status": "running"}
    del facts["checksum"]
    file.write_text(json.dumps(facts))
    status, out, _ = run("status", "run")
    assert status == 0
    assert f"run: running: process {os.getpid()}" in out
    assert "updates" in out

    facts["process"]["started"] = "before another one with its number"
    file.write_text(json.dumps(facts))
    os.rename("run", "a run")
    status, _, err = run("status", "a run")
    assert status == 1
    assert "ding resume 'a run'" in err


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["resume", "rn"], "did you mean run?"),
        (["status", "rn"], "did you mean run?"),
        (["eval", "rn"], "did you mean run?"),
        (["resume", "."], "its folders are runs, such as ./run"),
        (["resume", "config.py"], "it is a file; give the run's folder"),
        (["resume", "run", "--set", "policy.model.encoder_hidden_size_list=[9]"], "more differ"),
        (["plot", "run", "-o", "no/dir/a.png"], "there is no folder 'no/dir'"),
        (
            ["-m", "parallel", "-c", "config.py", "--address", "auto"],
            "unknown key system_config.engine.address",
        ),
    ],
)
def test_wrong_folders_and_addresses(checkpoint, args, expected):
    status, _, err = run(*args)
    assert status == 1
    assert expected in err


def test_resume_of_a_saved_config_with_a_list_for_a_section(checkpoint):
    with open("run/formatted_total_config.py", "a") as file:
        file.write("\nmain_config['policy']['learn'] = [1]\n")
    status, _, err = run("resume", "run", "--train-iter", 9)
    assert status == 1
    assert "policy.learn must be a dict" in err


def test_resume_from_a_state_that_is_cut_short(checkpoint):
    state = pathlib.Path("run/ckpt/resume.pth.tar")
    state.write_bytes(state.read_bytes()[:900])
    status, _, err = run("resume", "run", "--train-iter", 9)
    assert status == 1
    assert "--load-path " in err
    assert ".pth.tar, in a new run" in err


def test_a_run_without_checkpoints(checkpoint):
    checkpoint.parent.rename("elsewhere")
    status, _, err = run("eval", "run")
    assert status == 1
    assert "holds no checkpoint: " in err
    assert "/formatted_total_config.py --load-path FILE" in err
    assert "ding resume" in err


def test_a_key_of_the_config_as_an_option():
    status, _, err = run("train", "CartPole-v1", "dqn", "--learning-rate", "0.1")
    assert status == 2
    assert "No such option '--learning-rate'. For keys of the config: --set PATH=VALUE" in err


def test_a_config_file_is_run_once(config):
    pathlib.Path("changes.py").write_text(
        "from config import main_config, create_config\nmain_config['exp_name'] += '_2'\n"
    )
    out = run("-c", "changes.py", "--dry-run")[1]
    assert "'run_2'" in out
    assert "run_2_2" not in out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("main_config['policy']['learn'] = [1]", "policy.learn must be a dict"),
        (
            "create_config['env']['import_names'] = ['no_such_module']",
            "there is no module 'no_such_module'",
        ),
        (
            "create_config['policy']['type'] = 'qtran'; main_config['policy'] = {}",
            "policy.model.agent_num: how many agents the environment has",
        ),
        ("create_config['policy'] = 'dqn'", "create_config.policy must be a dict such as"),
    ],
)
def test_sections_that_are_no_dicts(config, line, expected):
    with open(config, "a") as file:
        file.write(line)
    status, _, err = run("-c", config, "--dry-run")
    assert status == 1
    assert expected in err
    assert "Traceback" not in err


def test_a_config_that_ends_the_process():
    pathlib.Path("ends.py").write_text("import sys\nsys.exit(3)\n")
    status, _, err = run("-c", "ends.py")
    assert status == 1
    assert "exit status 3" in err

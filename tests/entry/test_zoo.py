"""The policies that come with the package, and the command that plays them."""

import os

import gymnasium
import pytest
from click.testing import CliRunner

import ding
from ding.config import read_config
from ding.entry.cli import main
from ding.entry.quick_config import quick_config
from ding.entry.serial_entry import serial_pipeline
from ding.entry.trained_policy import find_trained, zoo_facts, zoo_names
from ding.utils import read_file
from ding.utils.errors import CheckpointError, ConfigError
from tests.docs.fences import ROOT

NAMES = zoo_names()


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "quiet")


def run(*args):
    result = CliRunner().invoke(main, ["eval", *map(str, args)])
    return result.exit_code, result.output


def mean_return(output):
    assert output.startswith("mean return "), output
    return float(output.split()[2])


def test_there_are_policies_for_the_common_algorithms():
    assert {"cartpole_dqn", "cartpole_a2c", "pendulum_sac", "pendulum_td3"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_small_and_known(name):
    found, facts = find_trained(f"zoo:{name}"), zoo_facts(name)
    assert os.path.getsize(found.checkpoint) < 500_000
    assert set(read_file(found.checkpoint)) <= {"model", "env_statistics"}
    assert facts["mean"] >= facts["goal"]
    assert len(facts["commit"]) == 40
    main_config, create_config = read_config(found.config)
    assert facts["policy"] == create_config["policy"]["type"]
    # MuJoCo's configs train on beyond what their policies here must return.
    is_open = facts["config"].startswith("configs/mujoco")
    goal = main_config["env"]["stop_value"]
    assert facts["goal"] < goal if is_open else facts["goal"] == goal
    # The config that made it is still there, and says the same of what acts.
    whole, types = read_config(str(ROOT / facts["config"]))
    for section in ("learn", "collect", "eval", "other"):
        whole["policy"].pop(section, None)
    assert (whole, types) == (main_config, create_config)


def assert_returns_what_it_should(name, episodes):
    """Not less than the recorded return, within the error of `episodes` episodes."""
    status, output = run(f"zoo:{name}", "--episodes", episodes, "-s", 3)
    assert status == 0
    assert f"over {episodes} episodes" in output
    facts = zoo_facts(name)
    chance = 3 * facts["std"] / episodes**0.5 + 0.02 * abs(facts["mean"])
    assert mean_return(output) >= facts["mean"] - chance


@pytest.mark.parametrize("name", ["cartpole_dqn", "pendulum_sac"])
def test_the_common_ones_are_good(name):
    assert_returns_what_it_should(name, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_is_good(name):
    is_long = zoo_facts(name)["config"].startswith("configs/mujoco")
    assert_returns_what_it_should(name, 20 if is_long else 50)


def test_the_list_shows_the_returns():
    status, output = run("zoo:")
    assert status == 0
    head, *lines = output.splitlines()
    assert head.split() == ["name", "policy", "env", "return", "goal"]
    assert [line.split()[0] for line in lines] == [f"zoo:{name}" for name in NAMES]


def test_a_wrong_name_gets_the_nearest_one():
    status, output = run("zoo:carpole_dqn")
    assert status == 1
    assert "did you mean zoo:cartpole_dqn?" in output
    with pytest.raises(ConfigError, match=r"no 'wxyz'\. `ding eval zoo:` lists what there is"):
        ding.load("zoo:wxyz")


def test_one_acts_in_a_plain_loop():
    policy = ding.load("zoo:cartpole_dqn")
    env = gymnasium.make("CartPole-v1")
    obs, _ = env.reset(seed=0)
    steps, done = 0, False
    while not done:
        obs, _, terminated, truncated, _ = env.step(policy.act(obs))
        steps, done = steps + 1, terminated or truncated
    assert steps > 400


def test_a_run_is_evaluated_by_its_folder():
    main_config, create_config = quick_config("CartPole-v1", "dqn")
    main_config["exp_name"] = "run"
    serial_pipeline((main_config, create_config), seed=0, max_train_iter=1)
    status, output = run("run", "--set", "env.n_evaluator_episode=3")
    assert status == 0
    assert "over 3 episodes" in output
    # The same as with all written out.
    files = ["-c", "run/formatted_total_config.py", "--load-path", "run/ckpt/ckpt_best.pth.tar"]
    whole = CliRunner().invoke(main, ["-m", "eval", *files, "--set", "env.n_evaluator_episode=3"])
    assert whole.output == output


def test_what_is_no_run_is_said():
    status, output = run("nothing")
    assert status == 1
    assert "no run in" in output
    os.makedirs("run")
    with open("run/formatted_total_config.py", "w") as file:
        file.write("main_config, create_config = {}, {}")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        assert find_trained("run").weights


def test_videos_report_the_return(tmp_path):
    pytest.importorskip("pygame", reason="the extra 'video' is not installed")
    pytest.importorskip("PIL", reason="the extra 'video' is not installed")
    status, output = run("zoo:pendulum_sac", "--episodes", 1, "--replay-path", "video",
                         "--set", "env.evaluator_env_num=1")  # fmt: skip
    assert status == 0
    (video,) = os.listdir("video")
    assert video.startswith(f"Pendulum-v1_episode_0001_return_{mean_return(output):.4g}.")

"""Behaviour cloning from the command line and from scripts."""

import json
import signal
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from click.testing import CliRunner

from ding.entry import serial_pipeline_bc
from ding.entry.cli import main as cli
from ding.utils import read_file, save_file
from ding.utils.errors import DataError
from tests.entry.runs import cartpole_config
from tests.policy.attributes import optimizer_of


def demonstrations(count, seed=0):
    """Observations of CartPole, and what a controller does that holds the pole."""
    env, rows = gymnasium.make("CartPole-v1"), []
    rng = np.random.default_rng(seed)
    obs, _ = env.reset(seed=seed)
    while len(rows) < count:
        action = int(obs[2] + 0.4 * obs[3] + 0.05 * obs[0] + 0.1 * obs[1] > 0)
        rows.append({"obs": torch.from_numpy(obs), "action": torch.tensor([action])})
        # What is shown is right; what is done errs, so that more states are seen.
        done = action if rng.random() > 0.2 else int(rng.integers(2))
        obs, _, ended, cut, _ = env.step(done)
        obs = env.reset()[0] if ended or cut else obs
    return rows


def configs(exp_name="run", **learn):
    return cartpole_config(
        exp_name,
        "bc",
        env=dict(collector_env_num=1, stop_value=1000),
        hidden=32,
        continuous=False,
        learn={"batch_size": 16, "train_epoch": 2, "show_accuracy": True, **learn},
        collect=dict(data_type="naive"),
        eval=dict(evaluator=dict(eval_freq=10)),
    )


@pytest.fixture(scope="module")
def rows():
    return demonstrations(100)


@pytest.fixture
def demo(rows):
    save_file("demo.pkl", rows)


def run_facts():
    return json.loads(Path("run/run.json").read_text())


@pytest.mark.usefixtures("demo")
class TestPipeline:
    @pytest.mark.slow
    def test_trains_for_n_epochs_and_reports_whether_it_converged(self):
        policy, converged = serial_pipeline_bc(configs(), 0, "demo.pkl")
        assert converged is False
        assert run_facts()["train_iter"] == 14
        assert policy.eval_mode.forward({0: torch.zeros(4)})[0]["action"].shape == (1,)
        _, converged = serial_pipeline_bc(configs("other"), 0, "demo.pkl", max_iter=3)
        assert read_file("other/ckpt/iteration_3.pth.tar")["last_iter"] == 3

    def test_learning_rates_follow_the_epochs(self):
        learn = dict(lr_decay=True, learning_rate=0.4, warmup_epoch=1, warmup_lr=0.1)
        policy, _ = serial_pipeline_bc(configs(**learn, decay_epoch=1), 0, "demo.pkl")
        assert optimizer_of(policy).param_groups[0]["lr"] == pytest.approx(0.4)
        policy, _ = serial_pipeline_bc(configs("other", **learn), 0, "demo.pkl", max_iter=7)
        assert optimizer_of(policy).param_groups[0]["lr"] == pytest.approx(0.1)

    def test_a_resumed_run_is_the_uninterrupted_one(self):
        whole, _ = serial_pipeline_bc(configs("whole"), 3, "demo.pkl")
        serial_pipeline_bc(configs("parts"), 3, "demo.pkl", max_iter=9)
        parts, _ = serial_pipeline_bc(configs("parts", resume_training=True), 3, "demo.pkl")
        for name, tensor in whole.learn_mode.state_dict()["model"].items():
            assert torch.equal(tensor, parts.learn_mode.state_dict()["model"][name]), name

    def test_ctrl_c_saves_and_leaves(self, monkeypatch):
        from ding.policy import BehaviourCloningPolicy

        learn = BehaviourCloningPolicy._forward_learn

        def interrupted(self, data):
            if interrupted.calls == 5:
                signal.raise_signal(signal.SIGINT)
            interrupted.calls += 1
            return learn(self, data)

        interrupted.calls = 0
        monkeypatch.setattr(BehaviourCloningPolicy, "_forward_learn", interrupted)
        with pytest.raises(SystemExit) as end:
            serial_pipeline_bc(configs(), 0, "demo.pkl")
        assert end.value.code == 130
        assert run_facts()["status"] == "interrupted"
        assert Path("run/ckpt/resume.pth.tar").exists()

    def test_command_line(self):
        main, create = configs()
        main["policy"]["collect"]["data_path"] = "demo.pkl"
        Path("config.py").write_text(f"main_config, create_config = {main!r}, {create!r}\n")
        line = ["-m", "serial_bc", "-c", "config.py", "-s", "0"]
        done = CliRunner().invoke(cli, [*line, "--train-iter", "4"])
        assert done.exit_code == 0, done.output
        assert "ding -m serial_bc -c run/formatted_total_config.py -s 0 --resume" in done.output
        resume = ["-m", "serial_bc", "-c", "run/formatted_total_config.py", "-s", "0", "--resume"]
        done = CliRunner().invoke(cli, resume)
        assert done.exit_code == 0, done.output
        assert run_facts()["train_iter"] == 14
        done = CliRunner().invoke(cli, [*line, "--env-step", "5"])
        assert (done.exit_code, "no environment steps" in done.output) == (1, True)
        assert "serial_bc" in CliRunner().invoke(cli, ["--help"]).output


def test_the_path_that_was_passed_is_in_the_runs_config(demo):
    serial_pipeline_bc(configs(), 0, "demo.pkl", max_iter=1)
    assert "demo.pkl" in Path("run/formatted_total_config.py").read_text()


def test_a_data_set_without_actions_leaves_no_folder():
    save_file("demo.pkl", [{"obs": torch.zeros(4)}] * 20)
    words = r"the data set 'demo\.pkl' \(policy\.collect\.data_path\) has no 'action'"
    with pytest.raises(DataError, match=words):
        serial_pipeline_bc(configs(), 0, "demo.pkl")
    assert not Path("run").exists()


@pytest.mark.slow
def test_acts_as_the_demonstrator(learned):
    save_file("demo.pkl", demonstrations(3000, learned.seed))
    main, create = configs(train_epoch=20, batch_size=64, optimizer="Adam", learning_rate=1e-3)
    main["env"].update(stop_value=475, n_evaluator_episode=8)
    main["policy"]["eval"]["evaluator"]["eval_freq"] = 100
    _, converged = serial_pipeline_bc((main, create), learned.seed, "demo.pkl")
    learned.is_true(converged, f"{run_facts()}")

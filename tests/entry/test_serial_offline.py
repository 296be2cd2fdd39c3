"""Training from a data set."""

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from easydict import EasyDict

from ding.config import read_config
from ding.data import create_dataset
from ding.data.offline.transition_dataset import transitions_of
from ding.entry import eval, serial_pipeline, serial_pipeline_offline
from ding.entry.cli import main as cli
from ding.policy import DQNPolicy
from ding.utils import POLICY_REGISTRY, read_file, save_file
from ding.utils.errors import CheckpointError, ConfigError, DataError
from tests.entry.runs import cartpole_config


def demonstrations(count, noise=0.3, seed=0):
    """Transitions of a controller of CartPole that often errs."""
    rng, env, rows = np.random.default_rng(seed), gymnasium.make("CartPole-v1"), []
    obs, _ = env.reset(seed=seed)
    while len(rows) < count:
        action = int(obs[2] + 0.4 * obs[3] > 0)
        action = action if rng.random() > noise else int(rng.integers(2))
        next_obs, reward, done, truncated, _ = env.step(action)
        rows.append(
            {
                "obs": torch.from_numpy(obs),
                "next_obs": torch.from_numpy(next_obs),
                "action": torch.tensor([action]),
                "reward": torch.tensor([float(reward)]),
                "done": done,
            }
        )
        obs = env.reset()[0] if done or truncated else next_obs
    return rows


def configs(data_path="demo.pkl", learn=None, **policy):
    return cartpole_config(
        env=dict(collector_env_num=1, stop_value=1000),
        hidden=32,
        learn={"batch_size": 16, "train_epoch": 2, **(learn or {})},
        collect=dict(data_path=data_path, data_type="naive"),
        eval=dict(evaluator=dict(eval_freq=10)),
        **policy,
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
    def test_trains_for_so_many_epochs_without_steps(self):
        serial_pipeline_offline(configs(), seed=0)
        state = read_file("run/ckpt/iteration_14.pth.tar")
        assert (state["last_iter"], state["last_step"]) == (14, 0)  # 2 epochs of 7 batches
        assert run_facts()["status"] == "finished"
        assert float(eval(configs(), load_path="run/ckpt/ckpt_best.pth.tar")) > 0

    def test_nothing_need_be_said_of_collecting(self):
        main, create = configs()
        main["policy"]["collect"].update(n_sample=None)
        serial_pipeline_offline((main, create), seed=0, max_train_iter=2)
        assert float(eval((main, create), load_path="run/ckpt/ckpt_best.pth.tar")) > 0

    @pytest.mark.parametrize("policy", [{}, dict(priority=True, priority_IS_weight=True)])
    def test_a_resumed_run_is_the_uninterrupted_one(self, policy):
        states = []
        for name, limits in (("whole", [14]), ("parts", [9, 14])):
            for number, limit in enumerate(limits):
                main, create = configs(learn=dict(resume_training=number > 0), **policy)
                main["exp_name"] = name
                found = serial_pipeline_offline((main, create), seed=3, max_train_iter=limit)
            states.append(found.learn_mode.state_dict()["model"])
        assert read_file("parts/ckpt/iteration_9.pth.tar")["last_iter"] == 9
        for name, tensor in states[0].items():
            assert torch.equal(tensor, states[1][name]), name

    def test_a_run_that_begins_with_a_checkpoint_has_all_its_epochs(self):
        serial_pipeline_offline(configs(), seed=0)
        begin = dict(load_ckpt_before_run="run/ckpt/iteration_14.pth.tar")
        states = []
        for name, limits in (("whole", [None]), ("parts", [20, None])):
            for number, limit in enumerate(limits):
                learn = dict(resume_training=number > 0, learner=dict(hook=begin))
                main, create = configs(learn=learn)
                main["exp_name"] = name
                policy = serial_pipeline_offline((main, create), seed=3, max_train_iter=limit)
            assert read_file(f"{name}/ckpt/resume.pth.tar")["learner"]["last_iter"] == 28
            states.append(policy.learn_mode.state_dict()["model"])
        for name, tensor in states[0].items():
            assert torch.equal(tensor, states[1][name]), name

    @pytest.mark.parametrize("count", [60, 150])
    def test_a_resumed_run_draws_from_all_of_a_data_set_that_has_changed(self, rows, count):
        limits = [4, 40]
        for number, limit in enumerate(limits):
            main, create = configs(learn=dict(resume_training=number > 0), priority=True)
            serial_pipeline_offline((main, create), seed=0, max_train_iter=limit)
            save_file("demo.pkl", (rows * 2)[:count])
        state = read_file("run/ckpt/resume.pth.tar")
        assert state["learner"]["last_iter"] > 4
        assert len(state["buffer"]["ring"]["slots"]) == count

    def test_priorities_follow_the_updates(self):
        main, create = configs(priority=True, priority_IS_weight=True, random_collect_size=50)
        main["policy"]["other"] = dict(replay_buffer=dict(beta=0.6))
        serial_pipeline_offline((main, create), seed=0, max_train_iter=8)
        state = read_file("run/ckpt/resume.pth.tar")["buffer"]
        assert len(state["ring"]["slots"]) == 100
        assert len(np.unique(state["priorities"]["values"])) > 50
        assert state["first_beta"] == 0.6

    def test_a_batch_by_priority_has_no_more_than_there_is(self, rows):
        save_file("demo.pkl", rows[:10])
        serial_pipeline_offline(configs(priority=True), seed=0)
        assert read_file("run/ckpt/resume.pth.tar")["learner"]["last_iter"] == 2

    def test_by_priority_samples_are_not_used_up(self):
        main, create = configs(priority=True)
        main["policy"]["other"] = dict(replay_buffer=dict(max_use=1))
        serial_pipeline_offline((main, create), seed=0)
        assert read_file("run/ckpt/resume.pth.tar")["learner"]["last_iter"] == 14

    def test_environments_normalise_as_the_data_is_normalised(self, rows):
        main, create = configs()
        main["policy"]["collect"]["normalize_states"] = True
        main["policy"]["eval"]["evaluator"]["n_episode"] = 2
        seen = []

        class Policy(DQNPolicy):
            def _forward_learn(self, data):
                seen.append(data.column("obs"))
                return super()._forward_learn(data)

        POLICY_REGISTRY.register("seeing", force_overwrite=True)(Policy)
        create["policy"] = dict(type="seeing")
        serial_pipeline_offline((main, create), seed=0, max_train_iter=7)
        obs = torch.stack([row["obs"] for row in rows])
        assert torch.cat(seen).mean(0).abs().max() < 1e-4
        config, _ = read_config("run/formatted_total_config.py")
        stats = config.env.norm_obs.offline_stats
        assert stats.mean == pytest.approx(obs.mean(0).tolist(), abs=1e-6)
        assert stats.std == pytest.approx((obs.std(0, correction=0) + 1e-3).tolist(), abs=1e-6)
        # A run of that config again, and an evaluation, normalise by the same.
        serial_pipeline_offline("run/formatted_total_config.py", seed=0, max_train_iter=1)
        assert eval("run/formatted_total_config.py", load_path="run/ckpt/ckpt_best.pth.tar") > 0

    def test_the_command_line_takes_the_pipeline_that_suits(self):
        main, create = configs()
        create["policy"] = dict(type="discrete_cql")
        Path("config.py").write_text(f"main_config, create_config = {main!r}, {create!r}\n")
        line = ["-c", "config.py", "--train-iter", "2"]
        for named in ([], ["-m", "serial_offline"]):
            done = CliRunner().invoke(cli, [*named, *line])
            assert done.exit_code == 0, done.output
            assert "-m serial_offline" in done.output
        done = CliRunner().invoke(cli, [*named, *line, "--env-step", "5"])
        assert done.exit_code == 1


@pytest.mark.parametrize("buffer", ["naive", "advanced", "deque"])
def test_the_replay_buffer_of_a_run_is_a_data_set(buffer):
    main, create = configs()
    main["exp_name"] = "online"
    main["policy"]["collect"] = dict(n_sample=20)
    main["policy"]["other"] = dict(replay_buffer=dict(replay_buffer_size=70))
    create["replay_buffer"] = dict(type=buffer)
    serial_pipeline((main, create), seed=0, max_env_step=100)
    data = transitions_of(create_dataset(EasyDict(main_with("online"))))
    assert len(data) == 70
    # The newest 70 steps of one environment, in their order.
    follows = (data.column("obs")[1:] == data.column("next_obs")[:-1]).all(-1)
    assert follows.sum() >= 60
    serial_pipeline_offline(configs("online", learn=dict(train_epoch=1)), seed=0)
    assert run_facts()["train_iter"] == 5


def main_with(data_path):
    return configs(data_path)[0]


def test_a_missing_or_empty_data_set_leaves_no_folder():
    with pytest.raises(CheckpointError, match=r"demo\.pkl"):
        serial_pipeline_offline(configs())
    save_file("demo.pkl", [])
    with pytest.raises(DataError, match="empty list"):
        serial_pipeline_offline(configs())
    with pytest.raises(ConfigError, match=r"policy\.collect\.data_path"):
        serial_pipeline_offline(configs(data_path=None))
    assert not Path("run").exists()


@pytest.mark.slow
def test_learns_better_than_its_demonstrations(learned):
    """The controller with 80 % random actions holds the pole for some 40 steps."""
    save_file("demo.pkl", demonstrations(10000, noise=0.8, seed=learned.seed))
    learn = dict(batch_size=64, target_update_freq=100, learning_rate=5e-4)
    main, create = configs(learn=learn, discount_factor=0.97)
    main["policy"]["learn"].update(train_epoch=30)
    main["policy"]["model"]["encoder_hidden_size_list"] = [64, 64]
    main["policy"]["eval"]["evaluator"]["eval_freq"] = 200
    main["env"].update(stop_value=195, n_evaluator_episode=8)
    serial_pipeline_offline((main, create), seed=learned.seed)
    learned.at_most(195 / run_facts()["best_return"], 1.0, f"{run_facts()}")

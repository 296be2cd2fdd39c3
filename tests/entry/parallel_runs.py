"""Small parallel configs with real parts."""

import copy
import glob
import json
import os

from easydict import EasyDict

from ding.utils import read_file
from ding.utils.callbacks import RunCallback


class Diary(RunCallback):
    """Writes the names of called methods to ``diary.txt``."""

    def __getattribute__(self, name):
        if name.startswith("on_"):
            with open("diary.txt", "a") as file:
                print(name, file=file)
        return super().__getattribute__(name)


def assert_all_was_told(path="diary.txt"):
    with open(path) as file:
        called = file.read().split()
    assert (called[0], called[-1]) == ("on_start", "on_end")
    assert set(called) == {
        *("on_start", "on_collect", "on_episode", "on_evaluation", "on_checkpoint", "on_end")
    }
    assert called.count("on_end") == 1


def small_configs(exp_name="run", stop_value=5, **system):
    """CartPole, on which any policy reaches 5 and none 501."""
    main = dict(
        exp_name=exp_name,
        env=dict(
            env_id="CartPole-v1",
            max_episode_steps=50,
            collector_env_num=2,
            evaluator_env_num=2,
            n_evaluator_episode=2,
            stop_value=stop_value,
        ),
        policy=dict(
            model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[8]),
            learn=dict(batch_size=16, learner=dict(learner_num=1, send_policy_freq=5)),
            collect=dict(n_sample=16, collector=dict(collector_num=1, update_policy_second=0.2)),
            other=dict(
                replay_buffer=dict(replay_buffer_size=500),
                commander=dict(collector_task_space=1, learner_task_space=1, eval_interval=0.5),
            ),
        ),
    )
    create = dict(
        env=dict(type="gymnasium"),
        env_manager=dict(type="base"),
        policy=dict(type="dqn"),
        learner=dict(type="base"),
        collector=dict(type="zergling"),
        commander=dict(type="solo"),
        comm_learner=dict(type="flask_fs"),
        comm_collector=dict(type="flask_fs"),
    )
    system = dict(
        coordinator=dict(), path_data=f"{exp_name}/data", path_policy=f"{exp_name}/policy", **system
    )
    return [EasyDict(copy.deepcopy(part)) for part in (main, create, system)]


def saved_iteration(exp_name="run"):
    """Of the learner's state in a run's folder; 0 if there is none."""
    paths = glob.glob(f"{exp_name}/ckpt/learner_*.pth.tar")
    return read_file(paths[0])["learner"]["last_iter"] if paths else 0


def go_on_from_here(configs):
    """Let a run that was interrupted go on for some updates after the learner's last state."""
    main, _, _ = configs
    main.policy.learn.resume_training = True
    main.policy.learn.learner.train_iterations = saved_iteration(main.exp_name) + 5
    # A run that starts from the beginning saves this.
    os.remove(f"{main.exp_name}/ckpt/iteration_0.pth.tar")


def assert_went_on(exp_name="run"):
    with open(f"{exp_name}/run.json", encoding="utf-8") as file:
        record = json.load(file)
    assert record["status"] == "finished"
    assert record["train_iter"] > 5
    assert record["envstep"] > 0
    assert not os.path.exists(f"{exp_name}/ckpt/iteration_0.pth.tar")

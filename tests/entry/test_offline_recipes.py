"""The three steps of users' offline scripts: train an expert, save what it does, learn from that.

Their configs are written as such scripts have them, with all their keys, and are run small.
"""

import copy
import sys

import pytest
import torch

from ding.entry import collect_demo_data, eval, serial_pipeline, serial_pipeline_offline
from ding.utils.errors import ConfigError

pytest.importorskip("h5py")

EVAL = dict(evaluator=dict(eval_freq=-1))


def create_config(env, policy, **others):
    module = f"dizoo.classic_control.{env}.envs.{env}_env"
    return dict(
        env=dict(type=env, import_names=[module]),
        env_manager=dict(type="base"),
        policy=dict(type=policy),
        **others,
    )


def env_config(stop_value, **others):
    counts = dict(collector_env_num=2, evaluator_env_num=2, n_evaluator_episode=2)
    return dict(**counts, stop_value=stop_value, max_episode_steps=20, **others)


def run(name, env, model, policy, create):
    main = dict(exp_name=name, env=env, policy=dict(cuda=False, model=model, **policy))
    return copy.deepcopy(main), copy.deepcopy(create)


def learner(folder):
    checkpoint = f"./{folder}/ckpt/ckpt_best.pth.tar"
    hook = dict(load_ckpt_before_run=checkpoint, save_ckpt_after_run=False)
    return dict(load_path=checkpoint, hook=hook)


def cartpole_cql(step):
    model = dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16, 16], num_quantiles=4)
    eps = dict(type="exp", start=0.95, end=0.1, decay=10000)
    buffer = dict(replay_buffer_size=60)
    common = dict(priority=step != "cql", discount_factor=0.97, nstep=1, eval=EVAL)
    if step == "cql":
        learn = dict(train_epoch=2, batch_size=16, learning_rate=1e-3, target_update_freq=100)
        collect = dict(
            n_sample=1, data_type="hdf5", data_path="./cartpole_generation/expert_demos.hdf5"
        )
        learn["min_q_weight"] = 10.0
    else:
        learn = dict(update_per_collect=3, batch_size=16, learning_rate=1e-3, kappa=1.0)
        collect = dict(n_sample=8, unroll_len=1)
        eps["collect"] = 0.2
    if step == "generation":
        collect.update(data_type="hdf5", save_path="./cartpole_generation/expert.pkl")
        learn["learner"] = learner("cartpole_generation")
    policy = dict(**common, learn=learn, collect=collect, other=dict(eps=eps, replay_buffer=buffer))
    type_ = "cql_discrete" if step == "cql" else "qrdqn"
    name = "cartpole_cql" if step == "cql" else "cartpole_generation"
    return run(name, env_config(100), model, policy, create_config("cartpole", type_))


def pendulum(step, expert, offline):
    norm = dict(norm_obs=dict(use_norm=False), norm_reward=dict(use_norm=False), act_scale=True)
    hidden = dict(actor_head_hidden_size=16, critic_head_hidden_size=16)
    type_ = offline if step == "offline" else expert
    space = "regression" if type_.startswith("td3") else "reparameterization"
    model = dict(obs_shape=3, action_shape=1, twin_critic=True, action_space=space, **hidden)
    learn = dict(batch_size=16, target_theta=0.005, discount_factor=0.99, ignore_done=True)
    if type_.startswith("td3"):
        learn.update(learning_rate_actor=1e-3, learning_rate_critic=1e-3, actor_update_freq=2)
        learn.update(noise=True, noise_sigma=0.2, noise_range=dict(min=-0.5, max=0.5))
    else:
        rates = ("learning_rate_q", "learning_rate_policy", "learning_rate_alpha")
        learn.update(dict.fromkeys(rates, 3e-4), alpha=0.2, auto_alpha=False)
    collect = dict(n_sample=10, noise_sigma=0.1) if type_ == "td3" else dict(n_sample=10)
    if step == "generation":
        collect.update(data_type="hdf5", save_path=f"./{expert}/expert.pkl")
        learn["learner"] = learner(expert)
    if step == "offline":
        collect = dict(data_type="hdf5", data_path=f"./{expert}/expert_demos.hdf5")
        learn["train_epoch"] = 2
    policy = dict(
        random_collect_size=16 if step == "expert" else 0,
        learn={**learn, "update_per_collect": 1} if step != "offline" else learn,
        collect=collect,
        command=dict(),
        eval=EVAL,
        other=dict(replay_buffer=dict(replay_buffer_size=60)),
    )
    name = offline if step == "offline" else expert
    create = create_config("pendulum", type_, replay_buffer=dict(type="naive"))
    return run(name, env_config(-250, **norm), model, policy, create)


def generate(config, by_state):
    """As the scripts do it: with the state that they load themselves, or its path."""
    policy = config[0]["policy"]
    path = policy["learn"]["learner"]["load_path"]
    weights = (
        dict(state_dict=torch.load(path, map_location="cpu", weights_only=True))
        if by_state
        else dict(state_dict_path=path)
    )
    collect_demo_data(
        config,
        collect_count=policy["other"]["replay_buffer"]["replay_buffer_size"],
        seed=0,
        expert_data_path=policy["collect"]["save_path"],
        **weights,
    )


def test_cartpole_cql(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    serial_pipeline(cartpole_cql("expert"), seed=0, max_train_iter=6)
    generate(cartpole_cql("generation"), by_state=True)
    assert (tmp_path / "cartpole_generation/expert_demos.hdf5").is_file()
    assert not (tmp_path / "cartpole_generation/expert.pkl").exists()
    serial_pipeline_offline(cartpole_cql("cql"), seed=0)
    best = "cartpole_cql/ckpt/ckpt_best.pth.tar"
    assert eval(cartpole_cql("cql"), seed=0, load_path=best) > 0


@pytest.mark.parametrize(
    ("expert", "offline"),
    [
        ("td3", "td3_bc"),
        pytest.param("sac", "cql", marks=pytest.mark.slow),
        pytest.param("td3", "iql", marks=pytest.mark.slow),
        pytest.param("sac", "edac", marks=pytest.mark.slow),
    ],
)
def test_pendulum(tmp_path, monkeypatch, expert, offline):
    monkeypatch.chdir(tmp_path)
    serial_pipeline(pendulum("expert", expert, offline), seed=0, max_train_iter=6)
    generate(pendulum("generation", expert, offline), by_state=False)
    serial_pipeline_offline(pendulum("offline", expert, offline), seed=0)
    assert (tmp_path / offline / "ckpt/ckpt_best.pth.tar").is_file()


def test_without_h5py_nothing_is_collected(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    config = cartpole_cql("generation")
    with pytest.raises(ConfigError, match="needs h5py"):
        collect_demo_data(config, seed=0, collect_count=9, expert_data_path="expert.pkl")

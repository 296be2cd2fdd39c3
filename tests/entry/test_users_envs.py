"""Configs as users have them, for the environments that they name, reach their first update."""

import importlib.util

import gymnasium
import pytest
from easydict import EasyDict

from ding.config.check import Notes
from ding.config.compile import compile_run_config
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.utils import ENV_REGISTRY

EPS = dict(type="exp", start=0.95, end=0.1, decay=1000)
DQN = dict(
    nstep=1,
    discount_factor=0.99,
    learn=dict(update_per_collect=1, batch_size=8, learning_rate=1e-3, target_update_freq=100),
    collect=dict(n_sample=16, unroll_len=1),
    other=dict(eps=EPS, replay_buffer=dict(replay_buffer_size=1000)),
)
PPO = dict(
    learn=dict(epoch_per_collect=1, batch_size=8, learning_rate=3e-4, adv_norm=True),
    collect=dict(n_sample=16, unroll_len=1, discount_factor=0.99, gae_lambda=0.95),
)
SAC = dict(
    random_collect_size=16,
    learn=dict(
        update_per_collect=1,
        batch_size=8,
        learning_rate_q=1e-3,
        learning_rate_policy=1e-3,
        learning_rate_alpha=3e-4,
        alpha=0.2,
        auto_alpha=False,
        reparameterization=True,
        target_theta=0.005,
        discount_factor=0.99,
    ),
    collect=dict(n_sample=16, unroll_len=1),
    other=dict(replay_buffer=dict(replay_buffer_size=1000)),
    command=dict(),
)
SETTINGS = {"dqn": DQN, "ppo": PPO, "sac": SAC, "bdq": DQN}
NORM = dict(
    norm_obs=dict(use_norm=True, offline_stats=dict(use_offline_stats=False)),
    norm_reward=dict(use_norm=True, reward_discount=0.99),
    use_act_scale=True,
)
DIZOO = "dizoo.{}.envs.{}_env"


def gaussian(obs_shape, action_shape):
    """A continuous actor's network as SAC's configs have it."""
    return dict(
        obs_shape=obs_shape,
        action_shape=action_shape,
        twin_critic=True,
        action_space="reparameterization",
        actor_head_hidden_size=16,
        critic_head_hidden_size=16,
    )


def plain(obs_shape, action_shape, **more):
    return dict(
        obs_shape=obs_shape, action_shape=action_shape, encoder_hidden_size_list=[16, 16], **more
    )


# Type, its module, what it needs, keys of the environment, policy, network.
CASES = [
    ("cartpole", "classic_control.cartpole", "", dict(env_id="CartPole-v0"), "dqn", plain(4, 2)),
    ("cartpole", "classic_control.cartpole", "", dict(), "ppo", plain(4, 2)),
    ("pendulum", "classic_control.pendulum", "", dict(act_scale=True), "sac", gaussian(3, 1)),
    ("pendulum", "classic_control.pendulum", "", dict(continuous=False), "dqn", plain(3, 11)),
    ("acrobot", "classic_control.acrobot", "", dict(env_id="Acrobot-v1"), "dqn", plain(6, 3)),
    ("mountain_car", "classic_control.mountain_car", "", dict(), "dqn", plain(2, 3)),
    (
        *("lunarlander", "box2d.lunarlander", "Box2D"),
        *(dict(env_id="LunarLander-v2", is_train=True), "dqn", plain(8, 4)),
    ),
    (
        *("lunarlander", "box2d.lunarlander", "Box2D"),
        *(dict(env_id="LunarLanderContinuous-v2", act_scale=True), "sac", gaussian(8, 2)),
    ),
    (
        *("bipedalwalker", "box2d.bipedalwalker", "Box2D"),
        *(dict(env_id="BipedalWalker-v3", act_scale=True, rew_clip=True), "sac", gaussian(24, 4)),
    ),
    (
        *("carracing", "box2d.carracing", "Box2D"),
        *(dict(env_id="CarRacing-v2", continuous=False, max_episode_steps=20), "dqn"),
        dict(obs_shape=[3, 96, 96], action_shape=5, encoder_hidden_size_list=[8, 8, 16]),
    ),
    ("taxi", "taxi", "", dict(env_id="Taxi-v3", max_episode_steps=30), "dqn", plain(34, 6)),
    (
        *("frozen_lake", "frozen_lake", ""),
        *(dict(env_id="FrozenLake-v1", map_name="4x4", is_slippery=False), "dqn", plain(16, 4)),
    ),
    ("cliffwalking", "cliffwalking", "", dict(max_episode_steps=30), "dqn", plain(48, 4)),
    ("bitflip", "bitflip", "", dict(n_bits=4), "dqn", plain(8, 4)),
    (
        *("gym_hybrid", "gym_hybrid", ""),
        *(dict(env_id="Moving-v0", act_scale=True, max_step=20), "ppo"),
        dict(
            obs_shape=10,
            action_shape=dict(action_type_shape=3, action_args_shape=2),
            action_space="hybrid",
            encoder_hidden_size_list=[16, 16],
        ),
    ),
    (
        *("mujoco", "mujoco", "mujoco"),
        *(dict(env_id="Hopper-v3", max_step=30, **NORM), "sac", gaussian(11, 3)),
    ),
    (
        *("mujoco", "mujoco", "mujoco"),
        *(dict(env_id="Ant-v3", max_step=30, delay_reward_step=5, **NORM), "ppo"),
        plain(111, 8, action_space="continuous"),
    ),
    (
        *("mujoco", "mujoco", "mujoco"),
        *(dict(env_id="Hopper-v3", max_step=30, action_bins_per_branch=4), "bdq"),
        dict(
            obs_shape=11,
            num_branches=3,
            action_bins_per_branch=4,
            encoder_hidden_size_list=[16, 16],
        ),
    ),
    (
        *("d4rl", "d4rl", "mujoco"),
        *(dict(env_id="hopper-medium-v0", max_step=30, **NORM), "sac", gaussian(11, 3)),
    ),
    (
        *("atari", "atari", "ale_py"),
        *(dict(env_id="PongNoFrameskip-v4", frame_stack=4, max_step=12), "dqn"),
        dict(obs_shape=[4, 84, 84], action_shape=6, encoder_hidden_size_list=[8, 8, 16]),
    ),
    (
        *("minigrid", "minigrid", "minigrid"),
        *(dict(env_id="MiniGrid-Empty-8x8-v0", max_step=10), "ppo", plain(2835, 7)),
    ),
]
IDS = [f"{case[0]}-{case[3].get('env_id', 'default')}-{case[4]}" for case in CASES]


def config(type_, module, env, policy, model):
    main = EasyDict(
        exp_name="run",
        env=dict(
            collector_env_num=2, evaluator_env_num=1, n_evaluator_episode=1, stop_value=1e9, **env
        ),
        policy=dict(
            cuda=False,
            model=model,
            eval=dict(evaluator=dict(eval_freq=1000)),
            **SETTINGS[policy],
        ),
    )
    if policy == "ppo":
        main.policy.action_space = model.get("action_space", "discrete")
    create = EasyDict(
        env=dict(type=type_, import_names=[DIZOO.format(module, type_)]),
        env_manager=dict(type="base"),
        policy=dict(type=policy),
    )
    return main, create


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("type_", "module", "needs", "env", "policy", "model"), CASES, ids=IDS)
def test_first_update(type_, module, needs, env, policy, model):
    main, create = config(type_, module, env, policy, model)
    notes = Notes()
    compile_run_config(main, create, notes=notes, strict=True)
    line, *ids = notes.adapted
    assert f"no module 'dizoo'; the type {type_!r} of this package is used instead" in line
    assert len(ids) == (env.get("env_id") in OLD)
    if needs and importlib.util.find_spec(needs) is None:
        pytest.skip(f"the package {needs} is not installed")
    pipeline = serial_pipeline_onpolicy if policy == "ppo" else serial_pipeline
    trained = pipeline((main, create), seed=0, max_train_iter=1)
    assert trained is not None


#: Ids of which a line says what they are now.
OLD = {
    *("LunarLander-v2", "LunarLanderContinuous-v2", "CarRacing-v2", "Hopper-v3"),
    *(["Taxi-v3"] if "Taxi-v3" not in gymnasium.registry else []),
    *("Ant-v3", "hopper-medium-v0"),
}


THEIRS = """
from ding.envs import GymnasiumEnv
from ding.utils import ENV_REGISTRY


@ENV_REGISTRY.register("acrobot")
class AcroBotEnv(GymnasiumEnv):
    default_id = "Acrobot-v1"
"""


def test_a_collection_that_is_installed_comes_first(tmp_path, monkeypatch):
    package = tmp_path / "dizoo_of_users" / "acrobot" / "envs"
    package.mkdir(parents=True)
    (package / "acrobot_env.py").write_text(THEIRS)
    monkeypatch.syspath_prepend(tmp_path)
    ours = ENV_REGISTRY.get("acrobot")
    replaced = set(ENV_REGISTRY._replaced)
    main, create = config("acrobot", "acrobot", {}, "dqn", plain(6, 3))
    create.env.import_names = ["dizoo_of_users.acrobot.envs.acrobot_env"]
    notes = Notes()
    try:
        compile_run_config(main, create, notes=notes)
        assert ENV_REGISTRY.get("acrobot").__name__ == "AcroBotEnv"
        assert notes.adapted == []
    finally:
        ENV_REGISTRY["acrobot"] = ours
        ENV_REGISTRY._replaced = replaced

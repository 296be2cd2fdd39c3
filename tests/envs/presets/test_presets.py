"""Environments that configs name by a type."""

import importlib.util
import sys

import gymnasium
import numpy as np
import pytest
from easydict import EasyDict

from ding.envs import get_vec_env_setting
from ding.envs.env._make import current_id, old_id_line
from ding.envs.env.env_implementation_check import check_all
from ding.utils.errors import ActionError, ConfigError, EnvError


def needs(module):
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"the package {module} is not installed")


BOX2D, MUJOCO, ALE, MINIGRID = map(needs, ("Box2D", "mujoco", "ale_py", "minigrid"))


def make(type_, caller="collector", **cfg):
    cfg = EasyDict(cfg, type=type_, collector_env_num=1, evaluator_env_num=1)
    env_cls, collector, evaluator = get_vec_env_setting(cfg)
    return env_cls((collector if caller == "collector" else evaluator)[0])


CASES = [
    ("cartpole", {}, (4,), "Discrete(2)"),
    ("pendulum", dict(env_id="Pendulum-v0"), (3,), "Box(-2.0, 2.0, (1,), float32)"),
    ("pendulum", dict(use_act_scale=True), (3,), "Box(-1.0, 1.0, (1,), float32)"),
    ("pendulum", dict(continuous=False), (3,), "Discrete(11)"),
    ("acrobot", {}, (6,), "Discrete(3)"),
    ("mountain_car", {}, (2,), "Discrete(3)"),
    ("mountain_car", dict(env_id="MountainCarContinuous-v0"), (2,), "Box(-1.0, 1.0, (1,)"),
    ("taxi", dict(env_id="Taxi-v3"), (34,), "Discrete(6)"),
    ("frozen_lake", dict(map_name="8x8", is_slippery=False), (64,), "Discrete(4)"),
    ("cliffwalking", dict(max_episode_steps=20), (48,), "Discrete(4)"),
    ("bitflip", dict(n_bits=5), (10,), "Discrete(5)"),
    ("deep_sea", dict(size=4), (16,), "Discrete(2)"),
    ("gym_hybrid", {}, (10,), "'action_args': Box([ 0. -1.], 1.0, (2,), float32)"),
    ("gym_hybrid", dict(env_id="Sliding-v0", act_scale=True), (10,), "Discrete(3)"),
    ("gym_hybrid", dict(env_id="HardMove-v0", num_actuators=3), (10,), "Discrete(8)"),
    pytest.param("lunarlander", dict(env_id="LunarLander-v2"), (8,), "Discrete(4)", marks=BOX2D),
    pytest.param("lunarlander", dict(continuous=True), (8,), "(2,), float32", marks=BOX2D),
    pytest.param("bipedalwalker", dict(max_step=50), (24,), "(4,), float32", marks=BOX2D),
    pytest.param("carracing", dict(max_step=5), (3, 96, 96), "Discrete(5)", marks=BOX2D),
    pytest.param("mujoco", dict(env_id="Hopper-v3"), (11,), "(3,), float32", marks=MUJOCO),
    pytest.param("mujoco", dict(env_id="Ant-v3", max_step=50), (111,), "(8,)", marks=MUJOCO),
    pytest.param("mujoco", dict(env_id="Humanoid-v2"), (376,), "(-0.4, 0.4, (17,)", marks=MUJOCO),
    pytest.param(
        *("mujoco", dict(env_id="HalfCheetah-v5", max_step=50, action_bins_per_branch=3)),
        *((17,), "MultiDiscrete([3 3 3 3 3 3])"),
        marks=MUJOCO,
    ),
    pytest.param("d4rl", dict(env_id="walker2d-expert-v0"), (17,), "(6,)", marks=MUJOCO),
    pytest.param(
        *("atari", dict(env_id="PongNoFrameskip-v4", max_step=20), (4, 84, 84), "Discrete(6)"),
        marks=ALE,
    ),
    pytest.param(
        *("atari", dict(env_id="ALE/Pong-v5", frame_stack=2, max_step=20)),
        *((2, 84, 84), "Discrete(6)"),
        marks=ALE,
    ),
    pytest.param(
        "minigrid", dict(env_id="MiniGrid-Empty-8x8-v0", max_step=9), (2835,), "(7)", marks=MINIGRID
    ),
]


@pytest.mark.parametrize(("type_", "cfg", "shape", "action_space"), CASES)
def test_spaces_and_rules(type_, cfg, shape, action_space):
    env = make(type_, **cfg)
    assert env.observation_space.shape == shape
    assert env.observation_space.dtype == np.float32
    assert action_space in str(env.action_space)
    check_all(env)
    env.close()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("CartPole-v0", "CartPole-v0"),
        ("CartPole-v77", "CartPole-v77"),
        ("Nothing-v0", "Nothing-v0"),
        ("Pendulum-v0", "Pendulum-v1"),
        ("LunarLanderContinuous-v2", "LunarLanderContinuous-v3"),
        ("BipedalWalker-v2", "BipedalWalker-v3"),
        ("HalfCheetah-v2", "HalfCheetah-v4"),
        ("HalfCheetah-v5", "HalfCheetah-v5"),
    ],
)
def test_old_ids(old, new):
    assert current_id(old) == (new, {})
    assert (old_id_line(old) is None) == (old == new)
    assert current_id("Ant-v2") == ("Ant-v4", {"use_contact_forces": True})
    assert "with use_contact_forces=True" in old_id_line("Ant-v2")


def test_choices_of_a_torque():
    cut, whole = make("pendulum", continuous=False), make("pendulum")
    for choice, torque in ((0, -2.0), (5, 0.0), (7, 0.8), (10, 2.0)):
        for env in (cut, whole):
            env.seed(0, dynamic_seed=False)
            env.reset()
        ours, theirs = cut.step(np.array([choice])), whole.step(np.array([torque], np.float32))
        assert ours.obs == pytest.approx(theirs.obs, abs=1e-6)
        assert ours.reward == pytest.approx(theirs.reward)


def test_actions_beyond_the_bounds():
    """Clipped where the simulators clip, refused where the config says so; NaN always refused."""
    env = make("pendulum")
    ends = []
    for torque in (2.0, 7.0):
        env.seed(0, dynamic_seed=False)
        env.reset()
        ends.append(env.step(np.array([torque], np.float32)).obs)
    assert np.array_equal(*ends)
    with pytest.raises(ActionError, match="NaN"):
        env.step(np.array([np.nan], np.float32))
    strict = make("pendulum", clip_action=False)
    strict.reset()
    with pytest.raises(ActionError, match=r"'Pendulum-v1' .*7\..* beyond the bounds.*-2\.0"):
        strict.step(np.array([7.0], np.float32))


def test_taxis_features():
    env = make("taxi")
    env.seed(3)
    features = env.reset()
    taxi = env.build().unwrapped
    row, column, passenger, goal = taxi.decode(int(taxi.s))
    expected = np.zeros(34)
    expected[[5 * row + column, 25 + passenger, 30 + goal]] = 1
    assert np.array_equal(features, expected)


def test_bits():
    env = make("bitflip", n_bits=3)
    env.seed(0)
    for _ in range(5):
        obs = env.reset()
        wrong = np.flatnonzero(obs[:3] != obs[3:])
        assert len(wrong) > 0
        for bit in wrong:
            timestep = env.step(np.array([bit]))
        assert timestep.info["terminated"]
        assert timestep.info["eval_episode_return"] == 1.0
    obs = env.reset()
    right = np.flatnonzero(obs[:3] == obs[3:])
    bit = right[0] if len(right) else 0
    rewards = [env.step(np.array([bit])) for _ in range(3)]
    assert [float(step.reward[0]) for step in rewards] == [0, 0, 0]
    assert rewards[-1].info["truncated"]
    with pytest.raises(ConfigError, match=r"env\.n_bits is 0"):
        make("bitflip", n_bits=0)


def test_treasure_of_the_deep_sea():
    env = make("deep_sea", size=3)
    env.seed(0)
    for actions, returned in (((1, 1, 1), 0.99), ((1, 0, 1), -0.02 / 3), ((0, 0, 0), 0.0)):
        cells = [int(env.reset().argmax())]
        for action in actions:
            timestep = env.step(np.array([action]))
            cells.append(int(timestep.obs.argmax()))
        assert timestep.info["terminated"]
        assert timestep.info["eval_episode_return"] == pytest.approx(returned)
        assert cells[1:3] == ([4, 8] if all(actions) else [4, 6] if actions[0] else [3, 6])
    with pytest.raises(ConfigError, match=r"env\.size is 0"):
        make("deep_sea", size=0)


def pilot(obs):
    """Turn to the target, go there at a fifth of the speed, stop in it."""
    heading, way, speed = obs[4:6], obs[6:8], np.hypot(*obs[2:4])
    cross, dot = heading[0] * way[1] - heading[1] * way[0], heading @ way
    off = np.arctan2(cross, dot)
    args = np.array([0.4, np.clip(off / (np.pi / 2), -1, 1)], np.float32)
    if obs[8] or (abs(off) > 0.3 and speed > 0):
        kind = 2
    else:
        kind = 1 if abs(off) > 0.1 else 0
        args[0] = 0.4 if speed == 0 else 0.0
    return {"action_type": np.array([kind]), "action_args": args}


class TestHybrid:
    def test_a_way_to_the_target(self):
        env = make("gym_hybrid")
        env.seed(1)
        obs = env.reset()
        total, distance = 0.0, float(np.hypot(*obs[6:8]))
        for _ in range(200):
            timestep = env.step(pilot(obs))
            obs = timestep.obs
            total += float(timestep.reward[0])
            if timestep.done:
                break
        assert timestep.info["terminated"]
        assert timestep.info["eval_episode_return"] == pytest.approx(total, abs=1e-5)
        # The way that was made, the prize, and a little for the steps.
        left, steps = float(np.hypot(*obs[6:8])), round(float(obs[9]) * 200)
        assert total == pytest.approx(distance - left + 1 - 0.001 * steps, abs=1e-4)

    def test_arguments_of_other_types_do_nothing(self):
        env = make("gym_hybrid", act_scale=True)
        ends = []
        for thrust in (-1.0, 1.0):
            env.seed(0, dynamic_seed=False)
            env.reset()
            args = np.array([thrust, 0.5], np.float32)
            ends.append(env.step({"action_type": np.array([1]), "action_args": args}).obs)
        assert np.array_equal(*ends)

    def test_sliding_goes_on_where_it_went(self):
        env = make("gym_hybrid", env_id="Sliding-v0")
        env.seed(0)
        env.reset()
        nothing = np.zeros(2, np.float32)
        before = env.step({"action_type": 0, "action_args": np.array([1, 0], np.float32)}).obs
        after = env.step({"action_type": 1, "action_args": np.array([0, 1], np.float32)}).obs
        assert after[2:4] == pytest.approx(before[2:4])
        assert after[4:6] @ before[4:6] == pytest.approx(0, abs=1e-6)
        assert np.hypot(*env.step({"action_type": 2, "action_args": nothing}).obs[2:4]) == 0

    @pytest.mark.parametrize(
        ("action", "words"),
        [
            (np.array([1]), "expected a dict of action_args, action_type"),
            ({"action_type": 3, "action_args": np.zeros(2, np.float32)}, "action_type.*0 to 2"),
            ({"action_type": 0, "action_args": np.zeros(3, np.float32)}, "action_args.*shape"),
            ({"action_type": 0, "action_args": np.full(2, -0.5, np.float32)}, "beyond the bounds"),
        ],
    )
    def test_bad_actions(self, action, words):
        env = make("gym_hybrid")
        env.reset()
        with pytest.raises(ActionError, match=words):
            env.step(action)

    def test_no_such_task(self):
        with pytest.raises(ConfigError, match=r"'Mooving-v0'.*Moving-v0, Sliding-v0"):
            make("gym_hybrid", env_id="Mooving-v0")


@pytest.mark.parametrize(
    ("type_", "env_id", "module", "extra"),
    [
        ("atari", "PongNoFrameskip-v4", "ale_py", "atari"),
        ("minigrid", "MiniGrid-Empty-8x8-v0", "minigrid", "minigrid"),
        ("mujoco", "Hopper-v3", "mujoco", "mujoco"),
        ("gymnasium", "ALE/Breakout-v5", "ale_py", "atari"),
        ("gymnasium", "LunarLander-v3", "Box2D", "box2d"),
    ],
)
def test_a_missing_simulator(type_, env_id, module, extra, monkeypatch):
    loaded = (module, "gymnasium.envs.mujoco", "gymnasium.envs.box2d")
    for name in [m for m in sys.modules if m.startswith(loaded)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    if module in ("ale_py", "minigrid"):
        monkeypatch.delitem(gymnasium.registry, env_id, raising=False)
    with pytest.raises(EnvError, match=rf"{env_id}.*pip install \"ding\[{extra}\]\""):
        make(type_, env_id=env_id).reset()


def test_ids_of_other_simulators():
    with pytest.raises(ConfigError, match=r"pybullet.*Hopper-v5"):
        make("mujoco", env_id="HopperBulletEnv-v0")
    with pytest.raises(ConfigError, match=r"'pen-human-v0'.*halfcheetah, hopper"):
        make("d4rl", env_id="pen-human-v0")
    for type_ in ("mujoco", "atari", "minigrid"):
        with pytest.raises(ConfigError, match=r"env\.env_id is None: .*need an id"):
            make(type_)


def wrappers_of(env):
    found, inner = set(), env.build()
    while isinstance(inner, gymnasium.Wrapper):
        found.add(type(inner).__name__)
        inner = inner.env
    return found


@ALE
def test_what_evaluations_of_a_game_see():
    pong = dict(env_id="PongNoFrameskip-v4")
    trained = wrappers_of(make("atari", **pong))
    evaluated = wrappers_of(make("atari", "evaluator", **pong))
    assert trained - evaluated == {"EpisodicLifeWrapper", "ClipRewardWrapper", "RawRewards"}
    assert wrappers_of(make("atari", is_train=False, **pong)) == evaluated
    assert "ClipRewardWrapper" not in wrappers_of(make("atari", clip_rewards=False, **pong))
    assert make("atari", fram_stack=2, **pong).observation_space.shape == (2, 84, 84)


@ALE
def test_starts_of_a_game():
    """They are random, determined by the seed, and the game is not reloaded for each."""
    env = make("atari", "evaluator", env_id="PongNoFrameskip-v4")
    game, loads = env.build().unwrapped, []
    load = game.load_game
    game.load_game = lambda: (loads.append(1), load())

    def played():
        env.seed(3)
        frames = []
        for _ in range(4):
            frames.append(env.reset())
            for _ in range(3):
                frames.append(env.step(np.array([2])).obs)
        return np.stack(frames)

    first = played()
    assert len(loads) == 1
    assert len({frames.tobytes() for frames in first[3::4]}) > 1
    assert np.array_equal(first, played())
    again = make("atari", env_id="PongNoFrameskip-v4")
    again.seed(3)
    assert np.array_equal(again.reset(), first[0])

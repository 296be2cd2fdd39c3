import numpy as np
import pytest
from easydict import EasyDict

from ding.envs import BaseEnvManager, get_vec_env_setting
from ding.envs.games import GridSpreadEnv, MatrixGameEnv
from ding.utils.errors import ActionError, ConfigError

STAY, UP, DOWN, LEFT, RIGHT = range(5)
KINDS = (MatrixGameEnv, GridSpreadEnv)


def begun(kind, **cfg):
    env = kind(cfg)
    env.seed(0)
    env.reset()
    return env


def put(env, agents, landmarks):
    env.agents, env.landmarks = np.array(agents), np.array(landmarks)


@pytest.mark.parametrize("kind", KINDS)
def test_observations_and_actions_are_of_their_spaces(kind):
    env = kind({})
    env.seed(3)
    for _ in range(4):
        obs, done = env.reset(), False
        total = 0.0
        while not done:
            assert env.observation_space.contains(obs)
            obs, reward, done, info = env.step(env.random_action())
            assert reward.shape == (1,)
            assert reward.dtype == np.float32
            total += float(reward[0])
        assert info["eval_episode_return"] == pytest.approx(total)
        assert info["terminated"] is not info["truncated"]


@pytest.mark.parametrize(
    ("first", "second", "paid"), [(0, (1, 1), 7), (1, (0, 0), 0), (1, (1, 1), 8)]
)
def test_the_first_agent_chooses_the_table(first, second, paid):
    env = begun(MatrixGameEnv)
    step = env.step([first, 0])
    assert not step.done
    assert step.reward[0] == 0
    assert step.obs["global_state"].argmax() == first
    step = env.step(second)
    assert step.done
    assert step.reward[0] == paid
    assert step.info["terminated"]


def test_a_table_of_ones_own():
    env = begun(MatrixGameEnv, payoff=[[1, 2], [3, 4]])
    step = env.step(np.array([1, 0]))
    assert step.done
    assert step.reward[0] == 3
    np.testing.assert_array_equal(step.obs["agent_state"], [[1, 1, 0], [1, 0, 1]])


def test_who_stands_on_all_landmarks_wins():
    env = begun(GridSpreadEnv, agent_num=2, size=3)
    put(env, [(0, 0), (2, 2)], [(0, 1), (2, 0)])
    step = env.step([UP, DOWN])
    assert step.reward[0] == pytest.approx(-0.1)
    assert not step.done
    step = env.step([STAY, DOWN])
    assert step.reward[0] == 1
    assert step.done
    assert step.info["terminated"]
    assert step.info["eval_episode_return"] == pytest.approx(0.9)

    put(env, [(0, 0), (0, 2)], [(0, 1), (2, 0)])  # two on one landmark count once
    assert env.step([UP, DOWN]).reward[0] == pytest.approx(-0.1)


def test_an_agent_sees_itself_the_landmarks_and_the_others():
    env = begun(GridSpreadEnv, agent_num=2, size=3)
    put(env, [(0, 0), (2, 1)], [(0, 1), (2, 2)])
    obs = env.step([STAY, STAY]).obs
    np.testing.assert_allclose(obs["agent_state"][0], [0, 0, 0, 0.5, 1, 1, 1, 0.5])
    np.testing.assert_allclose(obs["agent_state"][1], [1, 0.5, -1, 0, 0, 0.5, -1, -0.5])
    np.testing.assert_array_equal(obs["agent_alone_state"], obs["agent_state"][:, :6])
    np.testing.assert_array_equal(obs["agent_alone_padding_state"][:, :6], obs["agent_alone_state"])
    np.testing.assert_array_equal(obs["agent_alone_padding_state"][:, 6:], 0)
    np.testing.assert_allclose(obs["global_state"], [0, 0, 1, 0.5, 0, 0.5, 1, 1])
    np.testing.assert_array_equal(obs["action_mask"], [[1, 1, 0, 0, 1], [1, 1, 1, 1, 0]])


def test_a_limit_truncates():
    env = begun(GridSpreadEnv, size=2, max_episode_steps=2)
    put(env, [(0, 0), (0, 0)], [(1, 1), (0, 1)])
    env.step([STAY, STAY])
    step = env.step([LEFT, DOWN])
    assert step.done
    assert step.info["truncated"]


def test_a_saved_game_continues_in_the_same_way():
    one, other = begun(GridSpreadEnv), GridSpreadEnv({})
    other.load_state_dict(one.state_dict())
    expected = one.reset()
    for key, part in other.reset().items():
        np.testing.assert_array_equal(part, expected[key])


@pytest.mark.parametrize("action", [[0], [0, 9], None, [0, -1]])
@pytest.mark.parametrize("kind", KINDS)
def test_actions_that_there_are_not(kind, action):
    with pytest.raises(ActionError, match="one for each of 2 agents"):
        begun(kind).step(action)


@pytest.mark.parametrize(
    ("kind", "cfg", "key"),
    [
        (MatrixGameEnv, {"game": "chess"}, "env.game"),
        (MatrixGameEnv, {"payoff": [[1, 2]]}, "env.payoff"),
        (MatrixGameEnv, {"agent_num": 3}, "env.agent_num"),
        (GridSpreadEnv, {"agent_num": 5, "size": 2}, "env.size"),
    ],
)
def test_games_that_cannot_be(kind, cfg, key):
    with pytest.raises(ConfigError, match=key):
        kind(cfg)


@pytest.mark.parametrize("kind", ["matrix_game", "grid_spread"])
def test_an_env_manager_drives_it(kind):
    cfg = EasyDict(type=kind, collector_env_num=3, evaluator_env_num=1)
    env_cls, collect_cfg, _ = get_vec_env_setting(cfg)
    manager = BaseEnvManager([lambda c=c: env_cls(c) for c in collect_cfg], EasyDict())
    manager.seed(0)
    manager.launch()
    _, obs = manager.ready_columns()
    assert obs["agent_state"].shape[:2] == (3, 2)
    step = manager.step_columns(np.zeros((3, 2), np.int64), np.arange(3))
    assert step.reward.shape == (3,)
    manager.close()

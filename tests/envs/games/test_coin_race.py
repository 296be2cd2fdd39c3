import numpy as np
import pytest
from easydict import EasyDict

from ding.envs import BaseEnvManager, get_vec_env_setting
from ding.envs.games import CoinRaceEnv
from ding.utils.errors import ActionError, ConfigError

STAY, UP, DOWN, LEFT, RIGHT = range(5)


def made(**cfg):
    env = CoinRaceEnv(cfg)
    env.seed(0)
    env.reset()
    return env


def put(env, first, second, coin):
    env.players, env.coin = [first, second], coin


def towards_coin(row):
    x, y = row[:2]
    if abs(x) >= abs(y):
        return RIGHT if x > 0 else LEFT if x < 0 else STAY
    return UP if y > 0 else DOWN


def test_each_player_sees_the_game_from_its_own_place():
    env = made(size=5, goal=4)
    put(env, (0, 0), (4, 4), (1, 3))
    obs = env.step([STAY, DOWN]).obs
    assert obs.dtype == np.float32
    np.testing.assert_allclose(obs[0], [0.25, 0.75, 1, 0.75, 0, 0, 0, 0])
    np.testing.assert_allclose(obs[1], [-0.75, 0, -1, -0.75, 1, 0.75, 0, 0])
    assert env.observation_space.contains(obs)


def test_a_coin_is_the_takers_gain_and_the_others_loss():
    env = made(size=5)
    put(env, (0, 0), (4, 4), (4, 3))
    timestep = env.step([UP, DOWN])
    np.testing.assert_array_equal(timestep.reward, [-1, 1])
    assert not timestep.done
    assert env.coin not in env.players
    np.testing.assert_allclose(timestep.obs[:, 6:], [[0, 0.2], [0.2, 0]])


@pytest.mark.parametrize(
    ("players", "moves", "after", "is_taken"),
    [
        ([(0, 1), (2, 1)], [RIGHT, LEFT], [(1, 1), (1, 1)], True),  # by both: it is lost
        ([(0, 0), (2, 2)], [LEFT, UP], [(0, 0), (2, 2)], False),  # the wall holds
    ],
)
def test_moves_without_a_gain(players, moves, after, is_taken):
    env = made(size=3)
    put(env, *players, (1, 1))
    np.testing.assert_array_equal(env.step(moves).reward, [0, 0])
    assert env.players == after
    assert (env.coin != (1, 1)) is is_taken


def test_who_has_all_coins_wins():
    env = made(size=5, goal=2)
    for _ in range(2):
        put(env, (0, 0), (4, 4), (1, 0))
        timestep = env.step([RIGHT, STAY])
    assert timestep.done
    ends = {"terminated": True, "truncated": False}
    assert timestep.info == [
        {"eval_episode_return": 2.0, "result": "wins", **ends},
        {"eval_episode_return": -2.0, "result": "losses", **ends},
    ]


def test_no_player_wins_in_time():
    env = made(max_episode_steps=3)
    put(env, (0, 0), (6, 6), (3, 3))
    dones = [env.step([STAY, STAY]) for _ in range(3)]
    assert [timestep.done for timestep in dones] == [False, False, True]
    info = dones[-1].info[1]
    assert info["truncated"]
    assert info["result"] == "draws"
    assert dones[0].info == [{}, {}]


def play(env, episodes=2):
    coins = []
    for _ in range(episodes):
        env.reset()
        done = False
        while not done:
            coins.append(env.coin)
            done = env.step([UP, RIGHT] if len(coins) % 2 else [RIGHT, DOWN]).done
    return coins


def test_a_seed_settles_the_coins():
    first, second = made(), made()
    assert play(first) == play(second)
    state = first.state_dict()
    expected = play(first)
    second.load_state_dict(state)
    assert play(second) == expected


def test_the_same_coins_in_every_episode_if_asked_for():
    env = made()
    env.seed(3, dynamic_seed=False)
    assert play(env, 1) == play(env, 1)
    env.seed(3)
    assert play(env, 1) != play(env, 1)


def test_one_player_against_one_who_goes_straight_to_the_coin():
    env = made(size=5, eval_opponent="RULE_BASED")
    assert env.observation_space.contains(env.reset())
    assert env.action_space.n == 5
    put(env, (0, 0), (4, 4), (3, 2))
    timestep = env.step(np.array(RIGHT))
    assert env.observation_space.contains(timestep.obs)
    assert env.players == [(1, 0), (4, 3)]
    assert timestep.info == {}
    env.step(STAY)
    timestep = env.step(np.array([STAY]))
    assert env.players[1] == (3, 2)
    np.testing.assert_array_equal(timestep.reward, [-1])
    assert env.reward_space.contains(timestep.reward)


def test_the_result_against_an_opponent():
    env = made(size=5, goal=1, eval_opponent="RULE_BASED")
    put(env, (0, 0), (4, 4), (4, 3))
    *_, done, info = env.step(STAY)
    assert (done, info["eval_episode_return"], info["result"]) == (True, -1, "losses")


def test_an_opponent_that_moves_at_random_is_settled_by_the_seed():
    def cells():
        env = made(eval_opponent="random")
        return [(env.step(STAY), env.players[1])[1] for _ in range(20)]

    assert cells() == cells()
    assert len(set(cells())) > 3


@pytest.mark.parametrize("action", [[0], [0, 5], [0, -1], 3, [0, "up"]])
def test_no_such_move(action):
    with pytest.raises(ActionError, match="one for each of 2 players"):
        made().step(action)
    with pytest.raises(ActionError, match="one for each of 1 players"):
        made(eval_opponent="random").step([0, 1])


@pytest.mark.parametrize("cfg", [{"size": 1}, {"player_num": 3}, {"eval_opponent": "me"}])
def test_no_such_game(cfg):
    with pytest.raises(ConfigError, match=f"env.{next(iter(cfg))}"):
        CoinRaceEnv(cfg)


def test_skill_beats_chance():
    cfg = EasyDict(type="coin_race", collector_env_num=4, evaluator_env_num=1)
    env_fn, cfgs, _ = get_vec_env_setting(cfg)
    manager = BaseEnvManager([lambda c=c: env_fn(c) for c in cfgs], EasyDict(cfg_type="x"))
    manager.seed(0)
    manager.launch()
    rng = np.random.default_rng(0)
    leads = []
    while len(leads) < 20:
        env_ids, obs = manager.ready_columns()
        actions = [[towards_coin(rows[0]), rng.integers(5)] for rows in obs]
        step = manager.step_columns(np.array(actions), env_ids)
        assert step.reward.shape == (4, 2)
        leads += [infos[0]["eval_episode_return"] for infos in step.infos.values()]
    manager.close()
    assert np.mean(leads) > 4.5

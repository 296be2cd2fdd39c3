"""What environments return wrongly, and spaces that policies cannot use: cause and cure."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ding.envs import BaseEnv, BaseEnvManager, BaseEnvTimestep, DingEnvWrapper
from ding.utils.errors import EnvDataError, EnvError

OBS = np.zeros(2, np.float32)


class PlainEnv(gymnasium.Env):
    """Two steps long; what ``step`` and ``reset`` return can be replaced."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, results=(), first=(OBS, {}), **attributes):
        self.results, self.first = list(results), first
        vars(self).update(attributes)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return self.first

    def step(self, action):
        self.steps += 1
        if self.results:
            result = self.results.pop(0)
            if isinstance(result, BaseException):
                raise result
            return result
        return OBS, 1.0, self.steps == 2, False, {}


class OldEnv(BaseEnv):
    """The same as a `BaseEnv`."""

    observation_space = PlainEnv.observation_space
    action_space = PlainEnv.action_space

    def __init__(self, results):
        self.results = list(results)

    def reset(self):
        return OBS

    def step(self, action):
        return self.results.pop(0)

    def seed(self, seed, dynamic_seed=True):
        pass

    def close(self):
        pass


@pytest.fixture
def stepped(request):
    """Steps two environments once, of which the second one returns what it should not."""
    managers = []

    def step(make, result, columns):
        manager = BaseEnvManager([lambda: make([]), lambda: make([result])])
        managers.append(manager)
        manager.launch()
        if columns:
            return manager.step_columns(np.zeros(2, int), np.arange(2))
        return manager.step({0: 0, 1: 0})

    yield step
    for manager in managers:
        manager.close()


def wrapped(results):
    return DingEnvWrapper(PlainEnv(results))


def scaled(results):
    """One whose actions are not plain numbers, which is stepped in another way."""
    return DingEnvWrapper(PlainEnv(results, action_space=spaces.MultiDiscrete([2])))


def old(results):
    return OldEnv(results or [BaseEnvTimestep(OBS, 1.0, False, {})])


@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "returned None, expected"),
        ((OBS, 1.0, False), "3 values, expected"),
        ((OBS, 1.0, False, {}), "4 values, .*old API of gym; split done"),
        ((OBS, [1.0], False, False, {}), r"the reward \[1.0\] \(a list\), expected a number"),
        ((OBS, "one", False, False, {}), "the reward 'one'"),
        ((OBS, {"a": 1}, False, False, {}), "the reward a dict of 'a'"),
        ((OBS, 1.0, [False], False, {}), r"returned \[False\] \(a list\) as terminated"),
        ((OBS, 1.0, True, False, None), "returned None as info"),
        ((OBS, 1.0, False, False, "ok"), "returned 'ok' .* as info"),
    ],
)
def test_steps_of_gymnasium(stepped, result, words, columns):
    with pytest.raises(EnvError, match=rf"^env 1 \(DingEnvWrapper\(PlainEnv\)\): .*{words}"):
        stepped(wrapped, result, columns)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ((OBS, 1.0, False, False, {}), "5 values, .*DingEnvWrapper"),
        ((OBS, 1.0, True, None), "returned None as info"),
        ((OBS, 1.0, [False], {}), "as done"),
        ((OBS, "one", False, {}), "the reward 'one'"),
        (3, r"returned 3 \(a int\)"),
    ],
)
def test_steps_of_a_base_env(stepped, result, words):
    with pytest.raises(EnvError, match=rf"^env 1.*: .*{words}"):
        stepped(old, result, True)


def test_steps_of_other_actions(stepped):
    manager = BaseEnvManager([lambda: scaled([(OBS, 1.0)])])
    manager.launch()
    with pytest.raises(EnvError, match=r"^env 0 \(.*2 values, expected \(obs, reward, term"):
        manager.step({0: np.zeros(1, int)})
    manager.close()


@pytest.mark.parametrize("make", [wrapped, old])
def test_no_reward(stepped, make):
    result = (OBS, None, False, False, {}) if make is wrapped else (OBS, None, False, {})
    with pytest.raises(EnvDataError, match=r"env 1 gave reward nan \(NaN or None\)"):
        stepped(make, result, True)


@pytest.mark.parametrize(
    "reward", [np.array([1.0]), np.array(1.0), np.float32(1), 1, True, np.bool_(True)]
)
def test_rewards_that_are_numbers(stepped, reward):
    step = stepped(wrapped, (OBS, reward, True, False, {}), True)
    assert step.reward.tolist() == [1.0, 1.0]
    assert step.infos[1]["eval_episode_return"] == 1.0


def test_exit_of_an_environment(stepped):
    with pytest.raises(EnvError, match=r"env 1 .*failed in step\(\): it called sys.exit\(3\)"):
        stepped(wrapped, SystemExit(3), True)
    with pytest.raises(EnvError, match=r"env 0 .*could not be made: it called sys.exit\(\)"):
        BaseEnvManager([lambda: exit_now()]).launch()


def exit_now():
    raise SystemExit


def test_where_its_code_failed(stepped):
    with pytest.raises(EnvError, match=r"ValueError: oops \(.*test_answers.py:\d+\)$"):
        stepped(wrapped, ValueError("oops"), True)


def test_no_step_at_all():
    inner = gymnasium.Env()
    inner.observation_space = PlainEnv.observation_space
    inner.action_space = PlainEnv.action_space
    env = DingEnvWrapper(inner)
    with pytest.raises(EnvError, match=r"reset\(\) of env 'Env' returned None"):
        env.reset()


@pytest.mark.parametrize(
    ("obs", "words"),
    [
        (None, "None, .*return the observation"),
        ("hello", "'hello' .*Box"),
        ([[1], [1, 2]], "a list"),
        ({"a": OBS}, "a dict of 'a'.*declare a Dict space"),
        (np.zeros(3, np.float32), r"float32 array of shape \(3,\), .*Box\(-1.0, 1.0, \(2,\)"),
    ],
)
def test_observations_beside_their_space(obs, words):
    with pytest.raises(EnvError, match=f"the observation of env 'PlainEnv' is .*{words}"):
        DingEnvWrapper(PlainEnv(first=(obs, {}))).reset()


@pytest.mark.parametrize("number", [0.5, 256, -1])
def test_numbers_in_an_image_that_are_no_bytes(number):
    env = PlainEnv(first=(np.full((2, 2), number), {}))
    env.observation_space = spaces.Box(0, 255, (2, 2), np.uint8)
    with pytest.raises(EnvError, match=r"are no uint8, .*declare Box\(low, high, \(2, 2\)"):
        DingEnvWrapper(env).reset()


def test_a_number_without_an_axis():
    env = PlainEnv(first=(np.float32(0.5), {}))
    env.observation_space = spaces.Box(-1, 1, (), np.float32)
    env = DingEnvWrapper(env)
    assert env.observation_space.shape == env.reset().shape == (1,)


@pytest.mark.parametrize("name", ["observation_space", "action_space"])
def test_no_space(name):
    with pytest.raises(EnvError, match=rf"'PlainEnv' has no {name} \(it is None\): set self"):
        DingEnvWrapper(PlainEnv(**{name: None})).reset()


def test_reset_without_a_seed():
    class OldReset(PlainEnv):
        def reset(self):
            return OBS, {}

    env = DingEnvWrapper(OldReset())
    env.seed(0)
    with pytest.raises(EnvError, match=r"define reset\(self, \*, seed=None, options=None\)"):
        env.reset()

import numpy as np
import pytest
from gymnasium import spaces

from ding.envs import DingEnvWrapper
from ding.envs.env import (
    check_all,
    check_array_space,
    check_different_memory,
    demonstrate_correct_procedure,
)
from ding.utils.errors import EnvError
from tests.envs.small_envs import CountEnv


def test_good_env_passes():
    check_all(DingEnvWrapper(CountEnv()))
    demonstrate_correct_procedure(lambda cfg: DingEnvWrapper(CountEnv(), cfg))


def test_reused_array_is_found():
    inner = CountEnv()
    kept = np.zeros(2, np.float32)
    inner.observe = lambda: kept
    with pytest.raises(EnvError, match="shares memory"):
        check_all(DingEnvWrapper(inner))


def test_unseeded_env_is_found():
    inner = CountEnv()
    inner.observe = lambda: np.random.rand(2).astype(np.float32)
    with pytest.raises(EnvError, match=r"seed\(0\)"):
        check_all(DingEnvWrapper(inner))


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.zeros(2), "dtype"),
        (np.zeros(3, np.float32), "shape"),
        (np.full(2, 2, np.float32), "outside"),
        (3, "expected an array"),
    ],
)
def test_array_space(array, why):
    with pytest.raises(EnvError, match=why):
        check_array_space(array, spaces.Box(0, 1, (2,)), "obs")


def test_nested_spaces():
    space = spaces.Dict(a=spaces.Tuple([spaces.Box(0, 1, (1,))]))
    check_array_space({"a": (np.ones(1, np.float32),)}, space, "obs")
    with pytest.raises(EnvError, match=r"obs\['a'\]\[0\]"):
        check_array_space({"a": (np.ones(2, np.float32),)}, space, "obs")


def test_different_memory():
    one = np.zeros(2)
    check_different_memory({"a": [one]}, {"a": [one.copy()]}, 1)
    with pytest.raises(EnvError, match="step 3"):
        check_different_memory({"a": [one]}, {"a": [one[:1]]}, 3)

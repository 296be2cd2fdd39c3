import copy

import numpy as np
import pytest
from easydict import EasyDict
from gymnasium import spaces

from ding.envs import (
    BaseEnv,
    BaseEnvTimestep,
    DingEnvWrapper,
    GymnasiumEnv,
    get_env_cls,
    get_vec_env_setting,
    is_truncated,
)
from ding.utils.errors import ConfigError, DingError


class Minimal(BaseEnv):
    def __init__(self, cfg):
        self.action_space = spaces.Discrete(4)

    def reset(self):
        return np.zeros(1, np.float32)

    def step(self, action):
        return self.timestep(np.zeros(1, np.float32), np.zeros(1, np.float32), False, {})

    def seed(self, seed):
        pass

    def close(self):
        pass


def test_timestep_fields():
    assert BaseEnvTimestep._fields == ("obs", "reward", "done", "info")
    assert isinstance(Minimal({}).step(0), BaseEnvTimestep)


def test_abstract_methods_must_be_there():
    class NoStep(Minimal):
        step = BaseEnv.step

    with pytest.raises(TypeError, match="step"):
        NoStep({})


def test_random_action_of_the_base_class():
    action = Minimal({}).random_action()
    assert isinstance(action, np.ndarray)
    assert action.dtype == np.int64
    assert action.shape == (1,)


def test_enable_save_replay_has_no_default():
    with pytest.raises(NotImplementedError, match="Minimal"):
        Minimal({}).enable_save_replay("video")


def test_configs_are_independent_copies():
    cfg = EasyDict(collector_env_num=3, evaluator_env_num=2, inner={"a": [1]})
    before = copy.deepcopy(cfg)
    cfgs = Minimal.create_collector_env_cfg(cfg)
    assert len(cfgs) == 3
    assert len(Minimal.create_evaluator_env_cfg(cfg)) == 2
    cfgs[0]["inner"]["a"].append(2)
    assert cfgs[1]["inner"]["a"] == [1]
    assert cfg == before


@pytest.mark.parametrize("bad", [None, 0, -1, 2.5, "3"])
def test_bad_env_number_names_the_key(bad):
    with pytest.raises(ConfigError, match="collector_env_num"):
        Minimal.create_collector_env_cfg({"collector_env_num": bad})


def test_vec_env_setting():
    cfg = EasyDict(type="gymnasium", env_id="CartPole-v1", collector_env_num=2, evaluator_env_num=3)
    env_fn, collector, evaluator = get_vec_env_setting(cfg)
    assert env_fn is GymnasiumEnv
    assert [c.caller for c in collector] == ["collector"] * 2
    assert [c.caller for c in evaluator] == ["evaluator"] * 3
    assert get_vec_env_setting(cfg, collect=False)[1] is None
    assert get_vec_env_setting(cfg, eval_=False)[2] is None


def test_env_cls_imports_what_the_config_names(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_counting_env.py").write_text(
        "from ding.envs import DingEnvWrapper\n"
        "from ding.utils import ENV_REGISTRY\n"
        "@ENV_REGISTRY.register('my_counting')\n"
        "class Mine(DingEnvWrapper): pass\n"
    )
    cls = get_env_cls(EasyDict(type="my_counting", import_names=["my_counting_env"]))
    assert issubclass(cls, DingEnvWrapper)


def test_unknown_or_missing_type():
    with pytest.raises(DingError, match="gymnasum"):
        get_env_cls(EasyDict(type="gymnasum"))
    with pytest.raises(ConfigError, match=r"env\.type"):
        get_env_cls(EasyDict())


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({}, False),
        ({"truncated": True}, True),
        ({"truncated": False}, False),
        ({"truncated": True, "terminated": True}, False),
        ({"TimeLimit.truncated": True}, True),
        ({"TimeLimit.truncated": False}, False),
    ],
)
def test_is_truncated(info, expected):
    assert is_truncated(info) is expected

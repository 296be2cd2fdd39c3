"""Helpers and base classes that users' env modules import."""

import importlib

import pytest
import torch

from ding.envs.common import EnvElement, EnvElementInfo, EnvElementRunner, div_func, div_one_hot

NAMES = {
    "ding.envs": "ActionRepeatWrapper AllinObsWrapper EnvElementInfo PoolEnvManager RamWrapper "
    "StaticObsNormWrapper EnvState affine_transform save_frames_as_gif",
    "ding.envs.common": "EnvElement EnvElementRunner affine_transform div_func div_one_hot "
    "save_frames_as_gif",
    "ding.envs.common.common_function": "affine_transform div_func div_one_hot",
    "ding.envs.common.env_element": "EnvElement EnvElementInfo IEnvElement",
    "ding.envs.common.env_element_runner": "EnvElementRunner",
    "ding.envs.env_manager": "EnvSupervisor PoolEnvManager",
    "ding.envs.env_manager.envpool_env_manager": "PoolEnvManager",
    "ding.envs.env_manager.subprocess_env_manager": "ShmBuffer",
    "ding.envs.env_wrappers.env_wrappers": "AllinObsWrapper ObsNormWrapper RamWrapper",
}


@pytest.mark.parametrize("module", NAMES)
def test_names_are_where_users_look_for_them(module):
    for name in NAMES[module].split():
        assert getattr(importlib.import_module(module), name) is not None


def test_div_func():
    divided = div_func(torch.tensor([2.0, 4.0]), 2)
    assert divided.tolist() == [[1.0], [2.0]]
    assert div_func(torch.ones(2, 3), 4, unsqueeze_dim=0).shape == (1, 2, 3)


def test_div_one_hot():
    hot = div_one_hot(torch.tensor([0, 4, 5, 10, 99]), 10, 5)
    assert hot.dtype == torch.float32
    assert hot.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]


class Speed(EnvElement):
    _name = "speed"

    def _init(self, top):
        self._shape = (1,)
        self._value = {"min": 0, "max": top}

    def _details(self):
        return f"up to {self._value['max']}"


class SpeedRunner(EnvElementRunner):
    def _init(self, top):
        self._core = Speed(top)

    def reset(self):
        self.now = 0

    def get(self, engine):
        self.now += engine
        return self.now


def test_elements_and_runners():
    runner = SpeedRunner(7)
    assert runner.info == EnvElementInfo(shape=(1,), value={"min": 0, "max": 7})
    assert repr(runner) == "speed: up to 7"
    runner.reset()
    assert [runner.get(2), runner.get(3)] == [2, 5]

    class Empty(Speed):
        def _init(self):
            self._shape = ()

    with pytest.raises(AttributeError, match="_value"):
        Empty()
    with pytest.raises(TypeError, match="abstract"):
        EnvElement()

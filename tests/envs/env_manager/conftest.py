import pytest
from easydict import EasyDict

from ding.envs import BaseEnvManager


@pytest.fixture
def launch():
    """Launches env managers, and closes them at the end."""
    managers = []

    def make(fns, cls=BaseEnvManager, **cfg):
        manager = cls(fns, EasyDict(cfg))
        managers.append(manager)
        manager.launch()
        return manager

    yield make
    for manager in managers:
        manager.close()

import copy

import pytest
from easydict import EasyDict

from ding.model import DQN, VAC, create_model
from ding.utils.errors import ConfigError


@pytest.mark.parametrize(("name", "cls"), [("dqn", DQN), ("vac", VAC)])
def test_builds_the_named_model_and_leaves_the_config(name, cls):
    cfg = EasyDict(type=name, import_names=["ding.model"], obs_shape=4, action_shape=2)
    before = copy.deepcopy(cfg)
    assert isinstance(create_model(cfg), cls)
    assert cfg == before


def test_a_model_of_ones_own_is_imported(tmp_path, monkeypatch):
    (tmp_path / "my_net_module.py").write_text(
        "from torch import nn\n"
        "from ding.utils.registry_factory import MODEL_REGISTRY\n"
        "@MODEL_REGISTRY.register('my_net')\n"
        "class MyNet(nn.Linear):\n"
        "    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    cfg = {"type": "my_net", "import_names": ["my_net_module"], "in_features": 2, "out_features": 3}
    assert create_model(cfg).out_features == 3


def test_an_unknown_type_names_the_known_ones():
    with pytest.raises(KeyError, match=r"dqm.*did you mean .*'dqn'"):
        create_model({"type": "dqm", "obs_shape": 4})


def test_a_missing_type_is_named():
    with pytest.raises(ConfigError, match=r"no 'type' among the keys \['obs_shape'\]"):
        create_model({"obs_shape": 4})

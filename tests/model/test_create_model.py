import copy
import inspect

import pytest
from easydict import EasyDict
from torch import nn

from ding.model import DQN, VAC, create_model
from ding.utils import MODEL_REGISTRY
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


def _takes_activation(name):
    return "activation" in inspect.signature(MODEL_REGISTRY.get(name)).parameters


@pytest.mark.parametrize("name", list(filter(_takes_activation, MODEL_REGISTRY.query())))
def test_activations_by_name(name):
    given = dict(
        obs_shape=4, agent_obs_shape=4, global_obs_shape=5, alone_obs_shape=4, action_shape=2,
        agent_num=2, hidden_size_list=[8, 8], action_space="regression", num_branches=2,
        action_bins_per_branch=2,
    )  # fmt: skip
    if name == "pdqn":
        given["action_shape"] = dict(action_type_shape=2, action_args_shape=1)
    elif name in ("vac", "mavac", "havac", "pg", "ppg"):
        given["action_space"] = "discrete"
    taken = inspect.signature(MODEL_REGISTRY.get(name)).parameters
    given = {key: value for key, value in given.items() if key in taken}
    model = create_model({"type": name, "activation": "softsign", **given})
    assert any(isinstance(layer, nn.Softsign) for layer in model.modules())
    with pytest.raises(KeyError, match="got activation 'tahn': did you mean 'tanh'"):
        create_model({"type": name, "activation": "tahn", **given})

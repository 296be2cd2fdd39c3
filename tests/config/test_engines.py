"""The engine that a config names: known, checked, completed and saved."""

import pytest

from ding.config import compile_config_parallel
from ding.config.check import Notes
from ding.config.compile import complete_parallel
from ding.config.read import read_config_with_system
from ding.utils import ENGINE_REGISTRY
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.worker.engines.local import LocalCarrier


@pytest.fixture
def pigeons():
    """An engine that is registered as ``pigeons``."""

    class Pigeons(LocalCarrier):
        config = dict(speed=1.0, loft=None)

    ENGINE_REGISTRY.register("pigeons", Pigeons)
    yield Pigeons
    del ENGINE_REGISTRY["pigeons"]


def compiled(configs, **kwargs):
    return compile_config_parallel(*configs, save_cfg=False, **kwargs).system.engine


def test_without_a_word_it_is_http_and_folders(configs):
    assert compiled(configs).type == "flask_fs"


@pytest.mark.parametrize("given", ["local", dict(type="local")])
def test_a_name_is_enough(configs, given):
    configs[2].engine = given
    assert compiled(configs).type == "local"


def test_an_unknown_one(configs):
    configs[2].engine = "locla"
    with pytest.raises(UnknownTypeError, match=r"'local'.*system_config\.engine\.import_names"):
        compiled(configs)
    configs[2].engine = 3
    with pytest.raises(ConfigError, match=r"system_config\.engine must be a dict .* got 3"):
        compiled(configs)
    configs[2].engine = dict(type="mine", import_names=["no_such_module"])
    with pytest.raises(ConfigError, match=r"system_config\.engine\.import_names.*no_such_module"):
        compiled(configs)


def test_its_own_keys(configs, pigeons):
    configs[2].engine = dict(type="pigeons", loft="north")
    engine = compiled(configs, strict=True)
    assert (engine.speed, engine.loft) == (1.0, "north")
    configs[2].engine = dict(type="pigeons", sped=2.0)
    with pytest.raises(ConfigError, match=r"engine\.sped: did you mean system_config\.engine\.sp"):
        compiled(configs)
    configs[2].engine = dict(type="pigeons", speed="fast")
    with pytest.raises(ConfigError, match=r"system_config\.engine\.speed must be"):
        compiled(configs)
    configs[2].engine = dict(type="pigeons", colour="grey")
    notes = Notes()
    assert complete_parallel(*configs, notes=notes, joining=True).system.engine.colour == "grey"
    assert set(notes.unknown) == {"system_config.engine.colour"}


def test_it_is_saved(configs):
    configs[2].engine = "local"
    compile_config_parallel(*configs)
    path = f"{configs[0].exp_name}/formatted_total_config.py"
    assert read_config_with_system(path)[2].engine.type == "local"

"""Every Python block of README, CONTRIBUTING and docs/ runs unchanged."""

import functools
import importlib.util

import pytest

import ding.entry
from ding.utils import registries
from tests.docs.fences import FIRST_HOUR, blocks

BLOCKS = [(page, text) for page, text in blocks("python") if page != FIRST_HOUR]
#: Pipelines, and what limits their updates.
LIMITS = {
    "serial_pipeline": "max_train_iter",
    "serial_pipeline_onpolicy": "max_train_iter",
    "serial_pipeline_reward_model_onpolicy": "max_train_iter",
    "serial_pipeline_reward_model_offpolicy": "max_train_iter",
    "serial_pipeline_bc": "max_iter",
}


@pytest.fixture
def _own_registries():
    """Registries without what other tests, which share this process, have registered."""
    others = {}
    for name, registry in registries.items():
        keys = [
            key
            for key, cls in registry.items()
            if cls.__module__.startswith(("tests.", "documented_"))
        ]
        others[name] = {key: registry.pop(key) for key in keys}
    yield
    for name, registry in registries.items():
        for key in [key for key, cls in registry.items() if cls.__module__ == "snippet"]:
            del registry[key]
        registry.update(others[name])


@pytest.mark.usefixtures("_own_registries")
@pytest.mark.parametrize(("page", "text"), BLOCKS, ids=[page for page, _ in BLOCKS])
def test_block(page, text, monkeypatch):
    if "LunarLander" in text and importlib.util.find_spec("Box2D") is None:
        pytest.skip("LunarLander needs the extra [box2d]")
    if "ding.plot" in text:
        pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    monkeypatch.setenv("DING_CONSOLE", "quiet")
    for name, limit in LIMITS.items():
        short = functools.partial(getattr(ding.entry, name), **{limit: 1})
        monkeypatch.setattr(ding.entry, name, short)
    exec(compile(text, page, "exec"), {"__name__": "snippet"})

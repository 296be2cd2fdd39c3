"""`policy.learn.compile`: what is compiled, and what is said where that cannot be."""

import shutil

import pytest
import torch

from ding.config.compile import compile_run_config
from ding.utils.errors import ConfigError
from tests.policy.attributes import model_of


@pytest.fixture
def compiled(monkeypatch):
    """The modules that were compiled, with their modes; nothing is."""
    calls = []
    monkeypatch.setattr(
        torch.nn.Module, "compile", lambda module, mode=None: calls.append((module, mode))
    )
    return calls


def test_nothing_is_compiled_by_default(make_dqn, compiled):
    make_dqn()
    assert compiled == []


def test_network_and_target_are_compiled(make_dqn, compiled):
    policy = make_dqn(learn=dict(compile=True))
    assert [mode for _, mode in compiled] == [None, None]
    assert compiled[0][0] is model_of(policy)


def test_modes_are_handed_on(make_ppo, compiled):
    make_ppo(learn=dict(compile="reduce-overhead"))
    assert [mode for _, mode in compiled] == ["reduce-overhead"]


def test_who_does_not_learn_compiles_nothing(make_dqn, compiled):
    make_dqn(enable_field=["collect"], learn=dict(compile=True))
    assert compiled == []


def test_unknown_modes_are_refused(make_dqn, compiled):
    with pytest.raises(ConfigError, match=r"policy\.learn\.compile is 'fast'; expected"):
        make_dqn(learn=dict(compile="fast"))


def test_no_compiler_is_reported(make_dqn, compiled, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs a C\+\+ compiler.*set the key to None"):
        make_dqn(learn=dict(compile=True))
    assert compiled == []


@pytest.mark.parametrize("mode", [True, False, None, "reduce-overhead"])
def test_configs_may_name_a_mode(mode):
    main = dict(
        env=dict(env_id="CartPole-v1", collector_env_num=1, evaluator_env_num=1, stop_value=1),
        policy=dict(model=dict(obs_shape=4, action_shape=2), learn=dict(compile=mode)),
    )
    types = dict(env="gymnasium", env_manager="base", policy="dqn")
    create = {part: dict(type=name) for part, name in types.items()}
    cfg = compile_run_config(main, create, strict=True)
    assert cfg.policy.learn.compile == mode

"""The classes that docs/extending.md shows, pasted into a module of a user's own, and run."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import tests
from ding.entry import serial_pipeline
from ding.policy import DQNPolicy, PPOPolicy, create_policy
from ding.policy.command_mode_policy_instance import (
    DQNCommandModePolicy,
    EpsCommandModePolicy,
    PPOCommandModePolicy,
    with_command_mode,
)
from ding.utils import BUFFER_REGISTRY, ENV_REGISTRY, POLICY_REGISTRY, SERIAL_COLLECTOR_REGISTRY
from ding.utils.errors import UnknownTypeError

GUIDE = Path(next(iter(tests.__path__))).parent / "docs/extending.md"
REGISTRIES = (BUFFER_REGISTRY, ENV_REGISTRY, POLICY_REGISTRY, SERIAL_COLLECTOR_REGISTRY)


@pytest.fixture
def paste(tmp_path, monkeypatch):
    """``paste("Your own policy")``: the code under that heading as an importable module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    names = []

    def paste_(heading):
        section = GUIDE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
        name = "own_" + heading.rpartition(" ")[2]
        (tmp_path / f"{name}.py").write_text(re.findall(r"```python\n(.*?)```", section, re.S)[0])
        names.append(name)
        return name

    yield paste_
    for registry in REGISTRIES:
        for kind, cls in list(registry.items()):
            if cls.__module__ in (*names, __name__):
                del registry[kind]
    for name in names:
        sys.modules.pop(name, None)


def train(paste, max_train_iter=40, policy=None, create=None, **env):
    env = {"env_id": "CartPole-v1", **env}
    main = dict(
        exp_name="run",
        env=dict(collector_env_num=2, evaluator_env_num=2, n_evaluator_episode=2, **env),
        policy=dict(
            model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16]),
            learn=dict(learner=dict(hook=dict(log_show_after_iter=10))),
        ),
    )
    for key, value in (policy or {}).items():
        main["policy"].setdefault(key, {}).update(value)
    module = paste("Your own policy")
    parts = dict(
        env=dict(type="gymnasium"),
        env_manager=dict(type="base"),
        policy=dict(type="mine", import_names=[module]),
    )
    return serial_pipeline((main, {**parts, **(create or {})}), 0, max_train_iter=max_train_iter)


def logged(name):
    rows = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    return [row[name] for row in rows if name in row]


def test_a_policy_trains_and_what_it_returns_is_logged(paste):
    policy = train(paste)
    assert type(policy).__name__ == "MyCommandModePolicy"
    for name in ("total_loss_avg", "q_value_avg"):
        values = logged(f"learner_iter/{name}")
        assert len(values) >= 4
        assert 0.0 not in values
    assert logged("learner_iter/cur_lr_avg") == []  # it does not return that


def test_it_explores_if_its_config_says_how(paste):
    eps = dict(eps=dict(type="exp", start=0.9, end=0.1, decay=1000))
    policy = train(paste, policy=dict(other=eps), max_train_iter=4)
    setting = policy.command_mode.get_setting_collect({"envstep": 0, "learner_step": 0})
    assert setting == {"eps": pytest.approx(0.9)}


def test_a_buffer_a_collector_and_an_environment(paste):
    train(
        paste,
        policy=dict(model=dict(obs_shape=1), collect=dict(n_sample=80)),
        create=dict(
            env=dict(type="guess", import_names=[paste("Your own environment")]),
            replay_buffer=dict(type="newest", import_names=[paste("Your own buffer")]),
            collector=dict(type="growing", import_names=[paste("Your own collector")]),
        ),
        stop_value=10,
    )
    assert logged("evaluator_iter/reward_mean")


def test_a_commander(paste):
    module = __import__(paste("Your own commander"))

    class Collector:
        envstep = 2000

    assert module.StepwiseCommander({}, None, Collector(), None, None).step() == {"eps": 0.2}


class TestDerivedCommandModes:
    @pytest.fixture
    def register(self):
        def register_(base, **config):
            cls = type("Mine", (base,), {"config": {**base.config, "type": "own_one", **config}})
            return POLICY_REGISTRY.register("own_one", cls)

        yield register_
        for name in ("own_one", "own_one_command"):
            POLICY_REGISTRY.pop(name, None)

    @pytest.mark.parametrize(
        ("base", "mode"), [(DQNPolicy, DQNCommandModePolicy), (PPOPolicy, PPOCommandModePolicy)]
    )
    def test_of_a_built_in_policys_subclass(self, register, base, mode):
        cls = register(base)
        derived = POLICY_REGISTRY.get("own_one_command")
        assert issubclass(derived, cls)
        assert issubclass(derived, mode)
        assert POLICY_REGISTRY.get("own_one_command") is derived
        assert with_command_mode(derived) is derived

    def test_acts(self, register):
        register(DQNPolicy, model=dict(obs_shape=3, action_shape=2))
        cfg = POLICY_REGISTRY.get("own_one_command").default_config()
        cfg.type = "own_one_command"
        policy = create_policy(cfg)
        assert isinstance(policy, EpsCommandModePolicy)
        setting = policy.command_mode.get_setting_collect({"envstep": 0, "learner_step": 0})
        assert setting == {"eps": pytest.approx(0.95)}
        assert policy.collect_mode.forward({0: torch.zeros(3)}, **setting)[0]["action"] in (0, 1)

    def test_of_a_class_that_is_defined_again(self, register):
        """As in a notebook, whose cells are executed again after a change."""
        text = "@register('own_one')\nclass Mine(base):\n    config = {'type': 'own_one'}\n"
        for file in ("<cell 1>", "<cell 2>"):
            names = {"register": POLICY_REGISTRY.register, "base": DQNPolicy, "__name__": "cells"}
            exec(compile(text, file, "exec"), names)
            assert issubclass(POLICY_REGISTRY.get("own_one_command"), names["Mine"])

    def test_the_error_names_what_was_written(self):
        with pytest.raises(UnknownTypeError, match="no policy type 'dpn' is registered"):
            POLICY_REGISTRY.get("dpn_command")


def test_rows_work_as_well(paste):
    """A policy by the per-environment API only, which returns nothing to log."""
    base = __import__(paste("Your own policy")).MyPolicy

    @POLICY_REGISTRY.register("own_rows")
    class Rows(base):
        def _forward_learn(self, data):
            assert isinstance(data, list | tuple) or len(data)

        def _forward_collect(self, data, **kwargs):
            return {i: {"action": np.array([int(obs[0] > 0)])} for i, obs in data.items()}

        def _forward_eval(self, data):
            return self._forward_collect(data)

    train(paste, create=dict(policy=dict(type="own_rows")), max_train_iter=8)

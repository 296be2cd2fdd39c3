"""The functions that build a component from its config."""

import pytest
from easydict import EasyDict

from ding.policy import create_policy
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.worker import (
    AdvancedReplayBuffer,
    create_buffer,
    create_learner,
    create_serial_collector,
    create_serial_evaluator,
)

MODEL = dict(obs_shape=4, action_shape=2)
CASES = [
    (create_buffer, dict(type="advanced"), "AdvancedReplayBuffer"),
    (create_learner, dict(type="base"), "BaseLearner"),
    (create_serial_collector, dict(type="sample"), "SampleSerialCollector"),
    (create_serial_evaluator, dict(type="interaction"), "InteractionSerialEvaluator"),
    (create_policy, dict(type="dqn", cuda=False, model=MODEL), "DQNPolicy"),
]


@pytest.mark.parametrize("form", [dict, EasyDict])
@pytest.mark.parametrize(("create", "cfg", "name"), CASES)
def test_a_plain_or_easy_dict_with_a_type_is_completed(
    create, cfg, name, form, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    given = form(cfg)
    assert type(create(given)).__name__ == name
    assert given == form(cfg)


@pytest.mark.parametrize(("create", "name"), [(case[0], case[2]) for case in CASES])
def test_errors_name_the_cure(create, name):
    if create is not create_learner:  # whose type may be left out
        with pytest.raises(ConfigError, match=r"no 'type'.*one of"):
            create({"import_names": []})
    with pytest.raises(UnknownTypeError, match="nothing_like_it"):
        create({"type": "nothing_like_it"})
    with pytest.raises(ConfigError, match="must be a dict, got NoneType"):
        create(None)


def test_values_of_a_plain_dict_count_at_any_depth(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    limit = {"push_sample_rate_limit": {"max": 3.0}}
    cfg = {"type": "advanced", "replay_buffer_size": 7, "thruput_controller": limit}
    assert create_buffer(cfg).replay_buffer_size == 7


def test_several_buffers_are_made_from_a_plain_dict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = {"policy": {"replay_buffer_size": 3}, "value": {"replay_buffer_size": 5}}
    buffer = create_buffer({"type": "naive", "multi_buffer": True, **sizes})
    assert buffer.replay_buffer_size == 5


def test_a_complete_config_is_the_one_that_is_used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cfg = AdvancedReplayBuffer.default_config()
    cfg.type = "advanced"
    assert isinstance(create_buffer(cfg), AdvancedReplayBuffer)

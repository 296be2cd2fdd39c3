"""Small parts of pipelines."""

from unittest.mock import Mock

import numpy as np
import pytest
import torch

from ding.entry import AccMetric, mark_not_expert, mark_warm_up, random_collect
from ding.entry.components import build_components, load_config
from ding.utils.errors import ConfigError
from tests.entry.runs import walk_config, walk_envs
from tests.fakes import Writer
from tests.policy.attributes import model_of


@pytest.fixture
def parts():
    cfg = load_config(walk_config(), 0, walk_envs())
    cfg.policy.random_collect_size = 40
    parts = build_components(cfg, Writer(), walk_envs())
    yield parts
    parts.close()


def fill(parts, **options):
    random_collect(
        parts.cfg.policy,
        parts.policy,
        parts.collector,
        parts.collector_env,
        parts.commander,
        parts.replay_buffer,
        **options,
    )


def test_random_collection_fills_the_buffer_and_gives_the_policy_back(parts):
    fill(parts)
    assert parts.replay_buffer.count() == 40
    actions = np.asarray(parts.replay_buffer.sample(40, 0).columns["action"])
    assert 5 < actions.sum() < 35
    with torch.no_grad():
        for parameter in model_of(parts.policy).parameters():
            parameter.zero_()
    data = parts.collector.collect(n_sample=8, policy_kwargs={"eps": 0.0})
    assert not np.asarray(data.columns["action"]).any()  # of equal values the first is taken


def test_samples_can_be_changed_first(parts):
    fill(parts, postprocess_data_fn=lambda data: mark_warm_up(list(data)))
    assert all(row["warm_up"] for row in parts.replay_buffer.sample(10, 0))


def test_nothing_is_collected_unless_asked_for(parts):
    parts.cfg.policy.random_collect_size = 0
    fill(parts)
    assert parts.replay_buffer.count() == 0
    assert parts.collector.envstep == 0


def test_policy_itself_can_act(parts):
    parts.cfg.policy.transition_with_policy_data = True
    fill(parts)
    assert parts.replay_buffer.count() == 40


def test_battles_are_refused(parts):
    parts.cfg.policy.collect.collector.type = "sample_1v1"
    with pytest.raises(ConfigError, match="random_collect_size"):
        fill(parts)


def test_marks():
    assert mark_not_expert([{"a": 1}]) == [{"a": 1, "is_expert": 0}]
    assert mark_warm_up([{"a": 1}]) == [{"a": 1, "warm_up": True}]


def test_accuracy():
    metric = AccMetric()
    logit = torch.tensor([[0.1, 0.9], [0.8, 0.2], [0.4, 0.6], [0.7, 0.3]])
    result = metric.eval({"logit": logit}, torch.tensor([1, 0, 0, 0]))
    assert result == {"Acc": 0.75}
    assert metric.reduce_mean([{"Acc": 0.5}, {"Acc": 1.0}]) == {"Acc": 0.75}
    assert metric.gt({"Acc": 0.5}, None)
    assert metric.gt({"Acc": 0.5}, {"Acc": 0.5})
    assert not metric.gt({"Acc": 0.5}, 0.6)


def test_parts_are_closed_even_if_one_cannot_be(parts, monkeypatch):
    def fail():
        raise ValueError("cannot close")

    close = Mock(wraps=parts.evaluator.close)
    monkeypatch.setattr(parts.evaluator, "close", close)
    monkeypatch.setattr(parts.collector, "close", fail)
    with pytest.raises(ValueError, match="cannot close"):
        parts.close()
    close.assert_called_once_with()
    monkeypatch.undo()

"""Whole runs on each engine: to the goal, from a state, and to each of their other ends."""

import json
import os

import pytest

from ding.entry import parallel_pipeline
from ding.utils.errors import ConfigError
from tests.entry.parallel_runs import small_configs

pytestmark = pytest.mark.timeout(60)


def record():
    with open("run/run.json", encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture
def configs():
    return small_configs(engine="local")


def test_it_trains_to_the_goal(configs, capfd):
    parallel_pipeline(configs, 0)
    found = record()
    assert found["status"] == "converged"
    assert found["envstep"] > 0
    assert {"ckpt_best.pth.tar"} <= set(os.listdir("run/ckpt"))
    assert not {"data", "policy", "coordinator.json"} & set(os.listdir("run"))
    assert "converged: mean return" in capfd.readouterr().out


def test_a_learner_of_several_processes_is_refused(configs):
    configs[2].learner_gpu_num = 2
    with pytest.raises(ConfigError, match="learner_gpu_num=2"):
        parallel_pipeline(configs, 0)

"""Workers written on the bare protocol train with our coordinator and next to our workers."""

import os

import pytest
from easydict import EasyDict

from ding.policy import DQNPolicy
from ding.utils import deep_merge_dicts
from ding.worker.coordinator import Coordinator
from tests.worker.coordinator.fake_workers import eventually
from tests.worker.coordinator.foreign_peers import (
    EPISODE_STEPS,
    ForeignCollector,
    ForeignLearner,
    ForeignSlave,
)

FOLDERS = ("data", "policy")


def config(commander: str, **workers: ForeignSlave) -> EasyDict:
    """A compiled config with foreign workers in its tables."""
    policy = dict(
        type="dqn_command",
        collect=dict(collector=dict(type="zergling")),
        other=dict(
            eps=dict(type="exp", start=0.9, end=0.3, decay=200),
            replay_buffer=dict(type="naive", replay_buffer_size=100),
            commander=dict(
                type=commander, collector_task_space=1, learner_task_space=1, eval_interval=0.5
            ),
        ),
    )
    tables: dict[str, dict[str, list]] = {"collector": {}, "learner": {}}
    for name, worker in workers.items():
        tables[name[:-1]][name] = [name, "127.0.0.1", worker.port]
    main = dict(
        exp_name="exp",
        env=dict(collector_env_num=1, collector_episode_num=5, stop_value=EPISODE_STEPS - 0.5),
        policy=deep_merge_dicts(DQNPolicy.default_config(), policy),
    )
    system = dict(host=None, port=0, path_data="data", path_policy="policy", **tables)
    return EasyDict(main=main, system={"coordinator": system})


@pytest.fixture
def workers():
    for folder in FOLDERS:
        os.makedirs(folder)
    with ForeignCollector(*FOLDERS) as collector, ForeignLearner(*FOLDERS) as learner:
        yield {"collector0": collector, "learner0": learner}


@pytest.mark.slow
def test_foreign_workers_train_with_a_solo_commander(workers):
    coordinator = Coordinator(config("solo", **workers))
    try:
        coordinator.start()
        verdict = coordinator.wait(60)
        assert verdict == ("converged", "mean return 10 reached stop_value 9.5")
        status = coordinator.status()
        assert status["envstep"] >= 5 * EPISODE_STEPS
        assert status["train_iter"] > 0
        assert status["failures"] == []
        state = coordinator.state_dict()
        trainees = state["commander"]["trainees"]
        # None is left if the learner has reported its end by now.
        counted = [trainee["envstep"] for trainee in trainees]
        assert counted in ([], [state["facts"]["envstep"]])
    finally:
        coordinator.close()
    collector, learner = workers["collector0"], workers["learner0"]
    assert "collector_close_task" in collector.refused
    assert learner.refused == []
    assert all(name.startswith("./") for name in collector.names)
    assert {} in collector.settings  # the first was an evaluation
    assert {"eps"} in map(set, collector.settings)
    assert os.listdir("data") == []  # every file was found under its name


@pytest.mark.slow
def test_foreign_workers_train_with_a_naive_commander(workers):
    coordinator = Coordinator(config("naive", **workers))
    try:
        coordinator.start()
        collector = workers["collector0"]
        eventually(lambda: len(collector.settings) >= 4, 60)
        eventually(lambda: coordinator.status()["train_iter"] > 20, 60)
        assert coordinator.status()["failures"] == []
        eps = [setting["eps"] for setting in collector.settings]
        assert eps == sorted(eps, reverse=True)
        assert eps[-1] < eps[0]
    finally:
        coordinator.close()

"""Two learner processes behind an aggregator train one policy, on the CPU."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from easydict import EasyDict

from ding.data.chunks import SharedFolder, write_chunk
from ding.policy.dqn import DQNPolicy
from ding.worker.adapter import LearnerAggregator
from tests.worker.learner.comm.rig import (
    BATCH,
    Asker,
    Failed,
    policy_cfg,
    report,
    rows,
    task_info,
    until,
)

ROOT = Path(__file__).resolve().parents[3]
STATE = "exp/ckpt/state.pth.tar"
SCRIPT = Path(__file__).with_name("ddp_learner.py")


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.leaves_threads(
        "http-client", "callbacks-", "ask-learner", reason="the team's, which lives longer"
    ),
]


class LearnerProcess:
    def __init__(self, folder, rank, seed=0, listen=0, **environ):
        env = dict(
            os.environ,
            **environ,
            OMP_NUM_THREADS="1",
            PYTHONPATH=str(ROOT),
            TEST_SEED=str(seed),
            TEST_PORT=str(listen),
        )
        self.folder, self.rank = folder, rank
        with open(os.path.join(folder, f"output{rank}"), "a") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(SCRIPT), str(folder), str(rank)],
                env=env,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        self.lines = self.process.stdout

    def address(self):
        return self.wait_for("ADDRESS").split()[1].rsplit(":", 1)

    def weights(self):
        path = os.path.join(self.folder, f"weights{self.rank}")
        print(path, file=self.process.stdin, flush=True)
        self.wait_for("DUMPED")
        return torch.load(path, weights_only=True)

    def wait_for(self, word):
        while not (line := self.lines.readline()).startswith(word):
            assert line, Path(self.folder, f"output{self.rank}").read_text()
        return line

    def end(self):
        self.process.kill()
        self.process.wait(10)
        self.process.stdin.close()
        self.lines.close()


class Team:
    def __init__(self, folder):
        self.folder = str(folder)
        self.data = SharedFolder(os.path.join(self.folder, "data"))
        SharedFolder(os.path.join(self.folder, "policy"))
        self.processes = {}

    def process(self, rank, **kwargs):
        self.processes[rank] = LearnerProcess(self.folder, rank, **kwargs)
        return self.processes[rank]


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """Two learners, their aggregator, and its client; made once, as importing torch takes long."""
    team = Team(tmp_path_factory.mktemp("team"))
    try:
        for rank in range(2):
            team.process(rank, seed=rank)
        addresses = {rank: process.address() for rank, process in team.processes.items()}
        team.listen = {rank: int(port) for rank, (_, port) in addresses.items()}
        table = {f"learner{rank}": [f"learner{rank}", *at] for rank, at in addresses.items()}
        cfg = dict(
            host="127.0.0.1",
            port="auto",
            master=dict(host="127.0.0.1", port=0),
            learner=table,
            heartbeat_tolerance=3.0,
        )
        team.aggregator = LearnerAggregator(EasyDict(cfg))
        team.aggregator.start()
        try:
            with Asker(team.aggregator.address) as team.coordinator:
                yield team
        finally:
            team.aggregator.close()
    finally:
        for process in team.processes.values():
            process.end()


def begin(coordinator, **kwargs):
    return coordinator.ask("learner_start_task", task_info=task_info(**kwargs))


def learn(coordinator, draws, *chunks):
    """Permit batches; name chunks, one for each learner in turn."""
    named = [report(name, BATCH, number) for number, name in enumerate(chunks)]
    data = {"draws": draws, "chunks": named}
    return coordinator.ask("learner_learn_task", data=data)["info"]


def test_ranks_stay_equal_and_train_as_one_on_the_joint_batch(team):
    ask = team.coordinator.ask
    # Uniform draws without replacement: all of the eight samples that a learner has.
    cfg = {"type": "naive", "replay_buffer_size": 100}
    begin(team.coordinator, replay_buffer_cfg=cfg)
    parts = {name: rows(BATCH, seed=seed) for seed, name in enumerate(("c0", "c1"))}
    for name, part in parts.items():
        write_chunk(team.data, name, part)
    start = team.processes[0].weights()
    demand = ask("learner_get_data_task", wait=1)
    assert (demand["batch_size"], demand["batch_num"]) == (BATCH, 16)
    learn(team.coordinator, 10, *parts)
    until(lambda: ask("learner_get_data_task", wait=0.1)["cur_learner_iter"] == 5)
    info = learn(team.coordinator, 0)
    assert (info["learner_step"], info["own_rows"]) == (5, 2 * BATCH)
    weights = [team.processes[rank].weights() for rank in range(2)]
    for name, value in weights[0].items():
        assert torch.equal(value, weights[1][name])
        assert not torch.equal(value, start[name])
    assert ask("learner_close_task")["learner_step"] == 5
    # One learner on batches twice as large.
    policy = DQNPolicy(policy_cfg(), enable_field=["learn"])
    state = policy.learn_mode.state_dict()
    policy.learn_mode.load_state_dict({**state, "model": start, "target_model": start})
    # A batch is all that a learner has, in some order.
    for _ in range(5):
        policy.learn_mode.forward([dict(row) for part in parts.values() for row in part])
    for name, value in policy.learn_mode.state_dict()["model"].items():
        torch.testing.assert_close(value, weights[0][name])


def test_failure_of_one_ends_the_others(team):
    ask = team.coordinator.ask
    begin(team.coordinator, buffer_id="bad")
    write_chunk(team.data, "c0", rows(BATCH))
    write_chunk(team.data, "nan", rows(BATCH, nan=True))
    learn(team.coordinator, 2, "c0", "nan")
    with pytest.raises(Failed, match=r"DataError: learner1: "):
        until(lambda: ask("learner_get_data_task", wait=0.5) is None)
    begin(team.coordinator, task_id="learner_task_2", buffer_id="good")
    write_chunk(team.data, "c1", rows(BATCH))
    learn(team.coordinator, 2, "c0", "c1")
    until(lambda: ask("learner_get_data_task", wait=0.1)["cur_learner_iter"] == 1)


def test_killed_learner_fails_the_task_and_a_new_one_takes_its_place(team):
    ask = team.coordinator.ask
    begin(team.coordinator, state_path=STATE, buffer_id="kept")
    for name in ("c0", "c1"):
        write_chunk(team.data, name, rows(BATCH))
    learn(team.coordinator, 8, "c0", "c1")
    until(lambda: ask("learner_get_data_task", wait=0.1)["cur_learner_iter"] == 4)
    team.processes[1].process.send_signal(signal.SIGKILL)
    begun = time.monotonic()
    with pytest.raises(Failed, match="LearnerLost: learner1: "):
        for _ in range(1000):
            learn(team.coordinator, 2)
            ask("learner_get_data_task", wait=0.1)
    assert time.monotonic() - begun < 30
    team.processes[1].end()
    team.process(1, listen=team.listen[1]).address()  # at the place of the one before
    begin(team.coordinator, state_path=STATE, task_id="learner_task_2", buffer_id="kept")
    step = ask("learner_get_data_task", wait=1)["cur_learner_iter"]
    learn(team.coordinator, 4, "c0", "c1")
    until(lambda: ask("learner_get_data_task", wait=0.1)["cur_learner_iter"] == step + 2)
    weights = [team.processes[rank].weights() for rank in range(2)]
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())

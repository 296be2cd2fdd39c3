"""Processes of one learner meet, wherever they are; what keeps them from it is named in time."""

import time

import pytest
import torch

from ding.interaction import TaskFail
from ding.utils import durations
from ding.worker.learner.comm.learner_group import LearnerGroup
from ding.worker.messages import Meeting
from tests.children import forkserver

pytestmark = pytest.mark.timeout(60)
NAMES = ("learner0", "learner1")


@pytest.fixture
def group(monkeypatch):
    monkeypatch.setattr(durations, "GROUP_MEET", 0.5)
    group = LearnerGroup()
    yield group
    group.close()


def met(at, rank):
    return Meeting(at.host, at.port, at.name, NAMES, rank)


def test_a_rank_that_does_not_come_is_named_in_time(group):
    at = group.open("127.0.0.2")
    begun = time.monotonic()
    expected = rf"learner1 \(rank 1\) did not come to 127.0.0.2:{at.port} within 0.5 s"
    with pytest.raises(TaskFail, match=expected) as failed:
        group.meet(met(at, 0))
    assert failed.value.result["of_group"]  # the cause may be with the other one
    assert time.monotonic() - begun < 5


def test_an_address_that_cannot_be_reached_is_named_in_time(group):
    at = group.open("127.0.0.2")
    group.close()
    begun = time.monotonic()
    expected = rf"cannot reach learner0 \(rank 0\) at 127.0.0.2:{at.port} within 0.5 s"
    with pytest.raises(TaskFail, match=expected):
        group.meet(met(at, 1))
    assert time.monotonic() - begun < 5


def _rank(rank, link):
    group = LearnerGroup()
    for _ in range(2):
        at = group.open("127.0.0.2") if rank == 0 else link.recv()
        if rank == 0:
            link.send(at)
        group.meet(met(at, rank))
        mine = torch.tensor([float(rank)])
        torch.distributed.all_reduce(mine)
        link.send(mine.item())
    group.close()


def test_ranks_meet_again_at_the_address_that_rank_0_announces():
    context = forkserver()
    pipes = [context.Pipe() for _ in NAMES]
    children = [
        context.Process(target=_rank, args=(rank, child)) for rank, (_, child) in enumerate(pipes)
    ]
    for child in children:
        child.start()
    (first, _), (second, _) = pipes
    ports = []
    for _ in range(2):
        assert first.poll(50)
        at = first.recv()
        assert at.host == "127.0.0.2"
        ports.append(at.port)
        second.send(at)
        assert [link.recv() for link in (first, second)] == [1.0, 1.0]
    assert ports[0] != ports[1]
    for child in children:
        child.join(20)
        assert child.exitcode == 0

"""A team of learners without a transport."""

import threading

import pytest

from ding.interaction import TaskFail
from ding.utils.json_fields import from_json
from ding.worker.adapter.learner_team import LearnerTeam
from ding.worker.messages import (
    CloseTask,
    DemandRequest,
    Meeting,
    OpenMeeting,
    ResourceRequest,
    Resources,
    StartTask,
)
from ding.worker.seams import Arrival, WorkerFailed, WorkerLost

pytestmark = pytest.mark.timeout(60)


class Peer:
    """Answers with what it is given; with an event, not before that is set."""

    def __init__(self, answer, gate=None):
        self.answer, self.gate = answer, gate
        self.asked, self.began = [], threading.Event()
        self.under_way = self.most_under_way = 0
        self.lock = threading.Lock()

    def ask(self, request, timeout):
        with self.lock:
            self.asked.append(request)
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        self.began.set()
        try:
            if self.gate is not None:
                self.gate.wait(30)
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer
        finally:
            with self.lock:
                self.under_way -= 1


def team_of(*peers):
    names = [f"learner{number}" for number in range(len(peers))]
    team = LearnerTeam(names, lambda arrival, cause: None, "team")
    team.start()
    for name, peer in zip(names, peers):
        team.came(Arrival("learner", name, peer, "here"))
    return team


def test_a_request_under_way_at_the_end_fails_with_its_cause():
    gate = threading.Event()
    answers = (WorkerLost("it is gone"), Resources(), Resources())
    peers = [Peer(answer, gate) for answer in answers]
    team, failures = team_of(*peers), []

    def ask():
        try:
            team.handle(ResourceRequest())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask), threading.Thread(target=team.close)]
    threads[0].start()
    assert all(peer.began.wait(30) for peer in peers)
    team.release("learner1", "as a test")
    threads[1].start()
    assert team.wait(None) == ["learner1"]  # it waits for nothing any more: it is being closed
    gate.set()
    for thread in threads:
        thread.join(30)
    [failure] = failures
    assert isinstance(failure, TaskFail)
    assert failure.message == "LearnerLost: learner0: it is gone"


def test_each_is_sent_its_rank_and_where_rank_0_listens():
    peers = [Peer(Meeting("10.0.0.1", 4711, "once")), Peer(None), Peer(None)]
    team = team_of(*peers)
    team.handle(StartTask("learner", {"task_id": "t"}))
    team.close()
    assert [type(request) for request in peers[0].asked] == [OpenMeeting, StartTask]
    for rank, peer in enumerate(peers):
        info = peer.asked[-1].info
        assert info["task_id"] == "t"
        at = from_json(Meeting, info["meeting"])
        names = ("learner0", "learner1", "learner2")
        assert at == Meeting("10.0.0.1", 4711, "once", names, rank)


def test_the_cause_is_a_process_that_died_not_the_broken_connection_to_it():
    """Where nothing reports its death, it shows by the absence of signs of life."""
    broken = {"type": "RuntimeError", "message": "Connection reset by peer", "of_group": True}
    gate = threading.Event()
    silent = Peer(WorkerLost("no sign of life for 4 s"), gate)
    team = team_of(Peer(WorkerFailed("broken", broken)), silent)
    threading.Timer(2.0, gate.set).start()
    with pytest.raises(TaskFail, match="LearnerLost: learner1: no sign of life for 4 s"):
        team.handle(DemandRequest())
    team.close()


def test_the_others_end_their_tasks_after_the_request_under_way():
    gate = threading.Event()
    slow = Peer(Resources(), gate)
    team = team_of(Peer(WorkerFailed("own words")), slow)
    with pytest.raises(TaskFail, match="learner0: own words"):
        team.handle(DemandRequest())
    gate.set()
    assert team.wait(30) == []
    assert slow.asked == [DemandRequest(), CloseTask("learner")]
    assert slow.most_under_way == 1
    team.close()

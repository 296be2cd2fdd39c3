"""An aggregator between a coordinator and several learners, over real HTTP."""

import threading
from contextlib import ExitStack, contextmanager

import pytest
from easydict import EasyDict

from ding.data.chunks import SharedFolder, write_chunk
from ding.interaction.slave import Slave
from ding.worker.adapter import LearnerAggregator
from ding.worker.learner.comm import NaiveLearner, create_comm_learner
from tests.worker.learner.comm.rig import BATCH, Asker, Failed, report, rows, task_info, until


class Recorder(NaiveLearner):
    """Notes the steps that it is asked for."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, heartbeat_span=0.2, **kwargs)
        self.seen = []
        self.answers = {}

    def _process_task(self, task):
        self.seen.append(dict(task))
        change = self.answers.get(task["name"])
        if task["name"] == "learner_open_meeting":
            return {"host": "127.0.0.1", "port": 1, "name": "here"}
        answer = super()._process_task(task) if change is None else change(task)
        own = {"resource": {"ours": True}, "learner_get_data_task": {"batch_num": 4}}
        return {**own.get(task["name"], {}), **answer} if isinstance(answer, dict) else answer


@contextmanager
def aggregated(*learners, **kwargs):
    """A coordinator, and its aggregator of running slaves."""
    table = {f"learner{i}": [f"learner{i}", "127.0.0.1", s.port] for i, s in enumerate(learners)}
    cfg = dict(host="127.0.0.1", port="auto", learner=table, heartbeat_span=0.2, **kwargs)
    aggregator = LearnerAggregator(EasyDict(cfg))
    aggregator.start()
    try:
        with Asker(aggregator.address) as coordinator:
            coordinator.aggregator = aggregator
            yield coordinator
    finally:
        aggregator.close()


@contextmanager
def naive_learners(n=2, **kwargs):
    with ExitStack() as stack:
        learners = [stack.enter_context(Recorder("127.0.0.1", 0)) for _ in range(n)]
        coordinator = stack.enter_context(aggregated(*learners, **kwargs))
        coordinator.learners = learners
        yield coordinator


class TestLearners:
    def test_adds_up_resources(self):
        with naive_learners() as coordinator:
            assert coordinator.ask("resource") == {"gpu": 0, "cpu": 2, "ours": True}

    def test_refuses_those_of_another_program(self):
        with naive_learners() as coordinator:
            coordinator.learners[1].answers["resource"] = lambda task: {"gpu": 0, "ours": False}
            with pytest.raises(Failed, match="a learner of another program trains alone"):
                coordinator.ask("resource")

    def test_starts_asks_and_closes_all(self):
        with naive_learners(3) as coordinator:
            coordinator.ask("learner_start_task", task_info={"task_id": "t", "buffer_id": "b"})
            demand = coordinator.ask("learner_get_data_task")
            asked = {"task_id": "t", "buffer_id": "b", "batch_size": 2, "batch_num": 12}
            assert demand == {**demand, **asked, "cur_learner_iter": 0}
            answer = coordinator.ask("learner_close_task")
            assert (answer["task_id"], answer["learner_step"]) == ("t", 0)
            names = [[task["name"] for task in learner.seen] for learner in coordinator.learners]
            assert names[0][-3:] == [
                "learner_start_task",
                "learner_get_data_task",
                "learner_close_task",
            ]
            assert names[0][-3:] == names[1][-3:] == names[2][-3:]

    def test_deals_out_chunks_by_their_numbers(self):
        with naive_learners() as coordinator:
            coordinator.ask("learner_start_task", task_info={"task_id": "t", "buffer_id": "b"})
            coordinator.ask("learner_get_data_task")
            got = [[], []]
            for numbers in ([0, 1, 2], [3], [4, 5], [0, 3]):
                chunks = [{"data_id": f"c{number}", "number": number} for number in numbers]
                coordinator.ask("learner_learn_task", data={"draws": 0, "chunks": chunks})
                for learner, mine in zip(coordinator.learners, got):
                    sent = learner.seen[-1]["data"].get("chunks", [])
                    mine += [chunk["data_id"] for chunk in sent]
            assert got == [["c0", "c2", "c4", "c0"], ["c1", "c3", "c5", "c3"]]

    def test_failure_names_the_learner_and_ends_the_others(self):
        with naive_learners() as coordinator:
            coordinator.ask("learner_start_task", task_info={"task_id": "t", "buffer_id": "b"})

            def fail(task):
                raise ValueError("own words")

            coordinator.learners[1].answers["learner_get_data_task"] = fail
            with pytest.raises(Failed, match="ValueError: learner1: own words") as failed:
                coordinator.ask("learner_get_data_task")
            assert "own words" in failed.value.result["traceback"]
            for learner in coordinator.learners:
                until(lambda learner=learner: learner.seen[-1]["name"] == "learner_close_task")

    def test_nonsense_is_reported(self):
        with naive_learners() as coordinator:
            coordinator.learners[0].answers["learner_get_data_task"] = lambda task: [1]
            coordinator.ask("learner_start_task", task_info={"task_id": "t"})
            with pytest.raises(Failed, match=r"NonsenseAnswer: learner0: .*expected an object"):
                coordinator.ask("learner_get_data_task")

    def test_learner_that_leaves_fails_the_step(self):
        with naive_learners() as coordinator:
            coordinator.ask("learner_start_task", task_info={"task_id": "t", "buffer_id": "b"})
            coordinator.learners[1].close()
            with pytest.raises(Failed, match="learner1"):
                coordinator.ask("learner_get_data_task")

    def test_learner_that_is_silent_is_given_up(self, monkeypatch):
        monkeypatch.setattr("ding.utils.durations.AGGREGATOR_STEP", 0.5)
        with naive_learners() as coordinator:
            go_on = threading.Event()
            coordinator.ask("learner_start_task", task_info={"task_id": "t", "buffer_id": "b"})
            coordinator.learners[1].answers["learner_get_data_task"] = lambda task: go_on.wait(30)
            try:
                with pytest.raises(
                    Failed, match=r"LearnerLost: learner1: no answer to .* for 0\.5 s"
                ):
                    coordinator.ask("learner_get_data_task")
            finally:
                go_on.set()

    def test_unknown_steps_are_reported(self):
        with naive_learners() as coordinator, pytest.raises(Failed, match="unknown task 'dance'"):
            coordinator.ask("dance")


class TestMissingLearners:
    def test_are_named(self, monkeypatch):
        monkeypatch.setattr("ding.utils.durations.AGGREGATOR_STEP", 0.3)
        with Recorder("127.0.0.1", 0) as there, Recorder("127.0.0.1", 0) as gone:
            gone.close()
            failed = pytest.raises(Failed, match="ConnectionLost: not connected: learner1")
            with aggregated(there, gone) as coordinator, failed:
                coordinator.ask("resource")

    def test_may_come_later_and_come_back(self):
        late = Recorder("127.0.0.1", 0)
        late.start()
        port = late.port
        late.close()
        late = Recorder("127.0.0.1", port)  # has not been started
        with Recorder("127.0.0.1", 0) as there, aggregated(there, late) as coordinator:
            late = Recorder("127.0.0.1", port)
            with late:
                assert coordinator.ask("resource")["cpu"] == 2
            with late:
                with pytest.raises(Failed, match="LearnerLost: learner1"):
                    coordinator.ask("resource")
                assert coordinator.ask("resource")["cpu"] == 2


class TestOwnLearners:
    @pytest.fixture
    def coordinator(self, tmp_path):
        self.data = SharedFolder(str(tmp_path / "data"))
        self.chunks = [report(f"c{number}", number=number) for number in range(2)]
        for chunk in self.chunks:
            write_chunk(self.data, chunk["data_id"], rows())
        with ExitStack() as stack:
            learners = []
            for i in range(2):
                cfg = dict(path_data=self.data.path, path_policy=str(tmp_path / f"policy{i}"))
                learner = create_comm_learner(
                    EasyDict(type="flask_fs", name=f"learner{i}", port=0, prefetch=4, **cfg)
                )
                learner.start()
                stack.callback(learner.close)
                learners.append(learner)
            coordinator = stack.enter_context(aggregated(*learners))
            coordinator.ask("learner_start_task", task_info=task_info())
            yield coordinator

    def test_every_learner_gets_as_many_batches(self, coordinator):
        demand = coordinator.ask("learner_get_data_task", wait=1)
        assert (demand["batch_num"], demand["batch_size"]) == (8, BATCH)
        coordinator.ask("learner_learn_task", data={"draws": 7, "chunks": self.chunks})

        def steps():
            return coordinator.ask("learner_get_data_task", wait=0.1)

        until(lambda: steps()["cur_learner_iter"] == 3)
        assert steps()["batch_num"] % 2 == 1  # the seventh is still here
        coordinator.ask("learner_learn_task", data={"draws": 1})
        until(lambda: steps()["cur_learner_iter"] == 4)

        def info():
            return coordinator.ask("learner_learn_task", data={"draws": 0})["info"]

        until(lambda: info()["waiting"] == "data")
        assert info()["learner_step"] == 4

    def test_demand_may_come_with_the_results(self, coordinator):
        data = {"draws": 4, "chunks": self.chunks}
        info = coordinator.ask("learner_learn_task", data=data, wait=5)["info"]
        assert info["batch_num"] >= 2


class TestMergeInfo:
    def test_merges_by_meaning(self):
        one = {
            "learner_step": 4,
            "learner_done": True,
            "priority_info": {"priority": [1.0], "replay_buffer_idx": [7]},
            "trained": 2,
            "bad_chunks": [["a", "gone"]],
            "waiting": None,
            "iters_per_second": 10.0,
            "policy_iter": 3,
        }
        two = {
            "learner_step": 5,
            "learner_done": False,
            "priority_info": {"priority": [2.0], "replay_buffer_idx": [8]},
            "trained": 3,
            "bad_chunks": [],
            "waiting": "data",
            "iters_per_second": 20.0,
            "policy_iter": None,
        }
        assert LearnerAggregator.merge_info([one, two]) == {
            "learner_step": 4,
            "learner_done": False,
            "priority_info": {"priority": [1.0, 2.0], "replay_buffer_idx": [7, 8]},
            "trained": 5,
            "bad_chunks": [["a", "gone"]],
            "waiting": "data",
            "iters_per_second": 15.0,
            "policy_iter": 3,
        }

    def test_takes_what_is_missing_as_unknown(self):
        infos = [{"learner_done": True}, {"learner_step": 3, "note": "x"}, {}]
        merged = LearnerAggregator.merge_info(infos)
        assert merged == {"learner_done": False, "learner_step": 3, "note": "x"}


def test_lost_coordinator_ends_the_learners_tasks():
    with naive_learners() as coordinator:
        coordinator.ask("learner_start_task", task_info={"task_id": "t", "buffer_id": "b"})
        coordinator.master.lose("learner", "as a test")
        for learner in coordinator.learners:
            until(lambda learner=learner: learner.seen[-1]["name"] == "learner_close_task")
        coordinator.connect("again")
        assert coordinator.ask("resource")["cpu"] == 2


def test_close_may_be_called_twice_and_unstarted():
    with naive_learners() as coordinator:
        coordinator.aggregator.close()
        coordinator.aggregator.close()
        assert coordinator.aggregator.join(0)
    LearnerAggregator(EasyDict(learner={})).close()
    assert not [t for t in threading.enumerate() if t.name.startswith(("reach-", "abort-"))]


def test_slave_alone_calls_back():
    from ding.worker.adapter import LearnerAggregatorSlave

    assert issubclass(LearnerAggregatorSlave, Slave)
    callbacks = {"deal_with_get_resource": lambda: {"gpu": 4}}
    with (
        LearnerAggregatorSlave(port=0, callback_fn=callbacks) as slave,
        Asker(slave.my_address) as coordinator,
    ):
        assert coordinator.ask("resource") == {"gpu": 4}

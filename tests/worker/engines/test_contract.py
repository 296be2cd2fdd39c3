"""The contract of every engine: stores, workers that join, fail and die, and the end."""

import re
import threading
import time

import numpy as np
import pytest
import torch

from ding.data import Columns
from ding.entry.run.status import ask_status
from ding.interaction.base import split_http_address
from ding.utils import read_file, save_file
from ding.utils.errors import CheckpointNotFoundError, ChunkError
from ding.utils.log_file import flush_all
from ding.worker.engines.carrier import WorkerSpec
from ding.worker.engines.control import RunControl
from ding.worker.engines.local import LocalCarrier
from ding.worker.messages import CloseTask, ResourceRequest, StartTask
from ding.worker.seams import Weights, WorkerBusy, WorkerFailed, WorkerLost
from tests.worker.coordinator.fake_workers import eventually

from .fake_service import fake_service, no_service, slow_service
from .harness import HARNESSES, Arrivals

# Starting a Ray may take longer than any test; it is not counted.
pytestmark = pytest.mark.timeout(60, func_only=True)


# A worker of Ray takes seconds to come up.
ENGINES = [pytest.param(n, marks=pytest.mark.slow) if n == "ray" else n for n in HARNESSES]


@pytest.fixture(params=ENGINES)
def engine(request, ray_node, tmp_path):
    harness = HARNESSES[request.param](tmp_path)
    yield harness
    harness.close()


@pytest.fixture
def starter(engine):
    """An engine that starts its workers itself, and dead ones again."""
    if not engine.starts_workers:
        pytest.skip("its workers are started by a supervisor, see tests/entry")
    return engine


@pytest.fixture
def samples(engine):
    return engine.stores.samples


@pytest.fixture
def weights(engine):
    return engine.stores.weights


def task(do, **more):
    """A complete task, which does what ``do`` says."""
    info = {"task_id": "t", "buffer_id": "b", "collector_cfg": {}, "do": do, **more}
    return StartTask("collector", info)


class TestSamples:
    def test_columns_come_back(self, samples):
        columns = Columns(
            {
                "obs": {"image": np.arange(12, dtype=np.uint8).reshape(3, 4), "v": np.ones(3)},
                "reward": torch.arange(3.0),
            }
        )
        size = samples.put("a.c0.1", columns)
        found = samples.get("a.c0.1").columns
        assert size > 0
        assert found["obs"]["image"].dtype == np.uint8
        assert found["obs"]["image"].tolist() == columns.columns["obs"]["image"].tolist()
        assert torch.equal(torch.as_tensor(found["reward"]), torch.arange(3.0))

    def test_large_ones_come_back(self, samples):
        frames = np.random.default_rng(0).integers(0, 255, (64, 4, 84, 84), dtype=np.uint8)
        assert samples.put("a.c0.1", Columns({"obs": frames})) >= frames.nbytes
        assert np.array_equal(samples.get("a.c0.1").columns["obs"], frames)

    def test_rows_come_back(self, samples):
        rows = [{"text": "a", "x": [1]}, {"text": "b", "more": {"y": 2}}]
        samples.put("a.c0.1", rows)
        assert list(samples.get("a.c0.1")) == rows

    def test_are_whole_whatever_their_writer_does_later(self, samples):
        x = np.zeros(3)
        samples.put("a.c0.1", Columns({"x": x}))
        x[:] = 7.0
        assert samples.get("a.c0.1").columns["x"].tolist() == [0.0] * 3

    def test_what_was_removed_is_missing(self, samples):
        samples.put("a.c0.1", [{"x": 1.0}])
        samples.remove("a.c0.1")
        samples.remove("a.c0.1")
        assert samples.size("a.c0.1") is None
        with pytest.raises(ChunkError, match=r"a\.c0\.1"):
            samples.get("a.c0.1")

    def test_clear_takes_what_matches_and_is_not_kept(self, engine, samples):
        if not engine.lists_names:
            pytest.skip("it does not list its samples")
        for name in ("a.c0.1", "a.c0.2", "b.c0.3"):
            samples.put(name, [{"x": 1.0}])
        assert samples.clear(re.compile(r"a\..*"), keep={"a.c0.2"}) == ["a.c0.1"]
        assert samples.size("a.c0.1") is None
        assert samples.size("a.c0.2")
        assert samples.size("b.c0.3")


class TestWeights:
    def test_newest_is_what_was_published_last(self, weights):
        with pytest.raises(CheckpointNotFoundError):
            weights.newest("policy")
        assert weights.version("policy") is None
        for step in range(2):
            state = {"model": {"w": torch.full((2, 2), float(step))}, "iter": step}
            weights.publish("policy", Weights(state, {"policy_iter": step}))
        found = weights.newest("policy")
        assert found.facts["policy_iter"] == found.state["iter"] == 1
        assert found.state["model"]["w"].tolist() == [[1.0, 1.0], [1.0, 1.0]]

    def test_the_version_shows_whether_there_is_news(self, weights):
        weights.publish("policy", Weights({"iter": 0}, {"policy_iter": 0}))
        first = weights.version("policy")
        assert weights.version("policy") == first
        weights.publish("policy", Weights({"iter": 1}, {"policy_iter": 1}))
        assert weights.version("policy") != first

    def test_are_whole_whatever_their_publisher_does_later(self, weights):
        w = torch.zeros(2)
        weights.publish("policy", Weights({"w": w}, {"policy_iter": 0}))
        w += 1
        assert weights.newest("policy").state["w"].tolist() == [0.0, 0.0]

    def test_a_kept_version_stays(self, weights):
        assert not weights.keep("policy", "policy.1")
        weights.publish("policy", Weights({"iter": 0}, {"policy_iter": 0}))
        assert weights.keep("policy", "policy.1")
        weights.publish("policy", Weights({"iter": 1}, {"policy_iter": 1}))
        assert weights.newest("policy.1").state["iter"] == 0
        weights.remove("policy.1")
        weights.remove("policy.1")
        assert weights.version("policy.1") is None
        assert weights.newest("policy").state["iter"] == 1


class TestArtifacts:
    def test_a_state_comes_back(self, engine):
        artifacts = engine.stores.artifacts
        assert artifacts.load("ckpt/state.pth.tar") is None
        artifacts.save("ckpt/state.pth.tar", {"step": 3, "w": torch.ones(2)})
        found = artifacts.load("ckpt/state.pth.tar")
        assert found["step"] == 3
        assert found["w"].tolist() == [1.0, 1.0]


class TestWorkers:
    def test_come_and_answer(self, engine):
        arrivals = Arrivals()
        engine.control(("collector0", "collector1")).start(arrivals)
        assert {name for name, _ in arrivals.wait("came", 2)} == {"collector0", "collector1"}
        assert arrivals.peers["collector0"].ask(ResourceRequest(), 5.0).cpu == 3

    def test_reach_the_same_stores(self, engine):
        _, _, peer = engine.run()
        engine.stores.weights.publish("policy", Weights({"iter": 3}, {"policy_iter": 3}))
        peer.ask(task("put", name="a.c0.1"), 5.0)
        report = peer.ask(CloseTask("collector"), 5.0)
        assert (report.info["name"], report.info["policy_iter"]) == ("collector0", 3)
        assert len(engine.stores.samples.get("a.c0.1")) == 2

    def test_one_that_fails_says_why_and_goes_on(self, engine):
        _, _, peer = engine.run()
        with pytest.raises(WorkerFailed, match="ValueError: the task is no good") as failed:
            peer.ask(task("fail"), 5.0)
        assert not isinstance(failed.value, WorkerLost)
        assert failed.value.by_worker
        assert failed.value.detail["type"] == "ValueError"
        assert "fake_service.py" in failed.value.detail["traceback"]
        assert peer.ask(ResourceRequest(), 5.0).cpu == 3

    def test_one_that_is_silent_is_lost_and_replaced(self, engine):
        control, arrivals, peer = engine.run()
        with pytest.raises(WorkerLost, match=r"no answer to \w+ for 0\.3 s"):
            peer.ask(task("hang", seconds=5.0), 0.3)
        control.release(arrivals.arrivals["collector0"], "no answer")
        with pytest.raises(WorkerLost):
            peer.ask(ResourceRequest(), 5.0)
        arrivals.wait("came", 2)
        assert arrivals.peers["collector0"].ask(ResourceRequest(), 5.0).cpu == 3

    @pytest.mark.slow
    def test_one_that_works_takes_no_second_request(self, engine, tmp_path_factory):
        _, _, peer = engine.run()
        begun = tmp_path_factory.mktemp("elsewhere") / "begun"  # outside the run folder
        work = task("hang", seconds=2.0, mark=str(begun))
        first = threading.Thread(target=peer.ask, args=(work, 20.0))
        first.start()
        eventually(begun.exists)
        try:
            with pytest.raises(WorkerBusy):
                peer.ask(ResourceRequest(), 5.0)
        finally:
            first.join()

    @pytest.mark.slow
    def test_one_that_dies_is_lost_with_what_was_asked(self, engine):
        _, arrivals, _ = engine.run()
        caught = []

        def ask(peer):
            try:
                peer.ask(task("hang", seconds=20.0), 30.0)
            except WorkerLost as error:
                caught.append(error)

        asking = threading.Thread(target=ask, args=(arrivals.peers["collector0"],))
        asking.start()
        time.sleep(0.2)
        engine.kill("collector0")
        asking.join(25.0)
        assert caught
        ((name, _),) = arrivals.wait("lost")
        assert name == "collector0"

    @pytest.mark.slow
    def test_one_that_does_not_answer_in_time_is_lost(self, engine):
        _, arrivals, peer = engine.run()
        with pytest.raises(WorkerLost, match=r"no answer to \w+ for 0.3 s"):
            peer.ask(task("hang", seconds=5.0), 0.3)
        ((name, cause),) = arrivals.wait("lost")
        assert name == "collector0"
        assert "for 0.3 s" in cause

    def test_one_that_dies_comes_again(self, starter):
        _, arrivals, _ = starter.run(max_restart=1)
        starter.kill("collector0")
        ((name, cause),) = arrivals.wait("lost")
        assert name == "collector0"
        assert "starting it again (1 of 1)" in cause
        arrivals.wait("came", 2)
        assert arrivals.peers["collector0"].ask(ResourceRequest(), 5.0).cpu == 3

    def test_the_last_of_a_kind_that_dies_ends_the_run(self, starter):
        _, arrivals, _ = starter.run(("collector0", "collector1"), max_restart=0)
        slow = len(arrivals.of("warn"))  # a slow start is reported as well
        starter.kill("collector0")
        (name, text) = arrivals.wait("warn", slow + 1)[slow]
        assert name == "collector0"
        assert "continuing without it" in text
        starter.kill("collector1")
        ((_, cause),) = arrivals.wait("fatal")
        assert "collector1" in cause

    def test_one_that_was_released_is_replaced(self, engine):
        control, arrivals, peer = engine.run()
        first = arrivals.arrivals["collector0"]
        control.release(first, "it answers nonsense")
        arrivals.wait("came", 2)
        control.release(first, "said late: another one has come")
        assert arrivals.peers["collector0"].ask(ResourceRequest(), 5.0).cpu == 3
        with pytest.raises(WorkerLost):
            peer.ask(ResourceRequest(), 5.0)

    def test_one_that_cannot_be_built_ends_the_run(self, starter):
        arrivals = Arrivals()
        starter.control(build=no_service).start(arrivals)
        ((_, cause),) = arrivals.wait("fatal")
        assert "collector0" in cause
        assert "no module named 'own_env'" in cause

    def test_one_that_cannot_go_on_is_replaced(self, starter):
        _, arrivals, peer = starter.run()
        peer.ask(task("give up"), 5.0)
        arrivals.wait("came", 2)

    def test_the_end_does_not_wait_for_workers_that_have_not_come(self, starter):
        arrivals = Arrivals()
        control = starter.control(build=slow_service)
        control.start(arrivals)
        time.sleep(0.3)
        begin = time.monotonic()
        control.close(30.0)
        assert time.monotonic() - begin < 15
        assert not arrivals.events

    @pytest.mark.slow
    def test_the_end_does_not_wait_for_workers_that_hang(self, engine):
        control, _, peer = engine.run(("collector0", "collector1"))

        def ask():
            with pytest.raises(WorkerLost):
                peer.ask(task("hang", seconds=30.0), 60.0)

        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(0.2)
        begin = time.monotonic()
        control.close(1.0)
        assert time.monotonic() - begin < 15
        asking.join(15.0)
        assert not asking.is_alive()

    def test_anybody_may_ask_how_the_run_is_going(self, engine):
        control, _, _ = engine.run()
        host, port, _, _ = split_http_address(control.address)
        assert ask_status({"host": host, "port": port}) == {"of": "a test"}

    def test_what_one_writes_is_in_the_runs_folder(self, starter, tmp_path):
        """Also where the worker's host has no such folder: the run's own process writes."""
        save_file(str(tmp_path / "state"), {"from": "the driver"})
        control, arrivals, peer = starter.run()
        peer.ask(task("write", folder=str(tmp_path), state=str(tmp_path / "state")), 10.0)
        assert starter.stores.weights.newest("wrote").facts == {
            "here": starter.carrier.in_one_process,
            "read": "the driver",
            "kept": ["iteration_9.pth.tar", "iteration_10.pth.tar"],
        }
        assert control.close(20.0)
        flush_all()  # of workers in this process
        assert (tmp_path / "log/a/a.txt").read_text() == "one\ntwo\n"
        kept = ["iteration_10.pth.tar", "iteration_9.pth.tar"]
        assert sorted(path.name for path in (tmp_path / "ckpt").iterdir()) == kept
        assert read_file(str(tmp_path / "ckpt/iteration_10.pth.tar")) == {"iter": 10}
        assert not arrivals.of("warn")

    def test_the_end_in_good_order(self, engine):
        control, arrivals, _ = engine.run(("collector0", "collector1"))
        assert control.close(20.0)
        assert not arrivals.of("lost")


def test_one_process_of_a_learner_cannot_be_done_without(tmp_path):
    """Whatever other processes there are: they wait for it."""
    engine, arrivals = HARNESSES["local"](tmp_path), Arrivals()
    names = ("learner0", "learner1")
    specs = [WorkerSpec(name, "learner", fake_service, team="both") for name in names]
    control = RunControl(engine.carrier, specs, max_restart=0)
    control.start(arrivals)
    try:
        ((name, arrival),) = arrivals.wait("came")
        assert (name, arrival.where) == ("both", "2 processes")
        engine.kill("learner0")
        ((_, cause),) = arrivals.wait("fatal")
        assert cause == "learner0 killed"
    finally:
        control.close(2.0)
        engine.close()


class _Finding(LocalCarrier):
    """Finds the workers that another one has started."""

    def __init__(self, other, *args):
        super().__init__(*args)
        self._other = other

    def find(self, worker, on_death):
        return self._other.started.pop(worker.name, None)


def test_a_worker_that_outlived_its_coordinator_is_found_once(tmp_path):
    """Another one is started only when it has gone."""
    earlier = LocalCarrier({}, str(tmp_path))
    spec = WorkerSpec("collector0", "collector", fake_service)
    found = earlier.spawn(spec, print)
    earlier.started = {spec.name: found}
    later, arrivals = _Finding(earlier, {}, str(tmp_path)), Arrivals()
    control = RunControl(later, [spec], max_restart=1)
    control.start(arrivals)
    try:
        arrivals.wait("came")
        arrivals.peers[spec.name].ask(task("put", name="a.c0.1"), 5.0)
        assert len(earlier.get("a.c0.1")) == 2
        control.release(arrivals.arrivals[spec.name], "it answers nonsense")
        arrivals.wait("came", 2)
        arrivals.peers[spec.name].ask(task("put", name="a.c0.2"), 5.0)
        assert len(later.get("a.c0.2")) == 2
    finally:
        control.close(2.0)
        later.close()

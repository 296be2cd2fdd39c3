"""Features of the Ray engine that other engines do not have."""

import time

import numpy as np
import pytest
import torch

pytest.importorskip("ray")

from ding.data import Columns
from ding.utils.errors import ChunkError, ConfigError
from ding.worker.engines import ray_worker
from ding.worker.engines.carrier import WithFiles, WorkerSpec
from ding.worker.engines.control import RunControl
from ding.worker.engines.ray_engine import RayCarrier
from ding.worker.engines.ray_worker import (
    Location,
    Parcel,
    pack_samples,
    pack_weights,
    unpack_samples,
    unpack_weights,
)
from ding.worker.messages import ResourceRequest, StartTask, TrainRequest
from ding.worker.seams import Weights

from .fake_service import importing_service, no_service
from .harness import HARNESSES, Arrivals

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def on_ray(ray_node, tmp_path):
    harness = HARNESSES["ray"](tmp_path)
    yield harness
    harness.close()


@pytest.mark.slow
def test_samples_outlive_who_made_them(on_ray):
    _, arrivals, peer = on_ray.run(max_restart=0)
    peer.ask(StartTask("collector", {"task_id": "t", "do": "put", "name": "b.c.1"}), 10.0)
    on_ray.kill("collector0")
    arrivals.wait("fatal")
    assert [row["x"] for row in on_ray.stores.samples.get("b.c.1")] == [1.0, 2.0]


@pytest.mark.slow
def test_more_samples_than_the_object_store_holds(on_ray):
    """Ray puts some on disk; none is lost."""
    samples = on_ray.stores.samples
    names = [f"b.c.{i}" for i in range(10)]
    for i, name in enumerate(names):
        samples.put(name, Columns({"x": np.full((1, 30 * 2**20), i, np.uint8)}))
    for i, name in enumerate(names):
        assert samples.get(name).columns["x"][0, -1] == i
        samples.remove(name)
    with pytest.raises(ChunkError, match="it is not there"):
        samples.get(names[0])


@pytest.mark.slow
def test_one_that_cannot_be_imported_is_named_with_its_node(on_ray):
    arrivals = Arrivals()
    on_ray.control(build=no_service).start(arrivals)
    ((_, cause),) = arrivals.wait("fatal", seconds=50)
    assert "no module named 'own_env'" in cause
    assert "node " in cause


@pytest.mark.slow
def test_no_node_has_room(on_ray):
    on_ray.carrier.cfg.collector = dict(num_cpus=1000)
    arrivals = Arrivals()
    control = on_ray.control()
    control.start(arrivals)
    ((name, text),) = arrivals.wait("warn", seconds=20)
    assert name == "collector0"
    assert "it asks for CPU 1000, free are CPU 4" in text
    begin = time.monotonic()
    assert control.close(20.0)
    assert time.monotonic() - begin < 15.0


def test_another_address_than_that_of_the_process(ray_node, tmp_path):
    with pytest.raises(ConfigError, match=r"engine\.address is '10\.0\.0\.1:6379'"):
        RayCarrier({"address": "10.0.0.1:6379"}, str(tmp_path)).open()


@pytest.mark.parametrize("size", [10**4, 64 * 2**20])
def test_bytes_have_time_to_come_over_a_slow_network(monkeypatch, size):
    """Three megabytes a second, on a fake of Ray."""
    now, seconds = [100.0], size / 3e6

    def get(ref, timeout):
        now[0] += min(timeout, seconds)
        if timeout < seconds:
            raise ray_worker.ray.exceptions.GetTimeoutError
        return {"b.c.1": pack_samples("b.c.1", [{"x": 1.0}])}

    monkeypatch.setattr(ray_worker.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(ray_worker.ray, "get", get)
    monkeypatch.setattr(ray_worker.ray, "wait", lambda refs, **_: (refs, []))
    store = ray_worker.WorkerStore()
    store.note(Parcel(WithFiles(TrainRequest()), {"b.c.1": Location("ref", "b.c.1", size)}))
    assert store.get("b.c.1")[0]["x"] == 1.0


@pytest.mark.slow
def test_a_run_that_is_connected_already_sends_its_modules(ray_node, tmp_path, monkeypatch):
    """Ray's workers received the driver's paths before this one was added."""
    home = tmp_path / "modules"
    home.mkdir()
    (home / "shipped_by_the_run.py").write_text("FACTS = {'shipped': 1}\n")
    monkeypatch.syspath_prepend(home)
    carrier = RayCarrier({"modules": ["shipped_by_the_run"]}, str(tmp_path))
    carrier.open()
    control = RunControl(carrier, [WorkerSpec("collector0", "collector", importing_service)], 0)
    arrivals = Arrivals()
    try:
        control.start(arrivals)
        arrivals.wait("came", seconds=50)
        assert arrivals.peers["collector0"].ask(ResourceRequest(), 10.0).cpu == 3
        assert arrivals.of("fatal") == []
    finally:
        control.close(5.0)
        carrier.close()


def test_payloads_are_copies_and_keep_their_types():
    obs = np.arange(6, dtype=np.float32).reshape(3, 2)
    columns = Columns({"obs": {"a": obs, "b": torch.ones(3, dtype=torch.bfloat16)}})
    packed = pack_samples("b.c.1", columns)
    obs[:] = 0
    found = unpack_samples("b.c.1", packed).columns["obs"]
    assert found["a"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert found["b"].dtype == torch.bfloat16
    weights = Weights({"model": {"w": torch.eye(2)}, "n": 3}, {"policy_iter": 7})
    packed = pack_weights(weights)
    weights.state["model"]["w"][:] = 9
    back = unpack_weights(packed)
    assert back.facts == {"policy_iter": 7}
    assert back.state["n"] == 3
    assert torch.equal(back.state["model"]["w"], torch.eye(2))

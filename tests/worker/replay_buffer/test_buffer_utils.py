"""The parts around a buffer."""

import threading

import pytest
from easydict import EasyDict

from ding.data.buffer import rate_limiter
from ding.utils.autolog import TickTime
from ding.worker.replay_buffer.utils import (
    PeriodicThruputMonitor,
    SampledDataAttrMonitor,
    ThruputController,
    UsedDataRemover,
    generate_id,
)


def test_generate_id():
    assert generate_id("buffer", 7) == "buffer_7"


def test_remover_removes_files_and_reports_what_it_cannot(tmp_path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.touch()
    folder.mkdir()
    remover = UsedDataRemover()
    remover.start()
    for data in ({"data_id": str(file)}, {"data_id": str(folder)}, {"x": 1}, "text"):
        remover.add_used_data(data)
    remover.add_used_data({"data_id": str(tmp_path / "never there")})
    remover.close()
    remover.close()
    assert not file.exists()
    assert len(remover.errors) == 1
    assert "folder" in str(remover.errors[0])
    assert not [t for t in threading.enumerate() if t.name == "used-data-remover"]


def test_attr_monitor_spans_the_latest_samples_and_the_one_before():
    tick = TickTime()
    monitor = SampledDataAttrMonitor(tick, expire=2)
    for value in (10.0, 2.0, 1.0, 3.0):
        for name in ("use_avg", "priority_avg", "staleness_avg", "priority_max", "priority_min"):
            setattr(monitor, name, value)
        monitor.use_max = monitor.staleness_max = int(value)
        tick.step()
    assert monitor.avg["use_avg"]() == 2.0
    assert monitor.max["use_max"]() == 3
    assert monitor.min["priority_min"]() == 1.0


def test_thruput_monitor_counts():
    lines = []
    monitor = PeriodicThruputMonitor("b", EasyDict(seconds=1000), lines.append, None)
    monitor.push_data_count += 5
    monitor.sample_data_count += 3
    monitor.remove_data_count = 2
    monitor.valid_count = 4
    assert (monitor.push_data_count, monitor.sample_data_count) == (5, 3)
    assert (monitor.remove_data_count, monitor.valid_count) == (2, 4)
    monitor.close()
    assert lines == []


def test_controller_forgets(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(rate_limiter.time, "monotonic", lambda: clock[0])
    cfg = EasyDict(push_sample_rate_limit=dict(max=1, min=0.5), window_seconds=10)
    controller = ThruputController(cfg)
    assert controller.can_push(50) == (True, "")
    controller.history_push_count += 50
    assert controller.can_sample(100)[0]
    allowed, reason = controller.can_sample(101)
    assert not allowed
    assert "below the limit 0.5" in reason
    controller.history_sample_count += 50
    allowed, reason = controller.can_push(1)
    assert not allowed
    assert "above the limit 1" in reason
    clock[0] = 10.0
    assert controller.history_push_count == pytest.approx(0.5)
    assert controller.history_sample_count == pytest.approx(0.5)
    controller.close()

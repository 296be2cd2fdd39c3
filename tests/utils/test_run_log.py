import csv
import json
import logging
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

from ding.utils import log_file
from ding.utils.log_file import AppendFile
from ding.utils.run_log import RunLog, git_state


def read_rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_events(folder):
    """All events of a folder, frames checked against tensorboardX's own checksum."""
    from tensorboardX.crc32c import crc32c
    from tensorboardX.proto.event_pb2 import Event

    def masked(data):
        crc = crc32c(data)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    events = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        data = path.read_bytes()
        while data:
            length = int.from_bytes(data[:8], "little")
            assert int.from_bytes(data[8:12], "little") == masked(data[:8])
            body = data[12 : 12 + length]
            assert int.from_bytes(data[12 + length : 16 + length], "little") == masked(body)
            events.append(Event.FromString(body))
            data = data[16 + length :]
    return events


def scalars(events):
    return [
        (value.tag, event.step, value.simple_value)
        for event in events
        for value in event.summary.value
        if value.WhichOneof("value") == "simple_value"
    ]


def test_a_run_explains_itself(tmp_path):
    with RunLog("run", seed=3) as log:
        assert json.loads((tmp_path / "run/run.json").read_text())["status"] == "running"
        log.writer.add_scalar("collector_iter/reward_mean", 1.5, 10)
        log.writer.add_scalar("collector_step/reward_mean", 1.5, 80)
        log.writer.add_scalar("collector_iter/reward_max", np.float32(2), 10)
        log.writer.add_scalar("learner_iter/total_loss_avg", torch.tensor([0.25]), 10)
        log.episode("collector", 1, 9.0, 9, 80, 10)
        log.finish("converged", "return 9 >= 8", best_return=np.float32(9))
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert run["status"] == "converged"
    assert run["reason"] == "return 9 >= 8"
    assert run["best_return"] == 9
    assert run["seed"] == 3
    assert run["versions"]["torch"] == torch.__version__
    assert run["versions"]["python"]
    assert run["ended"] >= run["started"]
    iter_row, step_row, learner_row = read_rows(tmp_path / "run/metrics.jsonl")
    assert iter_row["step"] == 10
    assert iter_row["collector_iter/reward_mean"] == 1.5
    assert iter_row["collector_iter/reward_max"] == 2
    assert step_row["step"] == 80
    assert learner_row["learner_iter/total_loss_avg"] == 0.25
    events = read_events(tmp_path / "run/log/serial")
    assert events[0].file_version == "brain.Event:2"
    assert set(scalars(events)) == {
        ("collector_iter/reward_mean", 10, 1.5),
        ("collector_iter/reward_max", 10, 2.0),
        ("collector_step/reward_mean", 80, 1.5),
        ("learner_iter/total_loss_avg", 10, 0.25),
    }
    (episode,) = csv.DictReader((tmp_path / "run/episodes.csv").open())
    assert episode["source"] == "collector"
    assert float(episode["return"]) == 9


def test_a_resumed_run_appends(tmp_path):
    for step in (1, 2):
        with RunLog("run") as log:
            log.writer.add_scalar("a", step, step)
            log.episode("collector", 0, step, 1, 1, 1)
            log.logger.info("line %d", step)
    assert [row["step"] for row in read_rows(tmp_path / "run/metrics.jsonl")] == [1, 2]
    assert len(list(csv.DictReader((tmp_path / "run/episodes.csv").open()))) == 2
    assert len((tmp_path / "run/log/serial/serial_logger.txt").read_text().splitlines()) == 2
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert [earlier["status"] for earlier in run["earlier_runs"]] == ["finished"]


def test_a_torn_last_line_is_ended_before_the_next(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text('{"step": 1}\n{"st')
    with RunLog("run") as log:
        log.writer.add_scalar("a", 1.0, 2)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    assert lines[1] == '{"st'
    assert json.loads(lines[2])["a"] == 1


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), "interrupted"), (ValueError("bad"), "failed")]
)
def test_an_exception_is_the_end_of_the_run(tmp_path, error, status):
    with pytest.raises(type(error)), RunLog("run"):
        raise error
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert run["status"] == status
    assert run["reason"]


def test_the_first_end_counts_and_has_a_known_status(tmp_path):
    log = RunLog("run")
    with pytest.raises(ValueError, match="converged, finished"):
        log.finish("won")
    log.finish("failed", "why")
    log.finish("finished")
    log.close()
    assert json.loads((tmp_path / "run/run.json").read_text())["status"] == "failed"


def test_values_that_json_lacks(tmp_path):
    with RunLog("run") as log:
        log.writer.add_scalar("nan", float("nan"), 1)
        log.writer.add_scalar("inf", float("inf"), 1)
        log.writer.add_scalar("huge", 1e300, -1)
        log.writer.add_scalar("time", 1.0, None)
    rows = {key: row for row in read_rows(tmp_path / "run/metrics.jsonl") for key in row}
    assert rows["nan"]["nan"] is None
    assert rows["inf"]["inf"] is None
    assert rows["huge"]["huge"] == 1e300
    assert rows["scalar/time"]["scalar/time"] == 1
    assert rows["scalar/time"]["time"] > 1e9
    found = {tag: (step, value) for tag, step, value in scalars(read_events_of(tmp_path))}
    assert np.isnan(found["nan"][1])
    assert found["huge"] == (-1, float("inf"))
    assert found["time"] == (0, 1.0)


def read_events_of(tmp_path):
    return read_events(tmp_path / "run/log/serial")


def test_a_repeated_tag_starts_a_new_row(tmp_path):
    with RunLog("run") as log:
        for value in (1.0, 2.0):
            log.writer.add_scalar("a", value, 7)
    assert [row["a"] for row in read_rows(tmp_path / "run/metrics.jsonl")] == [1, 2]
    assert scalars(read_events_of(tmp_path)) == [("a", 7, 1.0), ("a", 7, 2.0)]


def test_what_is_no_number_is_refused():
    with RunLog("run") as log, pytest.raises(TypeError, match=r"'loss'.*expected one number"):
        log.writer.add_scalar("loss", torch.zeros(2), 1)


def test_the_rare_kinds_go_to_the_same_event_file(tmp_path):
    with RunLog("run") as log:
        log.writer.add_scalars("group", {"a": 1, "b": 2}, 5)
        log.writer.add_histogram("hist", np.arange(10.0), 5)
        log.writer.add_text("text", "hello", 5)
        log.writer.add_pr_curve("curve", np.array([0, 1]), np.array([0.2, 0.7]), 5)
        log.writer.add_hparams({"lr": 0.1}, {"loss": 1.0})
    (path,) = (tmp_path / "run/log/serial").glob("events*")
    tags = {v.tag for event in read_events(path.parent) for v in event.summary.value}
    assert {"group/a", "group/b", "hist", "curve"} <= tags
    assert any(tag.startswith("text") for tag in tags)
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        log.writer.frobnicate()


def test_rows_reach_the_disk_with_time_and_whole(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(log_file.time, "monotonic", lambda: now[0])
    log = RunLog("run")
    path = tmp_path / "run/metrics.jsonl"
    log.writer.add_scalar("a/x", 1.0, 1)
    now[0] = 10.0
    log.writer.add_scalar("a/y", 1.0, 1)
    assert not path.exists()
    log.writer.add_scalar("a/x", 1.0, 2)
    assert read_rows(path)[0].keys() == {"time", "step", "a/x", "a/y"}
    log.close()
    assert len(read_rows(path)) == 2


@pytest.mark.slow
def test_the_end_of_the_process_loses_nothing(tmp_path):
    code = (
        "from ding.utils.run_log import RunLog\n"
        "log = RunLog('run', quiet=True)\n"
        "log.writer.add_scalar('a', 1.0, 1)\n"
        "log.episode('collector', 0, 1.0, 1, 1, 1)\n"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    env = {**os.environ, "PYTHONPATH": root}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True, timeout=50)
    assert len(read_rows(tmp_path / "run/metrics.jsonl")) == 1
    assert len((tmp_path / "run/episodes.csv").read_text().splitlines()) == 2
    assert len(scalars(read_events_of(tmp_path))) == 1


def test_a_full_disk_warns_once_and_leaves_whole_records(tmp_path, monkeypatch):
    file = AppendFile(tmp_path / "a.txt", flush_seconds=0)
    file.write("one\n")
    real_write = os.write

    def full(fd, data):
        if len(data) <= 2:
            raise OSError(28, "No space left on device")
        return real_write(fd, data[:2])

    monkeypatch.setattr(log_file.os, "write", full)
    with pytest.warns(RuntimeWarning, match=r"a\.txt: No space left"):
        file.write("two\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        file.write("three\n")
    monkeypatch.undo()
    file.write("four\n")
    assert (tmp_path / "a.txt").read_text() == "one\nfour\n"


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(OSError, match="choose another exp_name"):
        RunLog("run/x")


def test_a_record_that_cannot_be_replaced_warns_once(monkeypatch):
    def full(path, facts):
        raise OSError(28, "No space left on device")

    with RunLog("run") as log:
        monkeypatch.setattr("ding.utils.run_log.write_facts", full)
        with pytest.warns(RuntimeWarning, match=r"run\.json: No space left"):
            log.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            log.flush()
        monkeypatch.undo()


def test_other_ranks_write_only_text(tmp_path, monkeypatch):
    for module in ("run_log", "log_writer"):
        monkeypatch.setattr(f"ding.utils.{module}.get_rank", lambda: 1)
    with RunLog("run") as log:
        log.writer.add_scalar("a", 1.0, 1)
        log.writer.add_scalars("a", {"b": 1.0}, 1)
        log.writer.add_histogram("a", np.arange(3), 1)
        log.episode("collector", 0, 1.0, 1, 1, 1)
        log.logger.info("text")
    assert [p.name for p in (tmp_path / "run").rglob("*") if p.is_file()] == ["serial_logger.txt"]


def test_quiet_keeps_the_terminal_clean(tmp_path, capsys):
    with RunLog("loud") as log:
        log.logger.info("heard")
    with RunLog("quiet", quiet=True) as log:
        log.logger.info("unheard")
    assert "unheard" in (tmp_path / "quiet/log/serial/serial_logger.txt").read_text()
    out = capsys.readouterr().out
    assert "heard" in out
    assert "unheard" not in out


def test_git_state(tmp_path):
    assert git_state(tmp_path) is None

    def git(*args):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *args]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    git("init")
    assert git_state(tmp_path) is None
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-m", "a")
    state = git_state(tmp_path)
    assert len(state["commit"]) == 40
    assert not state["dirty"]
    (tmp_path / "a").write_text("2")
    assert git_state(tmp_path)["dirty"]


def test_logging_levels_are_left_alone():
    before = logging.getLogger().handlers[:], logging.getLogger().level
    with RunLog("run"):
        assert (logging.getLogger().handlers, logging.getLogger().level) == before


def test_a_clock_that_is_set_back_gives_no_negative_seconds(tmp_path, monkeypatch):
    log = RunLog(str(tmp_path / "run"))
    monkeypatch.setattr("time.time", lambda: 5.0)
    log.finish("finished")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert 0 <= record["seconds"] < 100

import math
import sys
import threading
import time
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from ding.utils import TRACKER_REGISTRY, durations, log_file
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.utils.run_log import RunLog
from ding.utils.trackers import Tracker
from tests.utils.test_run_log import read_events, scalars

CONFIG = {"exp_name": "run", "seed": 3, "policy": {"learn": {"lr": 0.1, "hidden": [8, 8]}}}


@pytest.fixture
def kept():
    """A tracker of the user's own, and what it gets."""
    calls = []

    class Kept(Tracker):
        def __init__(self, folder, note="", fails=False):
            super().__init__(folder)
            self.fails = fails
            calls.append(("made", note))

        def config(self, config):
            calls.append(("config", config["seed"]))

        def scalars(self, values, step, time):
            if self.fails:
                raise ConnectionError("service is down")
            calls.append((step, values))

        def end(self, status, reason, facts):
            calls.append((status, reason, facts))

    TRACKER_REGISTRY.register("kept", Kept, force_overwrite=True)
    yield calls
    del TRACKER_REGISTRY["kept"]


def test_a_tracker_of_one_s_own_gets_the_whole_run(kept):
    config = {**CONFIG, "trackers": {"kept": {"note": "hello"}}}
    log = RunLog("run", starts=True, config=config)
    assert kept == [("made", "hello")]
    log.begin()
    log.writer.add_scalar("a_iter/x", 1.0, 10)
    log.writer.add_scalar("a_iter/y", np.float32(2), 10)
    log.flush()
    log.writer.add_scalar("b", math.nan, None)
    log.finish("converged", "good", best_return=np.float32(9))
    log.close()
    _, config, first, (step, last), end = kept
    assert config == ("config", 3)
    assert first == (10, {"a_iter/x": 1.0, "a_iter/y": 2.0})
    assert step is None
    assert math.isnan(last["b"])
    assert end == ("converged", "good", {"best_return": 9.0})


def test_rows_of_other_processes_come_along_and_those_of_earlier_runs_do_not(kept, tmp_path):
    with RunLog("run") as log:
        log.writer.add_scalar("a", 1.0, 1)
    file = tmp_path / "run/metrics.jsonl"
    log = RunLog("run", config={**CONFIG, "trackers": ["kept"]})
    with file.open("a") as other:
        other.write(
            '{"time": 5.0, "step": 2, "learner_iter/loss": 0.5}\n{"damaged\n{"time": 6.0, "st'
        )
    log.flush()
    with file.open("a") as other:
        other.write('ep": 3, "learner_iter/loss": 0.25}\n')
    log.close()
    steps = [call for call in kept if isinstance(call[0], int)]
    assert steps == [(2, {"learner_iter/loss": 0.5}), (3, {"learner_iter/loss": 0.25})]


def test_a_tracker_that_fails_is_left_and_the_run_goes_on(kept):
    trackers = {"failing": {"fails": True}, "kept": {}}
    TRACKER_REGISTRY.register("failing", TRACKER_REGISTRY["kept"])
    log = RunLog("run", config={"seed": 0, "trackers": trackers})
    del TRACKER_REGISTRY["failing"]
    log.writer.add_scalar("a", 1.0, 1)
    with pytest.warns(RuntimeWarning) as warned:
        log.close()
    assert [str(one.message) for one in warned] == [
        "tracker 'failing' gets nothing more: ConnectionError: service is down",
    ]
    assert (1, {"a": 1.0}) in kept
    assert sum(call[0] == "finished" for call in kept) == 1


def test_a_tracker_that_hangs_costs_a_moment(kept, monkeypatch, recwarn):
    over = threading.Event()
    monkeypatch.setattr(TRACKER_REGISTRY["kept"], "config", lambda *_: over.wait(30))
    monkeypatch.setattr(durations, "TRACKER_END", 0.1)
    log = RunLog("run", config={**CONFIG, "trackers": ["kept"]})
    for step in range(5):
        log.writer.add_scalar("a", 1.0, step)
        log.flush()
    log.finish("finished")
    over.set()
    (line,) = [str(warning.message) for warning in recwarn]
    assert line == "the trackers did not get all rows of metrics.jsonl: one takes too long"


def test_a_slow_tracker_gets_all_rows_in_order_while_the_run_goes_on(kept, monkeypatch):
    slow = TRACKER_REGISTRY["kept"]
    monkeypatch.setattr(slow, "config", lambda self, config: time.sleep(1), raising=False)
    log = RunLog("run", config={**CONFIG, "trackers": ["kept"]})
    begin = time.monotonic()
    for step in range(100):
        log.writer.add_scalar("a", 1.0, step)
        log.flush()
    assert time.monotonic() - begin < 1
    log.close()
    steps = [call[0] for call in kept if isinstance(call[0], int)]
    assert steps == list(range(100))
    assert kept[-1][0] == "finished"


def test_a_service_that_is_down_at_the_start_does_not_keep_the_run_from_it(kept, monkeypatch):
    def refused(self, folder):
        raise ConnectionError("refused")

    monkeypatch.setattr(TRACKER_REGISTRY["kept"], "__init__", refused)
    with pytest.warns(RuntimeWarning, match="gets nothing more: ConnectionError: refused"):
        RunLog("run", config={**CONFIG, "trackers": ["kept"]}).close()


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("kept", ConfigError, "expected names, or options by name"),
        ({"kept": True}, ConfigError, "expected names, or options by name"),
        ({"kept": {"colour": 1}}, ConfigError, r"trackers\.kept .*colour"),
        (["kep"], UnknownTypeError, "did you mean 'kept'"),
        (["wandb"], ConfigError, r"pip install 'ding\[wandb\]'"),
        ({"mine": {"import_names": ["no_such_module"]}}, ImportError, "no_such_module"),
    ],
)
def test_what_is_wrong_with_the_config_is_said_before_the_run(
    kept, given, error, words, monkeypatch
):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(error, match=words):
        RunLog("run", config={"trackers": given})


# ---------------------------------------------------------------------- TensorBoard


def test_tensorboard_shows_the_config(tmp_path):
    with RunLog("run", config=CONFIG) as log:
        log.writer.add_scalar("a", 1.0, 1)
    events = read_events(tmp_path / "run/log/serial")
    values = {value.tag: value for event in events for value in event.summary.value}
    assert b'"lr": 0.1' in values["config/text_summary"].tensor.string_val[0]
    shown = values["_hparams_/session_start_info"].metadata.plugin_data.content
    assert b"policy.learn.lr" in shown
    assert b"[8, 8]" in shown


def test_what_watches_tensorboardx_sees_the_run(tmp_path, monkeypatch):
    from tensorboardX import writer

    seen = []

    class Watched(writer.EventFileWriter):  # as wandb.init(sync_tensorboard=True) puts it there
        def __init__(self, logdir, *args, **kwargs):
            seen.append(logdir)
            super().__init__(logdir, *args, **kwargs)

    monkeypatch.setattr(writer, "EventFileWriter", Watched)
    with RunLog("run") as log:
        log.writer.add_scalar("a", 1.0, 1)
    assert seen == [str(tmp_path / "run/log/serial")]


def test_a_full_disk_loses_events_and_neither_the_run_nor_the_later_ones(tmp_path, monkeypatch):
    def full(fd, data):
        raise OSError(28, "No space left on device")

    log = RunLog("run")
    monkeypatch.setattr(log_file.os, "write", full)
    log.writer.add_scalar("a", 1.0, 1)
    with pytest.warns(RuntimeWarning, match="No space left"):
        log.flush()
    for step in range(2, 5):
        log.writer.add_histogram("many", np.arange(1000), step)
        log.writer.add_scalar("a", 1.0, step)
        log.flush()
    monkeypatch.undo()
    log.writer.add_scalar("a", 1.0, 9)
    log.close()
    assert scalars(read_events(tmp_path / "run/log/serial")) == [("a", 9, 1.0)]


# ---------------------------------------------------------------------- services, without them


def run_with(options):
    log = RunLog("run", config={**CONFIG, "trackers": options})
    log.writer.add_scalar("a_iter/x", 1.0, 10)
    log.writer.add_scalar("a_iter/x", math.inf, 11)
    log.writer.add_scalar("plain", 2.0)
    log.finish("failed", "why")


@pytest.mark.parametrize("opened_before", [False, True])
def test_wandb(monkeypatch, tmp_path, opened_before):
    rows, axes, ends, config, summary = [], [], [], {}, {}
    run = SimpleNamespace(
        config=SimpleNamespace(update=lambda new, allow_val_change: config.update(new)),
        define_metric=lambda name, step_metric: axes.append((name, step_metric)),
        log=rows.append,
        summary=summary,
        finish=lambda exit_code: ends.append(exit_code),
    )
    asked = {}
    wandb = ModuleType("wandb")
    wandb.run = run if opened_before else None
    wandb.init = lambda **options: asked.update(options) or run
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    run_with({"wandb": {"project": "p", "mode": "offline"}})
    assert config["policy"]["learn"]["lr"] == 0.1
    assert axes == [("a_iter/*", "a_iter/step")]
    assert rows[0] == {"a_iter/x": 1.0, "a_iter/step": 10}
    assert rows[2] == {"plain": 2.0}
    assert summary == {"status": "failed", "reason": "why"}
    if opened_before:
        assert (asked, ends) == ({}, [])
    else:
        assert asked == {"dir": str(tmp_path / "run"), "project": "p", "mode": "offline"}
        assert ends == [1]


def test_mlflow(monkeypatch):
    batches, made, ends = [], [], []

    class Client:
        def __init__(self, uri):
            made.append(uri)

        def get_experiment_by_name(self, name):
            return None

        def create_experiment(self, name):
            return f"id of {name}"

        def create_run(self, experiment, run_name):
            made.append((experiment, run_name))
            return SimpleNamespace(info=SimpleNamespace(run_id="r"))

        def log_batch(self, run_id, **lists):
            batches.append(lists)

        def set_terminated(self, run_id, status):
            ends.append((run_id, status))

    mlflow, entities = ModuleType("mlflow"), ModuleType("mlflow.entities")
    mlflow.MlflowClient = Client
    mlflow.entities = entities
    entities.Metric = entities.Param = entities.RunTag = lambda *parts: parts
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    run_with({"mlflow": {"tracking_uri": "sqlite:///x.db"}})
    assert made == ["sqlite:///x.db", ("id of ding", "run")]
    params, first, infinite, plain, tags = batches
    assert ("policy.learn.lr", "0.1") in params["params"]
    assert first["metrics"][0][:2] == ("a_iter/x", 1.0)
    assert first["metrics"][0][3] == 10
    assert infinite == {"metrics": []}
    assert plain["metrics"][0][3] == 0
    assert ("reason", "why") in tags["tags"]
    assert ends == [("r", "FAILED")]

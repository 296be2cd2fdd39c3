"""Runs whose files are damaged or hostile: they are marked as such, the others are unaffected."""

import contextlib
import json
import os
import warnings

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings, strategies as st

from ding import plot
from ding.board import run_list
from ding.entry.cli import main
from ding.entry.run.status import live_status
from ding.utils.errors import ConfigError

from .run_folders import make_run
from .test_pages import client_of

FIELDS = (
    *("exp_name", "status", "reason", "started", "ended", "seconds", "command", "cwd", "pid"),
    *("host", "platform", "cpus", "versions", "git", "seed", "best_return", "envstep"),
    *("train_iter", "began", "earlier_runs", "warnings", "checksum"),
)
#: What JSON of Python's writer can hold, among it what other parsers refuse.
VALUES = st.recursive(
    st.one_of(
        *(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
        st.sampled_from([10**30, -(10**400), 1e308, -1e308, 2**31, 2**63, "\ud800", "\x1b[2J"]),
        st.sampled_from(["_111111_111111" * 18 + "x", "../..", "running", "\0", "a" * 10_000]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
TAGS = st.sampled_from(["time", "step", "evaluator_step/reward_mean", "collector_iter/return_mean"])
SLOW_IS_FINE = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
ADDRESSES = (
    *("/api/runs", "/api/run?id=bad&config=1", "/api/metrics?id=bad", "/api/log?id=bad&path=x.txt"),
    *("/api/metrics?id=bad&offset=99999999999999999999", "/api/video?id=bad&path=x.mp4"),
)


@pytest.fixture(autouse=True)
def _look_each_time(monkeypatch):
    monkeypatch.setattr(run_list, "RESCAN", 0.0)


@pytest.fixture
def runs(tmp_path):
    make_run(tmp_path / "runs" / "good")
    make_run(tmp_path / "runs" / "bad")
    return tmp_path / "runs"


def strict(text):
    return json.loads(text, parse_constant=lambda constant: pytest.fail(constant))


def check_board(folder):
    """All addresses answer, with JSON where they should, and the good run is whole."""
    client = client_of(folder)
    for address in ADDRESSES:
        answer = client.get(address)
        assert answer.status_code in (200, 404), (address, answer.data)
        if answer.mimetype == "application/json":
            strict(answer.get_data(as_text=True))
        if answer.mimetype == "application/x-ndjson":
            for line in answer.data.splitlines():
                assert isinstance(strict(line), dict)
    rows = {row["id"]: row for row in client.get("/api/runs").json["runs"]}
    assert rows["good"]["status"] == "converged"
    assert len(rows["good"]["curve"]) == 3
    return rows.get("bad")


def check_commands(folder):
    """``ding status`` and ``ding plot`` say one line, and draw what can be drawn."""
    for name in os.listdir(folder):
        result = CliRunner().invoke(main, ["status", str(folder / name)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        assert all(c.isprintable() or c == "\n" for c in result.output)
    with contextlib.suppress(ConfigError), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = plot.returns([folder])
        assert any("good" in f for curve in found.curves for f in curve.folders)
        assert found.table()


@SLOW_IS_FINE
@given(field=st.sampled_from(FIELDS), value=VALUES)
def test_any_value_of_any_field_of_the_record(runs, field, value):
    record = {"status": "converged", "exp_name": "exp/bad", "seed": 1, field: value}
    (runs / "bad" / "run.json").write_text(json.dumps(record))
    assert check_board(runs) is not None
    check_commands(runs)


@SLOW_IS_FINE
@given(rows=st.lists(st.dictionaries(TAGS, VALUES), min_size=1, max_size=4))
def test_any_value_of_any_field_of_the_metrics(runs, rows):
    (runs / "bad" / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert check_board(runs)["status"] == "converged"
    check_commands(runs)


@SLOW_IS_FINE
@given(name=st.sampled_from(["run.json", "metrics.jsonl"]), content=st.binary(max_size=200))
def test_any_bytes(runs, name, content):
    (runs / "bad" / name).write_bytes(content)
    assert check_board(runs) is not None
    check_commands(runs)


CONTENTS = {
    "nan": b'{"status": "converged", "best_return": NaN, "time": 1}\n',
    "infinity": b'{"seconds": Infinity, "step": -Infinity, "time": 1}\n',
    "overflow": b'{"envstep": 1e999, "time": 1e999}\n',
    "huge": b'{"envstep": 1' + b"0" * 400 + b', "time": 1}\n',
    "pid": b'{"status": "running", "pid": 1' + b"0" * 40 + b"}\n",
    "deep": b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"\n",
    "garbage": bytes(range(256)) * 50,
    "long": b'{"reason": "' + b"x" * (3 << 20) + b'"}\n',
    "line": b"x" * (3 << 20),
    "empty": b"",
    "list": b"[]\n",
}


@pytest.mark.parametrize("name", ["run.json", "metrics.jsonl", "total_config.py"])
@pytest.mark.parametrize("content", list(CONTENTS))
def test_known_damages(runs, name, content):
    (runs / "bad" / name).write_bytes(CONTENTS[content])
    row = check_board(runs)
    check_commands(runs)
    if name == "run.json" and content != "long":
        assert row["status"] == "unreadable"
        assert row["reason"].startswith("run.json cannot be read: ")


@pytest.mark.parametrize("name", ["run.json", "metrics.jsonl", "total_config.py", "x.mp4", "x.txt"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file(runs, name, make):
    with contextlib.suppress(FileNotFoundError):
        os.remove(runs / "bad" / name)
    make(runs / "bad" / name)
    row = check_board(runs)
    check_commands(runs)
    assert (row["status"] == "unreadable") == (name == "run.json")
    assert bool(row["problem"]) == (name == "metrics.jsonl")


@pytest.mark.parametrize(
    "content",
    [
        *(*CONTENTS.values(), b'{"host": 5, "port": "x"}', b'{"host": "127.0.0.1", "port": 1e300}'),
        *(b'{"host": "127.0.0.1", "port": -1}', b'{"host": "a b\\n", "port": 80, "process": 5}'),
        b'{"host": "127.0.0.1", "port": 1, "process": {"host": [], "pid": 1e300}}',
    ],
)
def test_a_damaged_address_of_a_coordinator(runs, content):
    (runs / "bad" / "run.json").write_text('{"status": "running", "host": "another"}')
    (runs / "bad" / "coordinator.json").write_bytes(content)
    for folder in (runs / "good", runs / "bad"):
        result = CliRunner().invoke(main, ["status", str(folder)])
        assert isinstance(result.exception, SystemExit | None), result
    client = client_of(runs, live_status)
    answer = client.get("/api/run?id=bad")
    assert (answer.status_code, strict(answer.data)["live"]) == (200, None)


@pytest.mark.parametrize(
    "answer",
    [
        {"exp_name": float("nan"), "state": [], "seconds": "x", "buffers": 5, "tasks": [1]},
        *({"workers": {"a": None}}, {"failures": [1]}, {"data_rate": {"bytes_per_s": "x"}}),
        {"reason": "\x1b[2J", "exp_name": "x"},
    ],
)
def test_a_coordinator_that_answers_nonsense(runs, monkeypatch, answer):
    (runs / "bad" / "run.json").write_text('{"status": "running", "host": "another"}')
    (runs / "bad" / "coordinator.json").write_text('{"host": "127.0.0.1", "port": 1}')
    monkeypatch.setattr("ding.entry.run.status.ask_status", lambda *_: answer)
    result = CliRunner().invoke(main, ["status", str(runs / "bad")])
    assert isinstance(result.exception, SystemExit | None), result
    assert "\x1b" not in result.output
    shown = client_of(runs, lambda folder: answer).get("/api/run?id=bad")
    assert "live" in strict(shown.data)


def test_a_folder_whose_name_is_not_utf8(runs):
    os.rename(runs / "bad", os.path.join(os.fsencode(runs), b"b\xffd\x1b[2J\n"))
    check_board(runs)
    check_commands(runs)
    client = client_of(runs)
    rows = {row["id"]: row for row in client.get("/api/runs").json["runs"]}
    (id,) = set(rows) - {"good"}
    assert rows[id]["folder"] == "b\\udcffd\\x1b[2J\\n"
    assert client.get("/api/run", query_string={"id": id}).json["summary"] == rows[id]


def test_whatever_fails_for_one_run_fails_for_it_alone(runs, monkeypatch):
    group = run_list.Run.group

    def broken(run):
        return 1 / 0 if run.id == "bad" else group.fget(run)

    monkeypatch.setattr(run_list.Run, "group", property(broken))
    row = check_board(runs)
    assert (row["status"], row["reason"]) == ("unreadable", "ZeroDivisionError: division by zero")

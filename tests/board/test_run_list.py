"""The runs below a folder."""

import json
import pprint
import subprocess
import sys
import time

import pytest

from ding.board import run_list
from ding.board.run_list import Curve, RunList
from ding.utils.processes import process_identity

from .run_folders import add_rows, make_run, write_record


@pytest.fixture(autouse=True)
def _look_each_time(monkeypatch):
    monkeypatch.setattr(run_list, "RESCAN", 0.0)


def test_runs_are_found_at_any_depth_the_newest_first(tmp_path):
    make_run(tmp_path / "old", started="2026-01-01T00:00:00+00:00")
    make_run(tmp_path / "a" / "b" / "new", started="2026-01-02T00:00:00+00:00")
    make_run(tmp_path / ".hidden" / "run")
    (tmp_path / "no_run").mkdir()
    runs = RunList(str(tmp_path))
    assert [run["id"] for run in runs.summaries()] == ["a/b/new", "old"]
    make_run(tmp_path / "later", started="2026-01-03T00:00:00+00:00")
    assert runs.summaries()[0]["id"] == "later"


def test_folder_may_be_a_run_itself(tmp_path):
    make_run(tmp_path / "run")
    assert [run["id"] for run in RunList(str(tmp_path / "run")).summaries()] == ["."]


def test_links_are_not_followed(tmp_path):
    make_run(tmp_path / "outside" / "run")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    assert RunList(str(tmp_path / "inside")).summaries() == []


def test_summary_contains_what_a_list_shows(tmp_path):
    make_run(tmp_path / "run_seed3", seed=3)
    (row,) = RunList(str(tmp_path)).summaries()
    assert (row["name"], row["seed"], row["status"]) == ("run", 3, "converged")
    assert (row["best_return"], row["last_return"], row["envstep"]) == (30.0, 30.0, 1000)
    assert row["curve"] == [(0, 10.0), (100, 20.0), (200, 30.0)]


def test_runs_that_differ_in_seed_and_folder_alone_are_one_group(tmp_path):
    make_run(tmp_path / "run_seed0", seed=0)
    make_run(tmp_path / "run_seed1", seed=1)
    make_run(tmp_path / "run_260102_030405", seed=2)
    make_run(tmp_path / "run_seed4", seed=4, learning_rate=0.1)
    groups = {run["id"]: run["group"] for run in RunList(str(tmp_path)).summaries()}
    assert groups["run_seed0"] == groups["run_seed1"] == groups["run_260102_030405"]
    assert groups["run_seed4"] != groups["run_seed0"]


def test_a_folder_with_the_name_of_a_policy_does_not_split_a_group(tmp_path):
    for name, seed in (("dqn", 0), ("dqn_260102_030405", 1)):
        folder = make_run(tmp_path / name, seed=seed, exp_name=name)
        long = f"{'a word ' * 15}{name}"
        config = {
            "exp_name": name,
            "seed": seed,
            "policy": {"type": "dqn", "learn": {"learner": {"exp_name": name, "a": "b" * 90}}},
            "path_data": f"{name}/data",
            "collector": {"exp_name": long, "other": "c" * 90},
        }
        text = pprint.pformat(config, width=100, sort_dicts=False)
        (folder / "total_config.py").write_text(f"exp_config = {text}\n")
    one, other = RunList(str(tmp_path)).summaries()
    assert one["group"] == other["group"]


def test_running_run_is_followed(tmp_path):
    folder = make_run(tmp_path / "run", status="running", best_return=None, envstep=None)
    runs = RunList(str(tmp_path))
    (row,) = runs.summaries()
    assert (row["status"], row["best_return"], row["envstep"]) == ("running", 30.0, 200)
    add_rows(folder, [70.0, 40.0, 50.0], start=3)
    (row,) = runs.summaries()
    # The mean of the last five of six.
    assert (row["best_return"], row["last_return"], row["envstep"]) == (70.0, 42.0, 500)
    write_record(folder, {"status": "failed", "reason": "why"})
    (row,) = runs.summaries()
    assert (row["status"], row["reason"]) == ("failed", "why")


def test_evaluation_that_a_resumed_run_repeats_counts_once(tmp_path):
    folder = make_run(tmp_path / "run", status="finished", returns=[1.0, 2.0, 3.0, 4.0])
    add_rows(folder, [4.0, 5.0], start=3)
    (row,) = RunList(str(tmp_path)).summaries()
    assert row["last_return"] == 3.0
    assert [step for step, _ in row["curve"]] == [0, 100, 200, 300, 400]


def test_run_whose_process_is_gone_was_killed(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    make_run(tmp_path / "run", status="running", pid=process.pid)
    make_run(tmp_path / "elsewhere", status="running", pid=process.pid, host="another")
    later = {**process_identity(), "started": "before this one"}
    make_run(tmp_path / "reused", status="running", process=later)
    make_run(tmp_path / "this", status="running", process=process_identity())
    runs = {run["id"]: run["status"] for run in RunList(str(tmp_path)).summaries()}
    assert runs == {
        "run": "killed",
        "elsewhere": "running",
        "reused": "killed",
        "this": "running",
    }


def test_damaged_runs_are_listed_with_the_cause(tmp_path):
    folder = make_run(tmp_path / "run", metrics=False)
    (folder / "run.json").write_text('{"status": "conv')
    (folder / "metrics.jsonl").write_bytes(
        b'\xff\xfe\n[1]\n{"step": "x", "evaluator_step/reward_mean": 1}\n{"a_mean'
    )
    (row,) = RunList(str(tmp_path)).summaries()
    assert (row["status"], row["name"], row["curve"]) == ("unreadable", "run", [])
    assert row["reason"].startswith("run.json cannot be read: Unterminated string")
    assert row["problem"] == "metrics.jsonl is damaged: 'step' is 'x', expected a number"


def test_last_return_is_that_of_the_last_evaluations(tmp_path):
    make_run(tmp_path / "run", status="finished", returns=[100.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    make_run(tmp_path / "converged", returns=[1.0, 2.0, 3.0, 4.0, 50.0])
    make_run(tmp_path / "without", returns=())
    rows = {row["id"]: row["last_return"] for row in RunList(str(tmp_path)).summaries()}
    assert rows == {"run": 3.0, "converged": 50.0, "without": None}


def test_curve_restarts_where_the_file_was_truncated(tmp_path):
    folder = make_run(tmp_path / "run")
    curve = Curve(str(folder))
    assert curve.read(time.monotonic() + 10)
    (folder / "metrics.jsonl").write_text("")
    add_rows(folder, [5.0])
    assert curve.read(time.monotonic() + 10)
    assert curve.points == [(0, 5.0)]


def test_long_curves_are_thinned_and_keep_their_ends(tmp_path):
    folder = make_run(tmp_path / "run", returns=[float(i) for i in range(2000)])
    curve = Curve(str(folder))
    curve.read(time.monotonic() + 10)
    assert len(curve.points) <= 2 * run_list.MAX_POINTS
    assert curve.points[0] == (0, 0.0)
    assert curve.points[-1] == (199_900, 1999.0)


def test_returns_of_training_stand_in_for_evaluations(tmp_path):
    folder = make_run(tmp_path / "run", returns=())
    row = {"time": 1.0, "step": 8, "collector_step/reward_mean": 3.0}
    (folder / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    (found,) = RunList(str(tmp_path)).summaries()
    assert found["curve"] == [(8, 3.0)]


def test_curves_that_take_long_come_later(tmp_path, monkeypatch):
    for i in range(3):
        make_run(tmp_path / f"run{i}")
    runs = RunList(str(tmp_path))
    monkeypatch.setattr(run_list, "CURVE_BUDGET", 0.0)
    assert all(run["curve"] == [] for run in runs.summaries())
    monkeypatch.setattr(run_list, "CURVE_BUDGET", 10.0)
    assert all(len(run["curve"]) == 3 for run in runs.summaries())


def test_unknown_run_is_refused(tmp_path):
    make_run(tmp_path / "run")
    with pytest.raises(KeyError):
        RunList(str(tmp_path)).get("../run")


def test_only_changed_rows_are_sent_again(tmp_path):
    make_run(tmp_path / "a", status="running")
    second = make_run(tmp_path / "b", status="running")
    runs = RunList(str(tmp_path))
    everything = runs.changes("")
    assert sorted(row["id"] for row in everything["runs"]) == ["a", "b"]
    assert runs.changes(everything["version"])["runs"] == []
    add_rows(second, [50.0], start=3)
    later = runs.changes(everything["version"])
    assert [row["id"] for row in later["runs"]] == ["b"]
    assert sorted(later["ids"]) == ["a", "b"]
    # A version of another server says nothing about this one.
    assert len(RunList(str(tmp_path)).changes(later["version"])["runs"]) == 2

"""What workers write in their run folder comes to the driver's."""

import os
import subprocess

import pytest

pytest.importorskip("ray")

from ding.utils.errors import DataError
from ding.utils.file_helper import write_facts
from ding.utils.processes import process_identity
from ding.worker.engines.ray_folder import (
    WorkerFolder,
    apply_changes,
    folder_of,
    read_files,
    remove_orphans,
)
from ding.worker.engines.ray_messages import FileChange


@pytest.fixture
def worker(tmp_path):
    return WorkerFolder(str(tmp_path / "worker"))


@pytest.fixture
def home(tmp_path):
    return tmp_path / "run"


def bring(worker, home):
    changes = worker.changes(at_once=True)
    apply_changes(str(home), changes)
    return {change.path: change.start for change in changes}


def write(worker, name, text, mode="w"):
    path = os.path.join(worker.path, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, mode) as file:
        file.write(text)


def test_new_files_come_and_logs_grow(worker, home):
    write(worker, "log/learner0/output.txt", "one\n")
    write(worker, "ckpt/a.pth.tar", "weights")
    assert set(bring(worker, home)) == {"log/learner0/output.txt", "ckpt/a.pth.tar"}
    write(worker, "log/learner0/output.txt", "two\n", "a")
    assert bring(worker, home) == {"log/learner0/output.txt": 4}
    assert (home / "log/learner0/output.txt").read_text() == "one\ntwo\n"
    assert bring(worker, home) == {}


def test_replaced_files_are_replaced_and_removed_ones_removed(worker, home):
    write(worker, "ckpt/a.pth.tar", "old")
    bring(worker, home)
    write(worker, "ckpt/new", "newer and longer")
    os.replace(f"{worker.path}/ckpt/new", f"{worker.path}/ckpt/a.pth.tar")
    assert bring(worker, home) == {"ckpt/a.pth.tar": 0}
    assert (home / "ckpt/a.pth.tar").read_text() == "newer and longer"
    os.remove(f"{worker.path}/ckpt/a.pth.tar")
    bring(worker, home)
    assert not (home / "ckpt/a.pth.tar").exists()


def test_unfinished_files_stay_where_they_are(worker, home):
    write(worker, f"ckpt/.a.pth.tar.{'0' * 16}", "half")
    assert bring(worker, home) == {}


def test_files_of_the_driver_are_laid_down_and_do_not_come_back(worker, home):
    home.mkdir()
    (home / "state").write_text("state")
    (home.parent / "secret").write_text("not of the run")
    files = read_files(str(home), ["state", "missing", "../secret"])
    assert files == {"state": b"state"}
    worker.put(files)
    assert bring(worker, home) == {}
    write(worker, "state", "changed")
    assert bring(worker, home) == {"state": 0}
    assert (home / "state").read_text() == "changed"


def test_no_path_leads_out_of_the_run_folder(home):
    home.mkdir()
    with pytest.raises(DataError, match="does not lie in the run folder"):
        apply_changes(str(home), [FileChange("../other", b"x")])
    assert not (home.parent / "other").exists()


def test_looks_are_rare_unless_asked_for(worker):
    assert worker.changes() == []
    write(worker, "a", "a")
    assert worker.changes() == []
    assert [change.path for change in worker.changes(at_once=True)] == ["a"]


def test_what_killed_runs_have_left_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lives, killed = (WorkerFolder(folder_of(run, "learner0")) for run in ("lives", "killed"))
    write(lives, "log/output.txt", "one\n")
    with subprocess.Popen(["sleep", "60"]) as process:
        write_facts(f"{killed.path}.owner.json", process_identity(process.pid))
        remove_orphans()
        assert os.path.isdir(killed.path)
        process.kill()
    os.makedirs(tmp_path / "ding-of-somebody-else")
    remove_orphans()
    assert sorted(os.listdir(tmp_path)) == ["ding-lives", "ding-of-somebody-else"]
    assert (tmp_path / "ding-lives/learner0/log/output.txt").exists()
    lives.remove()
    assert os.listdir(tmp_path) == ["ding-of-somebody-else"]
